"""What is refused before anything is written: hostile paths, diffs that are none, patches for another project.

In: the steps of a whole series and the commit that they are for. Out: a Refusal, or None.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reviewbot.model import ApplyState
from reviewbot.parse.hostile import offences, parents, shown
from reviewbot.parse.project import other_project
from reviewbot.tools.applier import paths_of
from reviewbot.tools.objects import root_names, tree_entries

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from reviewbot.model import Series
    from reviewbot.tools.applier import Step

_MOST = 50


@dataclass(frozen=True, slots=True)
class Refusal:
    """The state, why in one line, and further lines of evidence."""

    state: ApplyState
    text: str
    evidence: tuple[str, ...] = ()


def refusal(repo: Path, commit: str, series: Series, steps: Sequence[Step]) -> Refusal | None:
    """Return why the steps must not be applied to the commit, or None when they may be tried."""
    paths = paths_of(steps)
    safe = {p for p in paths if ".." not in p.split("/") and not p.startswith("/")}
    above = {parent for p in safe for parent in parents(p)}
    entries = tree_entries(repo, commit, safe | above)
    modes = {path: entry.mode for path, entry in entries.items()}
    if bad := offences([s.diff.files for s in steps], modes):
        return Refusal(ApplyState.HOSTILE, f"refused: {bad[0]}", tuple(bad[:_MOST]))
    if found := _no_diff(steps):
        return found
    touched = {path for patch in series.patches for path in patch.files}
    if other := other_project(series, touched & entries.keys(), root_names(repo, commit)):
        return Refusal(ApplyState.OTHER_PROJECT, f"not for this tree: {other}")
    return _under_a_file(steps, {p: m for p, m in modes.items() if p in above})


def _no_diff(steps: Sequence[Step]) -> Refusal | None:
    for step in steps:
        combined = next((f for f in step.diff.files if f.status == "combined"), None)
        if combined is not None:
            text = f"{step.label}: combined (merge) diffs cannot be applied ({shown(combined.path)})"
            return Refusal(ApplyState.MALFORMED, text)
        if not step.diff.files:
            return Refusal(ApplyState.MALFORMED, f"{step.label}: holds no diff")
    return None


def _under_a_file(steps: Sequence[Step], modes: Mapping[str, str]) -> Refusal | None:
    blobs = {path for path, mode in modes.items() if mode not in ("040000", "120000")}
    for step in steps:
        for file in step.diff.files:
            if under := next((p for p in parents(file.path) if p in blobs), None):
                text = f"{step.label}: {shown(file.path)}: {shown(under)} is a file in the tree"
                return Refusal(ApplyState.DOES_NOT_APPLY, text)
    return None
