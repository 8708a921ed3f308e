"""Stage apply: prerequisites and series onto base, one patch a step, and an honest state when that fails.

In: a bare repository, the base, the series and its prerequisites. Out: Outcome[ApplyResult] with the commits made, or
with the state (does not apply, already merged, malformed, hostile, …) and the evidence for it. No work tree is touched:
what fails leaves no trace. patch(1) is never run, and nothing is written before the whole series was checked for
hostile paths.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from reviewbot.model import (
    AppliedPatch,
    ApplyResult,
    ApplyState,
    BaseInfo,
    Blame,
    Log,
    Outcome,
    Series,
    StageResult,
    Status,
)
from reviewbot.parse.diagnose import MAX_FAILURES, diagnose, refused_file
from reviewbot.parse.merged import merged_evidence
from reviewbot.parse.needs import undefined_candidates
from reviewbot.tools.applier import ALREADY_IN, Applier, Step, Tried, applies, steps_of
from reviewbot.tools.patching import ignore_attributes, make_commits
from reviewbot.tools.refusal import link_refusal, refusal
from reviewbot.tools.symbols import known_names

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from reviewbot.model import HunkFailure

STAGE = "apply"
# Beside the log: what a three-way merge made of a patch that does not apply.
SUGGESTION = "merge-suggestion.patch"
_SHOWN = 8


def apply(
    repo: Path,
    base: BaseInfo,
    series: Series,
    prerequisites: Sequence[Series],
    *,
    scratch: Path,
    log: Path,
    allow_fuzz: bool = False,
    unmet: Sequence[str] = (),
) -> Outcome[ApplyResult]:
    """Apply prerequisites, then series, on base.commit of the bare repository repo.

    unmet are prerequisites that the series names and that nobody found (see stages.prerequisites): when it does not
    apply, they are the reason. scratch is a directory of ours for the small index and the diffs as git saw them; log
    gets git's own words. The result is PASS with commits that depend on the input alone, else SKIP: no state of
    applying is a fault of the series.
    """
    started = time.monotonic()
    scratch.mkdir(parents=True, exist_ok=True)
    ignore_attributes(repo)
    work = _Work(repo, base, series, steps_of(series, prerequisites), scratch=scratch, log=log)
    work.unmet = tuple(unmet)
    result = work.run(allow_fuzz=allow_fuzz)
    (scratch / "index").unlink(missing_ok=True)
    stage = StageResult(
        stage=STAGE,
        status=Status.PASS if result.applied else Status.SKIP,
        summary=result.summary,
        duration_s=time.monotonic() - started,
        facts=_facts(result),
        commands=tuple(work.commands),
        logs=tuple(work.logs),
        excerpt=_excerpt(result),
    )
    return Outcome(result=stage, value=result)


class _Work:
    # One application and what it means. Everything that it learns ends in the ApplyResult that run() returns.
    def __init__(
        self,
        repo: Path,
        base: BaseInfo,
        series: Series,
        steps: list[Step],
        *,
        scratch: Path,
        log: Path,
    ) -> None:
        self.repo = repo
        self.base = base
        self.series = series
        self.steps = steps
        self.own = [step for step in steps if step.role is Blame.SERIES]
        self.scratch = scratch
        self.log = log
        self.unmet: tuple[str, ...] = ()
        self.commands: list[str] = []
        self.logs: list[Log] = []

    def run(self, *, allow_fuzz: bool) -> ApplyResult:
        if refused := refusal(self.repo, self.base.commit, self.series, self.steps):
            return self._state(refused.state, refused.text, failures=refused.failures, evidence=refused.evidence)
        self.applier = Applier(self.repo, self.base.commit, self.steps, scratch=self.scratch, log=self.log)
        self.commands = self.applier.commands
        for step in self.steps:
            if step.diff.problems:
                return self._malformed(step)
            tried = self.applier.take(step, allow_fuzz=allow_fuzz)
            if not (tried.applied or tried.already):
                return self._failed(step, tried)
        return self._finish()

    def _malformed(self, step: Step) -> ApplyResult:
        # git takes some of these, and loses the lines that it cannot read.
        problem = step.diff.problems[0]
        text = f"{step.label} is malformed at line {problem.line} of its diff: {problem.text}{_flowed(step)}"
        error = self.applier.complaint(step)
        return self._state(ApplyState.MALFORMED, text, evidence=(f"git: {error}",) if error else ())

    def _failed(self, step: Step, tried: Tried) -> ApplyResult:
        error = tried.attempt.first_error
        if "corrupt patch" in tried.attempt.output or "patch fragment without header" in tried.attempt.output:
            return self._state(ApplyState.MALFORMED, f"{step.label} is malformed: {error}")
        if step.role is Blame.SERIES and (merged := self._merged()):
            return merged
        failures = diagnose(
            step.patch.subject, step.diff.files, self.applier.texts(f.old or f.new for f in step.diff.files)
        )
        failures = failures or refused_file(step.patch.subject, step.diff.files, error)
        state, why = self._kind(step, failures)
        if step.role is Blame.PREREQUISITE:
            others = self._others(step)
            failures, why = (
                (*failures, *others),
                why + (f"; without it, {len(others)} hunks of what follows do not apply either" if others else ""),
            )
        fuzz = " (would need fuzz: --allow-fuzz)" if tried.fuzz else ""
        where = f"{failures[0].file}: {failures[0].reason}" if failures else error
        summary = f"{step.label} does not apply to {self.base.tree} {self.base.describe}{fuzz}: {where}{why}"
        evidence = (f"git: {error}", *self._merge_attempt(step), *self._needs())
        return self._state(state, summary, failures=failures, evidence=evidence)

    def _merge_attempt(self, step: Step) -> list[str]:
        text, merged = self.applier.three_way(step)
        if merged:
            file = self.log.parent / SUGGESTION
            file.write_bytes(merged)
            self.logs.append(Log(title="merge suggestion", path=SUGGESTION, size_bytes=len(merged)))
            text = f"{text}: the merged change is in {SUGGESTION}, not tested"
        return [text] if text else []

    def _others(self, failed: Step) -> tuple[HunkFailure, ...]:
        # What a reader wants to know next: does the series itself find its places where a prerequisite did not?
        found: list[HunkFailure] = []
        for step in self.steps[self.steps.index(failed) + 1 :]:
            tried = self.applier.take(step, allow_fuzz=False)
            if len(found) < MAX_FAILURES and not (tried.applied or tried.already):
                texts = self.applier.texts(f.old or f.new for f in step.diff.files)
                found += diagnose(step.patch.subject, step.diff.files, texts)
        return tuple(found)

    def _kind(self, step: Step, failures: Sequence[HunkFailure]) -> tuple[ApplyState, str]:
        if step.role is Blame.PREREQUISITE:
            return ApplyState.DOES_NOT_APPLY, ""
        if self.unmet:
            return ApplyState.BLOCKED, f"; it needs {', '.join(self.unmet[:_SHOWN])}, which was not found"
        missing = [n for n in self.series.missing if n < step.patch.number]
        if not missing:
            return ApplyState.DOES_NOT_APPLY, ""
        are = "is" if len(missing) == 1 else "are"
        why = f"; a likely reason: {_parts(missing)} of {self.series.total} {are} not in the input"
        absent = failures and all(f.reason == "the file does not exist" for f in failures)
        return (ApplyState.INCOMPLETE if absent else ApplyState.DOES_NOT_APPLY), why

    def _merged(self) -> ApplyResult | None:
        # The whole series taken back from its end; then by content, for what has evolved since.
        here = self.applier.index.entries
        try:
            if self.applier.holds(self.own):
                return self._all_in()
            self.applier.to_start()
            files = [f for s in self.own for f in s.diff.files]
            texts: dict[str, str | None] = {f.path: None for f in files}
            found = merged_evidence(files, texts | self.applier.texts(texts))
            text = f"the change is in {self.base.tree} already, in a form that has evolved since"
            return self._state(ApplyState.ALREADY_MERGED, text, evidence=found.lines) if found.merged else None
        finally:
            self.applier.index.restore(here)

    def _all_in(self) -> ApplyResult:
        evidence = tuple(f"{s.label}: its reverse applies" for s in self.own)
        if any(step.role is Blame.PREREQUISITE for step, _ in self.applier.made) and not self._base_has_it():
            text = "the prerequisites make the same changes as the series: nothing is left to apply"
            return self._state(ApplyState.DOES_NOT_APPLY, text, evidence=evidence)
        return self._state(ApplyState.ALREADY_MERGED, f"the series is in {self.base.tree} already", evidence=evidence)

    def _base_has_it(self) -> bool:
        alone = self.scratch / "alone"
        alone.mkdir(exist_ok=True)
        return applies(self.repo, self.base.commit, self.own, scratch=alone) == ALREADY_IN

    def _finish(self) -> ApplyResult:
        applier = self.applier
        if self.own and all(s in applier.already for s in self.own):
            return self._all_in()
        if refused := link_refusal(self.repo, self.base.commit, applier.index.start, applier.made):
            return self._state(refused.state, refused.text, evidence=refused.evidence)
        notes = [*applier.notes, *(f"applies without {need}, which was not found" for need in self.unmet)]
        if self.unmet or self.series.missing:
            notes += self._needs()
        ids = make_commits(self.repo, self.base.commit, applier.commits())
        patches = tuple(_applied(step, commit) for (step, _), commit in zip(applier.made, ids, strict=True))
        before = [p.commit for p in patches if p.role is Blame.PREREQUISITE]
        return ApplyResult(
            state=ApplyState.APPLIED_WITH_FUZZ if applier.fuzzy else ApplyState.APPLIED,
            summary=self._summary(patches),
            base_commit=self.base.commit,
            prerequisite_commit=before[-1] if before else self.base.commit,
            tip_commit=ids[-1],
            patches=patches,
            evidence=tuple(notes),
        )

    def _needs(self) -> list[str]:
        # Names that no patch defines and base does not know: what a missing part or prerequisite would bring.
        files = [f for s in self.steps for f in s.diff.files]
        names = undefined_candidates(files)
        folders = {f.path.rpartition("/")[0] for f in files}
        known = known_names(self.repo, self.base.commit, names, folders, self.scratch) if names else set()
        lacking = [name for name in names if name not in known]
        return [f"needs {name}: used, but neither in {self.base.tree} nor in the patches" for name in lacking]

    def _summary(self, patches: Sequence[AppliedPatch]) -> str:
        own = sum(1 for p in patches if p.role is Blame.SERIES)
        words = [f"{own} patch{'es' * (own != 1)} applied to {self.base.tree} {self.base.describe}"]
        if others := len(patches) - own:
            words.append(f"after {others} prerequisite{'s' * (others != 1)}")
        if self.applier.fuzzy:
            words.append(f"WITH FUZZ in {len(self.applier.fuzzy)}")
        if self.applier.already:
            words.append(f"{len(self.applier.already)} in the tree already")
        if self.series.missing:
            words.append(f"the series is incomplete ({self.series.missing_ranges} of {self.series.total} missing)")
        if self.unmet:
            words.append(f"{len(self.unmet)} prerequisites not found")
        return ", ".join(words)

    def _state(
        self,
        state: ApplyState,
        summary: str,
        *,
        failures: tuple[HunkFailure, ...] = (),
        evidence: tuple[str, ...] = (),
    ) -> ApplyResult:
        return ApplyResult(
            state=state, summary=summary, base_commit=self.base.commit, failures=failures, evidence=evidence
        )


def _flowed(step: Step) -> str:
    return next((f" ({note})" for note in step.patch.notes if "format=flowed" in note), "")


def _parts(numbers: Sequence[int]) -> str:
    listed = ", ".join(map(str, numbers[:_SHOWN])) + (", …" if len(numbers) > _SHOWN else "")
    return f"patch {listed}" if len(numbers) == 1 else f"patches {listed}"


def _applied(step: Step, commit: str) -> AppliedPatch:
    return AppliedPatch(
        subject=step.patch.subject,
        commit=commit,
        role=step.role,
        files=tuple(dict.fromkeys(f.path for f in step.diff.files)),
        insertions=sum(len(f.lines("+")) for f in step.diff.files),
        deletions=sum(len(f.lines("-")) for f in step.diff.files),
    )


def _facts(result: ApplyResult) -> tuple[tuple[str, str], ...]:
    facts = [("state", result.state.value), ("base", result.base_commit)]
    if result.applied:
        facts.append(("patched", result.tip_commit))
        facts += [("note", line) for line in result.evidence]
    return (*facts, *((p.role.value, f"{p.commit[:12]} {p.subject}") for p in result.patches[:50]))


def _excerpt(result: ApplyResult) -> str:
    parts = [
        f"{f.file}, hunk {f.hunk} {f.header}\n{f.reason}\n{f.difference}".rstrip() for f in result.failures[:_SHOWN]
    ]
    return "\n\n".join(parts or result.evidence[:20]) if not result.applied else ""
