"""patched against base on one more kernel.

In: an Extra, the kernels of the review and its results so far. Out: cases and findings of patched on that kernel.
Base is built and booted there only when patched shows something that the review has not shown yet: then what base
shows too is pre-existing, and what it does not show is introduced by the rules of findings.compare.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from reviewbot.findings.compare import Observed, Run, compare_cases
from reviewbot.findings.explain import explain
from reviewbot.findings.splats import splat_findings, tail
from reviewbot.generate.rules import Tree, load_rules
from reviewbot.model import ApplyResult, Blame, Case, Finding, Log, Origin, StageResult, Status
from reviewbot.parse.diagnostics import Diagnostic, compare
from reviewbot.tools.programs import case_command
from reviewbot.tools.vng import Boot, Ending

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from reviewbot.tools.extra import Extra, Tested
    from reviewbot.tools.kernel import Attempt, Kernel, Kernels

NOT_ON_BASE = "not run on base: patched shows nothing new"
_EXCERPT_CHARS = 4000
_BAD = (Status.FAIL, Status.ERROR)


@dataclass(slots=True, kw_only=True)
class Comparison:
    """patched on one more kernel, and base there when it takes that to tell.

    known are results of the review so far: cases that fail there and splats that were shown there are not told again.
    slow: the kernel is slow enough to break a test by that alone, so what base cannot run there is no proof.
    rules is where the rules of the tests stand.
    """

    extra: Extra
    patched: Kernel
    applied: ApplyResult
    known: Sequence[StageResult]
    slow: bool = False
    rules: Tree | None = None
    passes: dict[str, list[Tested]] = field(default_factory=lambda: {"base": [], "patched": [], "prerequisite": []})
    problems: list[str] = field(default_factory=list)
    repeated: int = 0

    def run(self) -> tuple[tuple[Case, ...], tuple[Finding, ...]]:
        """Boot what has to be booted; return the cases and findings. problems says what could not be told."""
        self._boot("patched", self.patched, "patched")
        first = self.passes["patched"][0]
        if first.boot.ending is Ending.NO_START:
            self.problems.append(f"qemu did not start a kernel: {first.boot.detail or 'no output'}")
            return (), ()
        if self._news(first):
            self._boot("patched", self.patched, "patched")
            self._compared("base", self.applied.base_commit, 2)
        cases, findings = self._cases(), self._findings()
        if self._blames(cases, findings) and self.applied.prerequisite_commit not in ("", self.applied.base_commit):
            self._compared("prerequisite", self.applied.prerequisite_commit, 1)
            cases, findings = self._blame(cases), self._findings()
        return cases, findings

    @property
    def logs(self) -> tuple[Log, ...]:
        """What the boots left, in their order."""
        return tuple(log for passes in self.passes.values() for tested in passes for log in tested.logs)

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands of the boots."""
        return tuple(t.boot.command for passes in self.passes.values() for t in passes)

    @property
    def facts(self) -> list[tuple[str, str]]:
        """How the boots ended, and how much was not told again."""
        label = self.extra.label
        endings = [
            (f"{label}, {side}, run {n}", f"{t.boot.ending} after {t.boot.duration_s:.1f} s ({t.boot.accelerator})")
            for side, passes in self.passes.items()
            for n, t in enumerate(passes, 1)
        ]
        again = f"{self.repeated} cases that fail on the review's own kernel ran here too and are not told again"
        return [*endings, *([(label, again)] if self.repeated else [])]

    def _boot(self, side: str, kernel: Kernel, role: str) -> None:
        self.passes[side].append(self.extra.test(kernel, side, len(self.passes[side]) + 1, role))

    def _compared(self, side: str, commit: str, times: int) -> None:
        self.extra.note(f"{self.extra.label}: building {side}")
        attempt = self.extra.builder.build(commit)
        if attempt.kernel is None:
            self.problems.append(f"{side} does not build: {attempt.problem or 'see the log'}")
            return
        for _ in range(times):
            self._boot(side, attempt.kernel, "base" if side == "base" else "plain")

    def _known_cases(self) -> set[str]:
        return {c.name for result in self.known for c in result.cases if c.patched not in (Status.PASS, Status.SKIP)}

    def _known_splats(self) -> set[tuple[str, str]]:
        return {(f.title, f.function) for result in self.known for f in result.findings}

    def _news(self, tested: Tested) -> bool:
        splats = splat_findings((), tested.consoles)
        return (
            tested.boot.ending is not Ending.FINISHED
            or any(o.status in _BAD and name not in self._known_cases() for name, o in tested.run.items())
            or any((s.title, s.function) not in self._known_splats() for s in splats)
        )

    def _cases(self) -> tuple[Case, ...]:
        known = self._known_cases()
        patched = [_without(t.run, known) for t in self.passes["patched"]]
        self.repeated = len(known & set(self.passes["patched"][0].run))
        base = [_without(t.run, known) for t in self.passes["base"]]
        absent = Observed(status=Status.SKIP, reason=NOT_ON_BASE)
        cases = compare_cases(base or [dict.fromkeys(patched[0], absent)], patched)
        if self.rules is not None:
            cases = explain(cases, load_rules(), self.rules)
        return tuple(self._shown(c) for c in cases)

    def _shown(self, case: Case) -> Case:
        case = self._doubted(case, unknown=bool(self.problems))
        if case.patched not in (Status.FAIL, Status.WARN):
            return case
        return replace(case, reproduce=case_command(case.name, *self.extra.arguments))

    def _doubted(self, case: Case, *, unknown: bool) -> Case:
        if not case.counts or case.base is not Status.SKIP or not (unknown or self.slow):
            return case
        why = "base cannot run it" if not unknown else "there is no base to compare with"
        if self.slow:
            why += ", and this kernel is slow enough to be the reason"
        return replace(case, patched=Status.WARN, origin=None, blame=Blame.UNKNOWN, reason=f"{case.reason}; {why}")

    def _findings(self) -> tuple[Finding, ...]:
        def said(side: str) -> list[str]:
            return [text for tested in self.passes[side] for text in tested.consoles]

        known = self._known_splats()
        found = [f for f in splat_findings(said("base"), said("patched")) if (f.title, f.function) not in known]
        theirs = {(f.title, f.function) for f in splat_findings((), said("prerequisite"))}
        found = [replace(f, blame=Blame.PREREQUISITE) if (f.title, f.function) in theirs else f for f in found]
        if not self.passes["base"] and self.problems:
            found = [replace(f, severity=Status.WARN, blame=Blame.UNKNOWN) for f in found]
        ended = next((t.boot for t in self.passes["patched"] if t.boot.ending is not Ending.FINISHED), None)
        if ended is not None and not any(f.counts for f in found):
            found.append(self._ending(ended))
        return tuple(replace(f, title=f"{self.extra.label}: {f.title}") for f in found)

    def _ending(self, boot: Boot) -> Finding:
        def ends(side: str) -> bool:
            return any(t.boot.ending is not Ending.FINISHED for t in self.passes[side])

        blame = Blame.BASE if ends("base") else Blame.PREREQUISITE if ends("prerequisite") else Blame.SERIES
        if not self.passes["base"]:
            blame = Blame.UNKNOWN
        counts = blame is Blame.SERIES
        return Finding(
            title=f"the guest does not come to the end of the tests: {boot.ending} {boot.detail}".rstrip(),
            severity=Status.FAIL if counts else Status.WARN,
            origin=Origin.PRE_EXISTING if blame is Blame.BASE else Origin.INTRODUCED,
            blame=blame,
            excerpt=tail(boot.console),
            reproduce=boot.command,
        )

    def _blames(self, cases: Iterable[Case], findings: Iterable[Finding]) -> bool:
        return any(c.counts and c.base is Status.PASS for c in cases) or any(f.counts for f in findings)

    def _blame(self, cases: tuple[Case, ...]) -> tuple[Case, ...]:
        seen = [t.run for t in self.passes["prerequisite"]]
        theirs = {name for run in seen for name, o in run.items() if o.status in _BAD}
        return tuple(
            replace(c, blame=Blame.PREREQUISITE, reason=f"{c.reason}; fails with the prerequisites alone")
            if c.counts and c.base is Status.PASS and c.name in theirs
            else c
            for c in cases
        )


