"""Two revisions of a series: which patch became which, and what changed in it; which earlier findings are gone.

In: two Series, or the findings of two runs. Out: PatchChanges in the order of the new series, dropped patches last.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reviewbot.model import Finding, Origin, Status
from reviewbot.parse.patchid import patch_id

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from reviewbot.model import Patch, Report, Series

_ALIKE = 0.5
_SHOWN_LINES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchChange:
    """One patch in both revisions. old and new are 1-based places, 0 where it is not.

    kind is "same", "reworded" (same diff, other text), "rebased" (same changed lines, other context), "changed", "new"
    or "dropped". difference is a unified diff of the two, log first, empty for same, new and dropped.
    """

    kind: str
    old: int
    new: int
    subject: str
    difference: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Addressed:
    """The findings of an earlier run that are gone, that are still there, and those that are new."""

    gone: tuple[Finding, ...]
    still: tuple[Finding, ...]
    fresh: tuple[Finding, ...]


def compare_versions(old: Series, new: Series) -> tuple[PatchChange, ...]:
    """Return what became of each patch; they are matched by patch id, then by title, then by likeness."""
    pairs = _pairs(old.patches, new.patches)
    partner = {n: o for o, n in pairs}
    changes = [
        _change(old.patches[partner[n]], patch, partner[n] + 1, n + 1)
        if n in partner
        else PatchChange(kind="new", old=0, new=n + 1, subject=patch.subject)
        for n, patch in enumerate(new.patches)
    ]
    matched = {o for o, _ in pairs}
    dropped = [(o, p) for o, p in enumerate(old.patches) if o not in matched]
    changes += [PatchChange(kind="dropped", old=o + 1, new=0, subject=p.subject) for o, p in dropped]
    return tuple(changes)


def troubles(report: Report) -> list[Finding]:
    """Return what a run held against the series: its findings, and its failing cases as findings of their names."""
    found = [f for stage in report.stages for f in stage.findings if f.counts]
    cases = [case for stage in report.stages for case in stage.cases if case.counts]
    return found + [
        Finding(title=f"{case.name} fails", severity=Status.FAIL, origin=Origin.INTRODUCED, excerpt=case.excerpt)
        for case in cases
    ]


def addressed(old: Sequence[Finding], new: Sequence[Finding]) -> Addressed:
    """Compare the findings of two runs by identity (never by line); a finding that came twice counts twice."""
    left = [_identity(f) for f in new]
    gone, still = [], []
    for finding in old:
        key = _identity(finding)
        if key in left:
            left.remove(key)
            still.append(finding)
        else:
            gone.append(finding)
    fresh = []
    for finding in new:
        key = _identity(finding)
        if key in left:
            left.remove(key)
            fresh.append(finding)
    return Addressed(gone=tuple(gone), still=tuple(still), fresh=tuple(fresh))


def _identity(finding: Finding) -> tuple[str, str, str, str]:
    return (finding.rule, finding.file, finding.function, " ".join(finding.title.split()))


def _pairs(old: Sequence[Patch], new: Sequence[Patch]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    keys: tuple[Callable[[Patch], str], ...] = (lambda p: patch_id(p.diff), _title)
    for key in keys:
        taken_old, taken_new = {o for o, _ in found}, {n for _, n in found}
        names = {key(p): n for n, p in reversed(list(enumerate(new))) if n not in taken_new and key(p)}
        for o, patch in enumerate(old):
            n = names.pop(key(patch), None) if o not in taken_old else None
            if n is not None:
                found.append((o, n))
    return found + _alike(old, new, found)


def _title(patch: Patch) -> str:
    return re.sub(r"\W+", " ", patch.subject.lower()).strip()


def _alike(old: Sequence[Patch], new: Sequence[Patch], found: list[tuple[int, int]]) -> list[tuple[int, int]]:
    free_old = [o for o in range(len(old)) if o not in {a for a, _ in found}]
    free_new = [n for n in range(len(new)) if n not in {b for _, b in found}]
    lines = {("o", o): _changed(old[o].diff) for o in free_old} | {("n", n): _changed(new[n].diff) for n in free_new}
    scores = [(_likeness(lines["o", o], lines["n", n]), o, n) for o in free_old for n in free_new]
    out: list[tuple[int, int]] = []
    for score, o, n in sorted(scores, key=lambda s: (-s[0], s[1], s[2])):
        if score >= _ALIKE and o in free_old and n in free_new:
            free_old.remove(o)
            free_new.remove(n)
            out.append((o, n))
    return out


def _changed(diff: str) -> frozenset[str]:
    lines = diff.split("\n")
    return frozenset(x for x in lines if x[:1] in ("+", "-") and x.strip("+- \t") and not x.startswith(("+++", "---")))


def _likeness(one: frozenset[str], two: frozenset[str]) -> float:
    return 2 * len(one & two) / (len(one) + len(two)) if one or two else 0.0


def _change(old: Patch, new: Patch, at: int, to: int) -> PatchChange:
    same_diff = patch_id(old.diff) == patch_id(new.diff)
    same_text = (old.subject, old.message) == (new.subject, new.message)
    if same_diff:
        kind = "same" if same_text else "reworded"
    else:
        kind = "rebased" if _changed(old.diff) == _changed(new.diff) else "changed"
    difference = "" if kind == "same" else _difference(old, new, same_diff=same_diff)
    return PatchChange(kind=kind, old=at, new=to, subject=new.subject, difference=difference)


def _difference(old: Patch, new: Patch, *, same_diff: bool) -> str:
    one, two = (f"{p.subject}\n\n{p.message}" + ("" if same_diff else f"\n{_stable(p.diff)}") for p in (old, new))
    lines = list(difflib.unified_diff(one.split("\n"), two.split("\n"), "old", "new", lineterm="", n=2))
    more = [f"… {len(lines) - _SHOWN_LINES} more lines"] if len(lines) > _SHOWN_LINES else []
    return "\n".join(lines[:_SHOWN_LINES] + more)


def _stable(diff: str) -> str:
    # Line numbers and blob ids differ after each rebase and say nothing.
    diff = re.sub(r"(?m)^@@ -\S+ \+\S+ @@", "@@", diff)
    return re.sub(r"(?m)^index .*\n", "", diff)
