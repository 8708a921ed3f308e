"""The answer of a run as a reader asks for it: what the series breaks, what holds, what could not be told.

In: a Report. Out: one sentence, and lists of lines with the place of the page that tells more. Pure; foreign text is
still as it came, each renderer makes it safe for its medium.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from reviewbot.model import (
    BETTER_BASE,
    ApplyState,
    Blame,
    Case,
    Finding,
    Origin,
    Report,
    StageResult,
    Status,
    VerdictKind,
)
from reviewbot.report.clean import count
from reviewbot.report.view import LOOK_MAX, attribution, counted, place, repeats, to_look_at, uncounted

if TYPE_CHECKING:
    from collections.abc import Iterable

# A fact of a stage whose name has these words says what the stage did not do.
_UNTOLD_FACTS = ("not verified", "not exercised", "not compiled", "did not stick")
_PREPARE = frozenset({"intake", "base", "apply", "configure"})
_NO_ANSWER = {
    ApplyState.DOES_NOT_APPLY: "The series does not apply, so nothing was tested.",
    ApplyState.ALREADY_MERGED: "The series is already in this tree.",
    ApplyState.INCOMPLETE: "The series is incomplete and could not be applied, so nothing was tested.",
    ApplyState.BLOCKED: "The series needs a prerequisite that is not there, so nothing was tested.",
    ApplyState.OTHER_PROJECT: "The series is for another project, so nothing was tested.",
    ApplyState.MALFORMED: "The patch text is damaged, so nothing was tested.",
    ApplyState.HOSTILE: "The patch was refused as hostile, so nothing was tested.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One line of the answer. anchor names the place of the page that tells more, or is empty."""

    text: str
    status: Status
    anchor: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer of a run: one sentence, then what stands behind it."""

    headline: str
    breaks: tuple[Item, ...]
    doubts: tuple[Item, ...]
    holds: tuple[Item, ...]
    untold: tuple[Item, ...]
    elsewhere: tuple[Item, ...]


def answer(report: Report) -> Answer:
    """Return the answer; every list is complete and in the order of the stages."""
    stages = list(enumerate(report.stages))
    return Answer(
        headline=headline(report),
        breaks=tuple(item for i, s in stages for item in _breaks(i, s)),
        doubts=tuple(item for i, s in stages for item in _doubts(i, s)),
        holds=tuple(item for i, s in stages for item in _holds(i, s)),
        untold=(*_untold(report), *_unseen(report)),
        elsewhere=tuple(item for i, s in stages for item in _elsewhere(i, s)),
    )


def headline(report: Report) -> str:
    """Return the verdict as one plain sentence."""
    if report.verdict is VerdictKind.PASS:
        return "Nothing that this series breaks was found."
    if report.verdict is VerdictKind.WARN:
        return "Nothing is known to break; a reader should look at something."
    if report.verdict is VerdictKind.FAIL:
        return f"This series breaks {_broken_things(report.stages)}."
    if report.apply is not None and not report.apply.applied:
        return _NO_ANSWER[report.apply.state]
    if not report.run.finished:
        stopped = report.run.stopped_by
        return f"No answer: the run was stopped by {stopped}." if stopped else "No answer yet: the run is unfinished."
    return "No answer: what was asked for could not be tested."


def _broken_things(stages: tuple[StageResult, ...]) -> str:
    broken = [s for s in stages if s.status is Status.FAIL or any(_breaks(0, s))]
    words = []
    for stage in broken:
        failing = sum(case.counts for case in stage.cases)
        rules = len({f.rule for f in stage.findings if f.counts and f.cases and f.severity is Status.FAIL})
        cases = count(failing, "test case")
        many = f"{count(rules, 'rule')} in {cases}" if rules else cases
        words.append(many if failing else f"the {stage.stage}")
    return " and ".join(words[-2:]) if len(words) <= 2 else f"{', '.join(words[:-1])} and {words[-1]}"


def _breaks(index: int, stage: StageResult) -> Iterable[Item]:
    findings = [f for f in stage.findings if f.counts and f.severity is Status.FAIL]
    cases = [c for c in stage.loose if c.counts]
    yield from _finding_items(index, stage, findings, Status.FAIL)
    yield from _case_items(index, stage, cases, Status.FAIL)
    if stage.status is Status.FAIL and not findings and not cases:
        yield Item(text=f"{stage.stage}: {stage.summary}", status=Status.FAIL, anchor=f"stage-{index}")


def _doubts(index: int, stage: StageResult) -> Iterable[Item]:
    findings = [f for f in counted(stage) if f.severity is not Status.PASS]
    findings = [f for f in findings if not (f.counts and f.severity is Status.FAIL)]
    cases = [c for c in to_look_at(stage) if not c.counts and attribution(c) in ("", "flaky", "origin unknown")]
    cases = [c for c in cases if c.patched is not Status.ERROR]
    yield from _finding_items(index, stage, findings, Status.WARN)
    yield from _case_items(index, stage, cases, Status.WARN)
    if stage.status is Status.WARN and not findings and not cases:
        yield Item(text=f"{stage.stage}: {stage.summary}", status=Status.WARN, anchor=f"stage-{index}")


def _finding_items(index: int, stage: StageResult, findings: list[Finding], status: Status) -> Iterable[Item]:
    places = {id(f): n for n, f in enumerate(counted(stage)[:LOOK_MAX])}
    for finding in findings:
        where = place(finding)
        flaky = " (flaky)" if finding.origin is Origin.FLAKY else ""
        cases = f" ({count(len(finding.cases), 'case')})" if finding.cases else ""
        text = f"{where}: {finding.title}{flaky}{cases}" if where else f"{finding.title}{flaky}{cases}"
        shown = places.get(id(finding))
        yield Item(text=text, status=status, anchor=f"stage-{index}" + ("" if shown is None else f"-finding-{shown}"))


def _case_items(index: int, stage: StageResult, cases: list[Case], status: Status) -> Iterable[Item]:
    places = {id(c): n for n, c in enumerate(to_look_at(stage)[:LOOK_MAX])}
    for case in cases:
        lost = "passes on base, is skipped on patched" if case.lost else ""
        why = (
            case.reason
            if case.counts
            else ", ".join(w for w in (lost, attribution(case), repeats(case), case.reason) if w)
        )
        shown = places.get(id(case))
        yield Item(
            text=f"{case.name}: {why}" if why else case.name,
            status=status,
            anchor=f"stage-{index}" + ("" if shown is None else f"-case-{shown}"),
        )


def _repaired(case: Case) -> bool:
    return case.origin is Origin.FIXED and case.blame is Blame.SERIES


def _holds(index: int, stage: StageResult) -> Iterable[Item]:
    passed = sum(c.patched is Status.PASS for c in stage.cases)
    texts = []
    if stage.cases and passed and stage.status is not Status.PASS:
        texts.append(f"{passed:,} of {count(len(stage.cases), 'case')} pass on patched")
    elif stage.status is Status.PASS and stage.stage not in _PREPARE:
        texts.append(stage.summary)
    fixed = [
        (count(sum(_repaired(c) for c in stage.cases), "case"), "that base fails"),
        (count(sum(f.origin is Origin.FIXED for f in stage.findings), "finding"), "of base"),
    ]
    texts += [f"fixes {many} {whose}" for many, whose in fixed if not many.startswith("0 ")]
    for text in texts:
        yield Item(text=f"{stage.stage}: {text}", status=Status.PASS, anchor=f"stage-{index}")


def _untold(report: Report) -> Iterable[Item]:
    # Stages that did not run for the same reason make one line. That a series does not apply is said by the headline.
    known = "apply" if report.apply is not None and not report.apply.applied else ""
    stages = [(i, stage) for i, stage in enumerate(report.stages) if stage.stage != known]
    for (status, summary), same in groupby(stages, key=lambda pair: (pair[1].status, pair[1].summary)):
        members = list(same)
        if status in (Status.SKIP, Status.ERROR):
            names = ", ".join(stage.stage for _, stage in members)
            what = "did not run" if status is Status.SKIP else "did not finish"
            text = f"{names} {what}: {summary.removeprefix('not run: ')}"
            yield Item(text=text, status=status, anchor=f"stage-{members[0][0]}")
        for index, stage in members:
            yield from _unheard(index, stage)


def _unheard(index: int, stage: StageResult) -> Iterable[Item]:
    for name, value in stage.facts:
        if value and any(words in name for words in _UNTOLD_FACTS):
            yield Item(text=f"{stage.stage}: {name}: {value}", status=Status.SKIP, anchor=f"stage-{index}")
    unheard = Counter(
        (c.patched, c.reason) for c in stage.cases if c.patched in (Status.SKIP, Status.ERROR) and not c.lost
    )
    for (status, reason), number in unheard.items():
        what = "skipped" if status is Status.SKIP else "without a result"
        text = f"{stage.stage}: {count(number, 'case')} {what}{': ' + reason if reason else ''}"
        yield Item(text=text, status=status, anchor=f"stage-{index}")


def _unseen(report: Report) -> Iterable[Item]:
    if report.series is not None and report.series.missing:
        yield Item(
            text=f"Patches {report.series.missing_ranges} of {report.series.total} were not given", status=Status.SKIP
        )
    if not report.run.finished:
        yield Item(text="The run is unfinished: stages that are not listed have not run", status=Status.ERROR)
    if report.base is not None and not report.base.verified:
        text = "The base has no history: that its commit is the one the author used cannot be checked"
        yield Item(text=text, status=Status.SKIP)
    for line in report.base.candidates if report.base is not None else ():
        if line.startswith(BETTER_BASE):
            yield Item(text=line[:1].upper() + line[1:], status=Status.SKIP, anchor="base")


def _elsewhere(index: int, stage: StageResult) -> Iterable[Item]:
    others: list[Case | Finding] = [*uncounted(stage), *(c for c in to_look_at(stage) if not c.counts)]
    for words, number in Counter(attribution(thing) for thing in others).items():
        if words not in ("", "flaky", "origin unknown", "introduced", "fixed"):
            yield Item(text=f"{stage.stage}: {number:,} {words}", status=Status.SKIP, anchor=f"stage-{index}")
