"""What is refused before anything is written: hostile paths, diffs that are none, patches for another project.

In: the steps of a whole series and the commit that they are for. Out: a Refusal, or None.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reviewbot.model import ApplyState, Blame, HunkFailure
from reviewbot.parse.diagnose import whole_file
from reviewbot.parse.hostile import offences, parents, shown
from reviewbot.parse.links import leaving
from reviewbot.parse.patch import CUT_NOTE
from reviewbot.parse.project import other_project
from reviewbot.tools.applier import paths_of
from reviewbot.tools.objects import link_entries, read_objects, root_names, tree_entries

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from reviewbot.model import Series
    from reviewbot.tools.applier import Step
    from reviewbot.tools.objects import TreeEntry

_LINK = "120000"
_MOST = 50


@dataclass(frozen=True, slots=True)
class Refusal:
    """The state, why in one line, further lines of evidence, and the hunks that have no place."""

    state: ApplyState
    text: str
    evidence: tuple[str, ...] = ()
    failures: tuple[HunkFailure, ...] = ()


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
    if other := _other_project(repo, commit, series, steps, entries.keys()):
        return Refusal(ApplyState.OTHER_PROJECT, f"not for this tree: {other}")
    return _under_a_file(steps, {p: m for p, m in modes.items() if p in above})


def _other_project(repo: Path, commit: str, series: Series, steps: Sequence[Step], existing: Collection[str]) -> str:
    files = [file for step in steps if step.role is Blame.SERIES for file in step.diff.files]
    touched = {path for file in files for path in (file.old, file.new) if path}
    expected = {file.old for file in files if file.old} - {file.new for file in files if not file.old}
    known = touched & set(existing)
    return other_project(series, touched, known, root_names(repo, commit), expects=bool(expected))


def link_refusal(
    repo: Path,
    commit: str,
    start: Mapping[str, TreeEntry],
    made: Sequence[tuple[Step, Mapping[str, TreeEntry | None]]],
) -> Refusal | None:
    """Return why what the steps made of the commit's symbolic links is refused, or None.

    start has the entries that the commit has at the touched paths; made are the steps with the entries they changed.
    Each patched tree is judged, with every link in it: what one patch does to a link turns where the others lead.
    """
    if not any(_is_link(e) or _is_link(start.get(p)) for _, changed in made for p, e in changed.items()):
        return None
    links = link_entries(repo, commit)
    made_links = {e.oid for _, changed in made for e in changed.values() if e is not None and _is_link(e)}
    texts = _targets(repo, made_links | {e.oid for e in links.values()})
    before = leaving({path: texts[entry.oid] for path, entry in links.items()})
    for step, changed in made:
        for path, entry in changed.items():
            links.pop(path, None)
            if entry is not None and _is_link(entry):
                links[path] = entry
        after = leaving({path: texts[entry.oid] for path, entry in links.items()})
        if bad := [f"{step.label}: {shown(p)}: {why}" for p, why in after.items() if before.get(p) != why]:
            return Refusal(ApplyState.HOSTILE, f"refused: {bad[0]}", tuple(bad[:_MOST]))
    return None


def _is_link(entry: TreeEntry | None) -> bool:
    return entry is not None and entry.mode == _LINK


def _targets(repo: Path, oids: set[str]) -> dict[str, str]:
    # An object that is not there has no target, which no link may have.
    wanted = sorted(oids)
    found = zip(wanted, read_objects(repo, wanted), strict=True)
    return {oid: one.data.decode("utf-8", "surrogateescape") if one else "" for oid, one in found}


def _no_diff(steps: Sequence[Step]) -> Refusal | None:
    for step in steps:
        if cut := next((note for note in step.patch.notes if note.startswith(CUT_NOTE)), None):
            return Refusal(ApplyState.INCOMPLETE, f"{step.label}: {cut}")
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
                why = f"{shown(under)} is a file in the tree, not a folder"
                failures = (whole_file(step.patch.subject, file, why),)
                return Refusal(ApplyState.DOES_NOT_APPLY, text, failures=failures)
    return None