def diagnosed(
    extra: Extra, applied: ApplyResult, attempt: Attempt, kernels: Kernels
) -> tuple[list[Finding], list[str]]:
    """Return what the compiler says of patched in this configuration and not in the review's own, and what is unknown.

    attempt is the build of patched; kernels are those of the review. What base says there too is pre-existing.
    """
    shown = (*kernels.base.diagnostics, *kernels.patched.diagnostics)
    news, _, _ = compare(shown, attempt.diagnostics)
    if not news:
        return [], []
    extra.note(f"{extra.label}: building base")
    base = extra.builder.build(applied.base_commit)
    if base.problem:
        return [_diagnostic(extra, d, Blame.UNKNOWN) for d in news], [f"base: {base.problem}"]
    introduced, old, _ = compare(base.diagnostics, news)
    theirs: tuple[Diagnostic, ...] = ()
    if introduced and applied.prerequisite_commit != applied.base_commit:
        theirs = extra.builder.build(applied.prerequisite_commit).diagnostics
    ours, foreign, _ = compare(theirs, introduced)
    # A base that does not build did not come to every warning.
    untold = tuple(d for d in ours if base.kernel is None and d.kind == "warning")
    ours = tuple(d for d in ours if d not in untold)
    groups = ((ours, Blame.SERIES), (untold, Blame.UNKNOWN), (foreign, Blame.PREREQUISITE), (old, Blame.BASE))
    return [_diagnostic(extra, d, blame) for group, blame in groups for d in group], []


def _diagnostic(extra: Extra, diagnostic: Diagnostic, blame: Blame) -> Finding:
    severity = Status.PASS if blame in (Blame.BASE, Blame.PREREQUISITE) else Status.WARN
    if blame is Blame.SERIES and diagnostic.kind == "error":
        severity = Status.FAIL
    flag = f" [{diagnostic.flag}]" if diagnostic.flag else ""
    return Finding(
        title=f"{extra.label}: {diagnostic.kind}: {diagnostic.text}{flag}",
        severity=severity,
        origin=Origin.PRE_EXISTING if blame is Blame.BASE else Origin.INTRODUCED,
        blame=blame,
        file=diagnostic.file,
        function=diagnostic.function,
        line=diagnostic.line,
        excerpt=diagnostic.excerpt[:_EXCERPT_CHARS],
    )


def _without(run: Run, names: set[str]) -> Run:
    return {name: observed for name, observed in run.items() if name not in names}
