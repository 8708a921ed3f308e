"""From the results of the stages to the one answer of a run.

In: the StageResults so far, and what became of applying the series. Out: a Verdict, its reasons most important first,
one plain line each. Pure. The rules:

- FAIL: the series applied, and a stage fails, or something that the series introduced breaks a rule. - INCONCLUSIVE:
nothing fails, and the question has no answer: the series was not applied, nothing was tested, a required stage is
absent, was skipped or did not finish, a case has no result, or the run is unfinished. - WARN: the question has an
answer, and a reader should look at something. - PASS: none of these. Absence never passes.

Further kernels (stages variants, coverage, debug) are not required: what they show counts, and one that did not
finish is a WARN with its reason, never silent.

What a prerequisite introduced and what base has already never counts. An incomplete series that applies (patch 3 of
8) is judged by what was given: the missing patches are a reason that is always said, not a WARN, because the reader
knows what they gave, and a WARN on every such run would hide the ones that ask for a look at the code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reviewbot.model import ApplyState, Blame, Origin, Status, Verdict, VerdictKind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from reviewbot.model import ApplyResult, Case, Finding, Series, StageResult

REQUIRED = ("apply", "build", "boot", "selftest")
EXIT_STATUS = {VerdictKind.PASS: 0, VerdictKind.WARN: 0, VerdictKind.FAIL: 1, VerdictKind.INCONCLUSIVE: 3}

# Stages that prepare a test; a run that has only these has tested nothing.
_PREPARE = frozenset({"intake", "base", "apply", "configure"})
_IMPORTANCE = {"boot": 0, "build": 1, "selftest": 2, "variants": 3, "debug": 3, "configure": 3, "apply": 3}
_RAN = (Status.PASS, Status.WARN, Status.FAIL)
_ITEMS_MAX = 10
_LINE_MAX = 400
_STATE_WORDS = {
    ApplyState.DOES_NOT_APPLY: "The series does not apply",
    ApplyState.ALREADY_MERGED: "The series is already in the tree",
    ApplyState.INCOMPLETE: "The series is incomplete and cannot be applied",
    ApplyState.BLOCKED: "The series needs a prerequisite that is not there",
    ApplyState.OTHER_PROJECT: "The series is for another project",
    ApplyState.MALFORMED: "The patch text is malformed",
    ApplyState.HOSTILE: "The patch was refused as hostile",
}


def judge(
    stages: Sequence[StageResult],
    apply: ApplyResult | None,
    *,
    required: Collection[str] = REQUIRED,
    series: Series | None = None,
    finished: bool = True,
    stopped_by: str = "",
) -> Verdict:
    """Return the verdict on the stages that have ended so far.

    apply is None as long as the series was not applied. required names the stages that must be there; one that is
    there with ``required=False`` may be skipped. series adds the note on patches that the input does not have.
    finished is False while stages are still to come, and stopped_by says what ended such a run.
    """
    ordered = sorted(stages, key=lambda s: _IMPORTANCE.get(s.stage, 4))
    broken = [line for stage in ordered for line in _broken(stage)]
    untold = [*_unfinished(stages, required, finished, stopped_by), *_untold(stages)]
    doubts = [line for stage in ordered for line in _doubts(stage)]
    notes = _notes(stages, series)
    if apply is None or not apply.applied:
        tested = [f"{s.stage}: {s.summary}" for s in stages if s.status in _RAN and s.stage not in _PREPARE]
        first = _not_applied(apply, stages, finished, stopped_by)
        return _verdict(VerdictKind.INCONCLUSIVE, [*first, *broken, *doubts, *tested, *notes])
    if apply.state is ApplyState.APPLIED_WITH_FUZZ:
        doubts.append(f"The series applied only with fuzz: {apply.summary}")
    if broken:
        return _verdict(VerdictKind.FAIL, [*broken, *untold, *doubts, *notes])
    if not untold and not any(s.status in _RAN and s.stage not in _PREPARE for s in stages):
        untold.append("Nothing was tested")
    if untold:
        return _verdict(VerdictKind.INCONCLUSIVE, [*untold, *doubts, *notes])
    if doubts:
        return _verdict(VerdictKind.WARN, [*doubts, *notes])
    passed = [f"{s.stage}: {s.summary}" for s in stages if s.status is Status.PASS and s.stage not in _PREPARE]
    return _verdict(VerdictKind.PASS, [*passed, *notes])


def _verdict(kind: VerdictKind, lines: Iterable[str]) -> Verdict:
    # One line a reason whatever the text holds, and the same line once.
    return Verdict(kind=kind, reasons=tuple(dict.fromkeys(_line(line) for line in lines)))


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LINE_MAX else line[: _LINE_MAX - 2] + " …"


def _not_applied(
    apply: ApplyResult | None, stages: Sequence[StageResult], finished: bool, stopped_by: str
) -> list[str]:
    if apply is not None:
        words = _STATE_WORDS[apply.state]
        detail = apply.summary.removeprefix(apply.state.value).removeprefix(words).lstrip(" :,;")
        hunks = [
            f"{f.file}: hunk {f.hunk} at line {f.line}: {f.reason or 'its context is not in the tree'}"
            for f in apply.failures
        ]
        return [f"{words}: {detail}" if detail else words, *_capped(hunks, "hunks")]
    why = [*(line for stage in stages for line in _broken(stage)), *_untold(stages)]
    if not finished and not stopped_by:
        return ["The run is unfinished: the series is not applied yet", *why]
    return [f"The run ended before the series was applied{': stopped by ' + stopped_by if stopped_by else ''}", *why]


def _broken(stage: StageResult) -> list[str]:
    cases = [_case_line(stage, c) for c in stage.loose if c.counts]
    findings = [_finding_line(stage, f) for f in stage.findings if f.counts and f.severity is Status.FAIL]
    if stage.status is not Status.FAIL and not cases and not findings:
        return []
    return _with_summary(stage, [*_capped(findings, "findings"), *_capped(cases, "cases")])


def _with_summary(stage: StageResult, items: list[str]) -> list[str]:
    return items if len(items) == 1 else [f"{stage.stage}: {stage.summary}", *items]


def _unfinished(
    stages: Sequence[StageResult], required: Collection[str], finished: bool, stopped_by: str
) -> Iterable[str]:
    there = {s.stage for s in stages}
    absent = [name for name in required if name not in there]
    if not finished:
        yield f"The run is unfinished{': stopped by ' + stopped_by if stopped_by else ''}"
    if absent:
        yield f"{', '.join(absent)} {'has' if len(absent) == 1 else 'have'} not run"


def _untold(stages: Sequence[StageResult]) -> list[str]:
    # What did not finish comes before what was skipped because of it; stages with the same reason make one line.
    lines = []
    for status, words in ((Status.ERROR, "did not finish"), (Status.SKIP, "did not run")):
        reasons: dict[str, list[str]] = {}
        for stage in stages:
            if stage.required and stage.status is status:
                reasons.setdefault(stage.summary.removeprefix("not run: "), []).append(stage.stage)
        lines += [f"{', '.join(names)} {words}: {summary}" for summary, names in reasons.items()]
    return [*lines, *(line for stage in stages if stage.required for line in _unheard(stage))]


def _unheard(stage: StageResult) -> Iterable[str]:
    # Cases that were asked for and have no result.
    ended = stage.status not in (Status.SKIP, Status.ERROR)
    if ended and stage.cases and all(c.patched not in _RAN for c in stage.cases):
        yield f"{stage.stage}: none of its {len(stage.cases)} cases ran on patched"
    lost = [_case_line(stage, c) for c in stage.cases if c.patched is Status.ERROR and c.base is not Status.ERROR]
    yield from _capped(lost, "cases without a result")


def _doubts(stage: StageResult) -> list[str]:
    lines = [_case_line(stage, c) for c in stage.loose if _case_is_doubtful(stage, c)]
    lines = _capped(lines, "cases")
    lines += _capped([_finding_line(stage, f) for f in stage.findings if _finding_is_doubtful(f)], "findings")
    if stage.status is Status.WARN:
        return _with_summary(stage, lines)
    if stage.status is Status.ERROR and not stage.required:
        return [f"{stage.stage} did not finish: {stage.summary}", *lines]
    return lines


def _case_is_doubtful(stage: StageResult, case: Case) -> bool:
    if case.counts or case.blame in (Blame.PREREQUISITE, Blame.BASE):
        return False
    if case.origin in (Origin.PRE_EXISTING, Origin.FIXED):
        return False
    if case.patched is Status.ERROR:
        return case.base is Status.ERROR or not stage.required
    return case.lost or case.origin is Origin.FLAKY or case.patched in (Status.FAIL, Status.WARN)


def _finding_is_doubtful(finding: Finding) -> bool:
    if finding.severity not in (Status.FAIL, Status.WARN, Status.ERROR):
        return False
    if finding.counts:
        return finding.severity is not Status.FAIL
    ours = finding.blame in (Blame.SERIES, Blame.UNKNOWN)
    return ours and finding.origin in (Origin.INTRODUCED, Origin.FLAKY)


def _notes(stages: Sequence[StageResult], series: Series | None) -> list[str]:
    lines = []
    if series is not None and series.missing:
        lines.append(
            f"The series is incomplete: {len(series.patches)} of {series.total} patches given;"
            f" not seen: {series.missing_ranges}"
        )
    for stage in stages:
        if stage.status is Status.SKIP and not stage.required:
            lines.append(f"{stage.stage} did not run: {stage.summary.removeprefix('not run: ')}")
        skipped = sum(c.patched is Status.SKIP for c in stage.cases)
        if skipped:
            lines.append(f"{stage.stage}: {skipped} of {len(stage.cases)} cases were skipped on patched")
    return lines


_VERBS = {
    Status.PASS: "passes",
    Status.WARN: "warns",
    Status.FAIL: "fails",
    Status.SKIP: "is skipped",
    Status.ERROR: "does not finish",
}


def _case_line(stage: StageResult, case: Case) -> str:
    runs = f"{case.failures} of {case.runs} runs" if case.runs > 1 and case.failures else ""
    repeats = f" in {runs}" if runs and runs not in case.reason else ""
    why = f": {case.reason}" if case.reason else ""
    return f"{stage.stage}: {case.name} {_VERBS[case.patched]} on patched{repeats}, {_VERBS[case.base]} on base{why}"


def _finding_line(stage: StageResult, finding: Finding) -> str:
    place = finding.file + (f":{finding.line}" if finding.file and finding.line else "")
    where = f"{place}: " if place else ""
    inside = f" (in {finding.function})" if finding.function and finding.function not in finding.title else ""
    flaky = " (flaky)" if finding.origin is Origin.FLAKY else ""
    cases = f" ({len(finding.cases)} case{'s' if len(finding.cases) > 1 else ''})" if finding.cases else ""
    return f"{stage.stage}: {where}{finding.title}{inside}{flaky}{cases}"


def _capped(lines: list[str], what: str) -> list[str]:
    left = len(lines) - _ITEMS_MAX
    return lines if left <= 0 else [*lines[:_ITEMS_MAX], f"… and {left:,} more {what}"]
