"""A Report in the order in which a reader looks at it: cases in groups, findings by whether they count, the words.

Pure; foreign text is still as it came, each renderer makes it safe for its medium.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from reviewbot.model import Blame, Case, Finding, Origin, Report, StageResult, Status
from reviewbot.report.clean import count

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reviewbot.model import SourceLine

GROUP_MAX = 60  # cases of a group before it is divided
LOOK_MAX = 20  # failing cases, findings and hunks of a stage that are shown in full
Tally: TypeAlias = "tuple[tuple[Status, int], ...]"

_ORDER = {Status.FAIL: 0, Status.ERROR: 1, Status.WARN: 2, Status.SKIP: 3, Status.PASS: 4}
_SEPARATOR = re.compile(r"[./:]")
_QUIET = (Status.PASS, Status.SKIP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Cases whose names begin alike: the ones to look at, and the rest, which passed or were skipped.

    The tallies say (status on patched, how many), of all and of the rest.
    """

    name: str
    look: tuple[Case, ...]
    rest: tuple[Case, ...]

    @property
    def tally(self) -> Tally:
        """How many cases have which status on patched."""
        return _tally((*self.look, *self.rest))

    @property
    def rest_tally(self) -> Tally:
        """The same without the cases to look at."""
        return _tally(self.rest)


def series_name(report: Report) -> str:
    """Return revision and part of the series: ``v2, patch 3 of 8``, ``v1, 4 patches``; empty without a series."""
    if report.series is None:
        return ""
    given, total = len(report.series.patches), report.series.total
    if given == 1 and total > 1:
        part = f"patch {report.series.patches[0].number} of {total}"
    elif report.series.missing:
        part = f"{given} of {total} patches"
    else:
        part = count(given, "patch", "patches")
    return f"v{report.series.revision}, {part}"


def groups(cases: Iterable[Case]) -> tuple[Group, ...]:
    """Return the cases grouped by the first part of their names (up to ``.``, ``/`` or ``:``), failing groups first.

    A group of more than GROUP_MAX cases is divided by the second part.
    """
    made = []
    for name, members in _by_prefix(cases, 1).items():
        parts = _by_prefix(members, 2) if len(members) > GROUP_MAX else {name: members}
        made += [_group(part, some) for part, some in parts.items()]
    return tuple(sorted(made, key=lambda g: _rank((*g.look, *g.rest)[0])))


def to_look_at(stage: StageResult) -> tuple[Case, ...]:
    """Return the cases that neither passed nor were skipped, or that only base ran, and that no finding stands for."""
    return _look(stage.loose)


def counted(stage: StageResult) -> tuple[Finding, ...]:
    """Return the findings to look at: introduced or flaky, and of the series or nobody known; failing ones first."""
    return tuple(sorted((f for f in stage.findings if _ours(f)), key=lambda f: (not f.counts, _ORDER[f.severity])))


def uncounted(stage: StageResult) -> tuple[Finding, ...]:
    """Return the other findings: pre-existing, fixed, or of a prerequisite."""
    return tuple(f for f in stage.findings if not _ours(f))


def cases_of(stage: StageResult, finding: Finding) -> tuple[Case, ...]:
    """Return the cases that a finding stands for."""
    names = frozenset(finding.cases)
    return tuple(case for case in stage.cases if case.name in names)


def by_file(lines: Iterable[SourceLine]) -> tuple[tuple[tuple[int, str], tuple[SourceLine, ...]], ...]:
    """Return lines of a series by (patch, file), in their order, without the tabs that those of a function share."""
    made: dict[tuple[int, str], list[SourceLine]] = {}
    depth: dict[tuple[str, str], int] = {}
    lines = tuple(lines)
    for line in lines:
        tabs = len(line.text) - len(line.text.lstrip("\t"))
        depth[line.file, line.function] = min(tabs, depth.get((line.file, line.function), tabs))
    for line in lines:
        shown = replace(line, text=line.text[depth[line.file, line.function] :])
        made.setdefault((line.patch, line.file), []).append(shown)
    return tuple((key, tuple(some)) for key, some in made.items())


def weight(finding: Finding) -> str:
    """Return how grave a finding is in a word: ``fail``, ``warn``, or ``note`` for one that nothing hangs on."""
    return "note" if finding.severity is Status.PASS else finding.severity.value


def place(finding: Finding) -> str:
    """Return ``file:line`` as far as it is known."""
    return f"{finding.file}:{finding.line}" if finding.file and finding.line else finding.file


def repeats(case: Case) -> str:
    """Return ``2 of 2 runs`` for a case that failed, and was repeated on patched, where its reason does not say so."""
    text = f"{case.failures} of {case.runs} runs" if case.runs > 1 and case.failures else ""
    return "" if text in case.reason else text


def attribution(thing: Case | Finding) -> str:
    """Return in a word or two whose a case or finding is: ``introduced``, ``pre-existing``, ``from a prerequisite``."""
    if thing.origin is Origin.INTRODUCED and thing.blame is not Blame.SERIES:
        return {Blame.PREREQUISITE: "from a prerequisite", Blame.BASE: "from base"}.get(thing.blame, "origin unknown")
    return thing.origin.value if thing.origin else ""


def _ours(finding: Finding) -> bool:
    seen = finding.origin in (Origin.INTRODUCED, Origin.FLAKY)
    return seen and finding.blame in (Blame.SERIES, Blame.UNKNOWN)


def _rank(case: Case) -> tuple[bool, int]:
    return (not case.counts, _ORDER[case.patched])


def _by_prefix(cases: Iterable[Case], depth: int) -> dict[str, list[Case]]:
    made: dict[str, list[Case]] = {}
    for case in cases:
        cuts = [match.start() for match in _SEPARATOR.finditer(case.name, 1)]
        made.setdefault(case.name[: cuts[min(depth, len(cuts)) - 1]] if cuts else "", []).append(case)
    return made


def _group(name: str, members: list[Case]) -> Group:
    rest = (case for case in members if case.patched in _QUIET and not case.lost)
    return Group(name=name, look=_look(members), rest=tuple(sorted(rest, key=_rank)))


def _look(cases: Iterable[Case]) -> tuple[Case, ...]:
    return tuple(sorted((c for c in cases if c.patched not in _QUIET or c.lost), key=_rank))


def _tally(cases: Iterable[Case]) -> Tally:
    return tuple(sorted(Counter(c.patched for c in cases).items(), key=lambda pair: _ORDER[pair[0]]))
