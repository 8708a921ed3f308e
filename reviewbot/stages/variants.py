"""Stage variants: the series in a kernel whose configuration compiles what the review's own one leaves out.

In: the added lines of the series, the configuration of the review, and a way to get one more kernel. Out: for each
Kconfig symbol that decides about added lines (``#ifdef CONFIG_X``, ``IS_ENABLED(CONFIG_X)``, the stubs of a header)
the patched kernel with that symbol the other way: built, booted, and tested by the generated tests. What does not
build, boot or pass there is compared with base in the same configuration. What cannot be tried is said, with the
reason.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from reviewbot.model import ApplyResult, Blame, Case, Finding, Log, Origin, Outcome, StageResult, Status
from reviewbot.parse.added import added_lines
from reviewbot.parse.conditions import Flip, find_flips
from reviewbot.parse.kconfig import Wanted, parse_config
from reviewbot.parse.kconfig_tree import why_not, why_on
from reviewbot.tools.comparison import Comparison, diagnosed
from reviewbot.tools.git import git_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from reviewbot.generate.rules import Tree
    from reviewbot.parse.kconfig_tree import KconfigTree
    from reviewbot.tools.extra import Extra
    from reviewbot.tools.kernel import Builder, Kernels

STAGE = "variants"
LIMIT = 3  # kernels of one review


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantBench:
    """What trying variants needs.

    builder built the kernels of the review. needed are symbols without which no guest boots. kernel_with gives the
    Extra whose configuration has one more wanted symbol.
    """

    builder: Builder
    needed: frozenset[str]
    kernel_with: Callable[[Wanted], Extra]
    rules: Tree | None = None


def variants(
    bench: VariantBench, kernels: Kernels, applied: ApplyResult, *, repo: Path, known: Sequence[StageResult]
) -> Outcome[tuple[Case, ...]]:
    """Build, boot and test the variants; the value is their cases, named after the symbol.

    known are the results of the review so far: what they show is not told again.
    """
    if applied.prerequisite_commit in ("", applied.tip_commit):
        return _skipped("the tree has the series already: no line of it is new")
    config = parse_config(kernels.patched.config.read_text())
    build = bench.builder.make.build
    added = {f: lines for f, lines in _added(repo, applied).items() if _compiled(f, build)}
    flips = find_flips(added, config)
    if not flips:
        return _skipped("no Kconfig symbol decides about a line that the series adds")
    bench.builder.checkout(applied.tip_commit)
    return _Variants(bench=bench, kernels=kernels, applied=applied, known=known, config=config).outcome(flips)


def _added(repo: Path, applied: ApplyResult) -> dict[str, tuple[str, tuple[int, ...]]]:
    commits = (applied.prerequisite_commit, applied.tip_commit)
    options = ("--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "-U0")
    diff = git_bytes(repo, "diff", *options, "--src-prefix=a/", "--dst-prefix=b/", *commits)
    added = added_lines(diff.decode("utf-8", "replace"), leave_out=("tools/", "Documentation/", "samples/"))
    texts = {file: git_bytes(repo, "show", f"{applied.tip_commit}:{file}") for file in added}
    return {file: (text.decode("utf-8", "replace"), added[file]) for file, text in texts.items()}


def _compiled(file: str, build: Path) -> bool:
    # A source file that no configuration of the review compiles has nothing to vary; a header may be anyone's.
    if file.startswith("arch/") and not file.startswith("arch/x86/"):
        return False
    return not file.endswith(".c") or not (build / "vmlinux").exists() or (build / file).with_suffix(".o").exists()


class _Impossible(Exception):  # noqa: N818 - control flow of this module, not an error
    """A variant cannot be had; its text is why."""


@dataclass(slots=True, kw_only=True)
class _Variants:
    bench: VariantBench
    kernels: Kernels
    applied: ApplyResult
    known: Sequence[StageResult]
    config: Mapping[str, str]
    cases: list[Case] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    facts: list[tuple[str, str]] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    logs: list[Log] = field(default_factory=list)
    tried: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def outcome(self, flips: tuple[Flip, ...]) -> Outcome[tuple[Case, ...]]:
        tree = self.bench.builder.kconfig()
        left: list[str] = []
        for flip in flips:
            if len(self.tried) == LIMIT:
                left.append(flip.turned)
                continue
            if why := self.against(flip, tree):
                self.leave_out(flip, why)
                continue
            try:
                self.vary(flip)
            except _Impossible as reason:
                self.leave_out(flip, str(reason))
        if left:
            self.facts.append(("not tried", f"{', '.join(left)}: at most {LIMIT} variants in one review"))
        result = StageResult(
            stage=STAGE,
            status=self.status(),
            summary=self.summary(),
            findings=tuple(self.findings),
            cases=tuple(self.cases),
            facts=tuple(self.facts),
            commands=tuple(self.commands),
            logs=tuple(self.logs),
            required=False,
        )
        return Outcome(result=result, value=tuple(self.cases))

    def against(self, flip: Flip, tree: KconfigTree) -> str:
        if flip.value == "n":
            return "the guest needs it" if flip.symbol in self.bench.needed else why_on(flip.symbol, tree, self.config)
        return "; ".join(why_not(flip.symbol, tree, self.config))

    def leave_out(self, flip: Flip, why: str) -> None:
        self.facts.append((flip.turned, f"not tried: {why}"))
        if flip.value == "n" or not flip.gained:
            return
        lines = f"{flip.gained} added line{'s' * (flip.gained != 1)}"
        self.findings.append(
            Finding(
                title=f"{lines} not built: CONFIG_{flip.symbol} is off ({why})",
                severity=Status.PASS,
                origin=Origin.INTRODUCED,
                file=flip.file,
                line=flip.line,
            )
        )

    def vary(self, flip: Flip) -> None:
        """Build, boot and test one variant. Raises _Impossible when the configuration cannot be had."""
        reason = "tried the other way: the series has code for it"
        extra = self.bench.kernel_with(Wanted(symbol=flip.symbol, value=flip.value, reason=reason))
        tip = self.applied.tip_commit
        if extra.builder.cached(tip) is None:
            extra.start_from(self.bench.builder.make.build)
        lost = self.configured(flip, extra)
        self.tried.append(flip.turned)
        extra.note(f"{flip.turned}: building patched")
        attempt = extra.builder.build(tip)
        self.commands.append(extra.builder.recipe(tip))
        self.logs.append(extra.build_log)
        if attempt.problem:
            self.problems.append(f"{flip.turned}: {attempt.problem}")
            self.facts.append((flip.turned, f"the machine failed: {attempt.problem}"))
            return
        found, problems = diagnosed(extra, self.applied, attempt, self.kernels)
        self.findings += found
        self.problems += problems
        if attempt.kernel is None:
            if not any(f.blame in (Blame.SERIES, Blame.UNKNOWN) for f in found):
                self.tried.remove(flip.turned)
                msg = "the tree does not build with it without the series either"
                raise _Impossible(msg)
            self.facts.append((flip.turned, "patched does not build"))
            return
        built = "from the cache" if attempt.kernel.cached else f"{attempt.kernel.objects} objects"
        off = f"; off with it: {', '.join(lost)}" if lost else ""
        self.facts.append((flip.turned, f"patched builds, {built} in {attempt.duration_s:.0f} s{off}"))
        self.compare(
            flip,
            Comparison(
                extra=extra,
                patched=attempt.kernel,
                applied=self.applied,
                known=self.known,
                rules=self.bench.rules,
            ),
        )

    def configured(self, flip: Flip, extra: Extra) -> list[str]:
        # The wanted symbols that went with the flipped one.
        extra.note(f"{flip.turned}: configuring")
        extra.builder.checkout(self.applied.tip_commit)
        done = extra.builder.configure(extra.wanted)
        if not done.done.ok:
            msg = "allnoconfig fails with it"
            raise _Impossible(msg)
        lost = [m.wanted.symbol for m in done.lost]
        if flip.symbol in lost:
            msg = "it does not stick: another symbol of the configuration asks for the opposite"
            raise _Impossible(msg)
        if needed := sorted(self.bench.needed & set(lost)):
            msg = f"the guest needs what depends on it: {', '.join(needed[:4])}"
            raise _Impossible(msg)
        return lost

    def compare(self, flip: Flip, comparison: Comparison) -> None:
        cases, findings = comparison.run()
        self.cases += [replace(c, name=f"{flip.symbol}={flip.value}/{c.name}") for c in cases]
        self.findings += findings
        self.commands += comparison.commands
        self.logs += comparison.logs
        self.problems += [f"{flip.turned}: {p}" for p in comparison.problems]
        self.facts += comparison.facts

    def status(self) -> Status:
        bad = any(f.counts and f.severity is Status.FAIL for f in self.findings) or any(c.counts for c in self.cases)
        if bad:
            return Status.FAIL
        if self.problems:
            return Status.ERROR
        if any(f.counts and f.severity is Status.WARN for f in self.findings):
            return Status.WARN
        if any(c.patched in (Status.WARN, Status.ERROR) for c in self.cases):
            return Status.WARN
        return Status.PASS if self.tried else Status.SKIP

    def summary(self) -> str:
        if not self.tried:
            return "no variant can be had: " + "; ".join(f"{name}: {why}" for name, why in self.facts)
        count = {status: sum(1 for c in self.cases if c.patched is status) for status in Status}
        text = f"with {', '.join(self.tried)}: "
        broken = [f.title for f in self.findings if f.counts and f.severity is Status.FAIL]
        if broken:
            text += f"{broken[0]}; "
        elif not self.problems:
            text += "patched builds and boots; "
        tally = f"{count[Status.PASS]} cases pass, {count[Status.FAIL]} fail, {count[Status.SKIP]} skipped"
        text += tally if self.cases else "no test was compiled" if not broken else "no test ran"
        return text + "".join(f"; {p}" for p in self.problems)


def _skipped(reason: str) -> Outcome[tuple[Case, ...]]:
    return Outcome(result=StageResult(stage=STAGE, status=Status.SKIP, summary=reason, required=False))
