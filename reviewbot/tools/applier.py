"""Patches one by one onto a commit, and what git said to each; what a failure means is for the apply stage to say.

In: a bare repository, a commit and Steps. Out: an Outcome a step, and the entries that each step changed. The reverse
check comes before any fuzz: a patch that is in the tree already must not go in a second time somewhere else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reviewbot.model import Blame, Patch, Series
from reviewbot.parse.adapt import adapt
from reviewbot.parse.address import split_author
from reviewbot.parse.dates import commit_date
from reviewbot.parse.diff import ParsedDiff, parse_diff
from reviewbot.parse.hostile import shown
from reviewbot.parse.locate import NO_CONTEXT
from reviewbot.parse.place import in_place
from reviewbot.tools.patching import Attempt, Commit, SmallIndex, changes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from reviewbot.parse.diff import FileDiff
    from reviewbot.tools.objects import TreeEntry

# What make and Kconfig run at once when they read a file.
_RUN = ("$(shell", "$(success,", "$(failure,", "!=", "$(eval")
ALREADY_IN = "in the tree already"
_FLAGGED = (".gitattributes", ".gitmodules", ".gitignore", ".b4-config")


@dataclass(frozen=True, slots=True)
class Step:
    """One patch on its way: whose it is, its place in the series as a reader names it, and its diff."""

    patch: Patch
    role: Blame
    label: str
    diff: ParsedDiff

    @property
    def prefixless(self) -> bool:
        """True when the names have no a/ and b/ in front, so that git must not strip a component."""
        return any(file.prefixless for file in self.diff.files)


@dataclass(frozen=True, slots=True)
class Tried:
    """How a step went: applied, in the tree already, or neither; fuzz is the option that would make git take it."""

    attempt: Attempt
    applied: bool = False
    already: bool = False
    fuzz: str = ""


def steps_of(series: Series, prerequisites: Sequence[Series] = ()) -> list[Step]:
    """Return the patches in the order in which they are applied: prerequisites, then the series."""
    needed = [patch for one in prerequisites for patch in one.patches]
    steps = [Step(p, Blame.PREREQUISITE, f"prerequisite {p.subject!r}", parse_diff(p.diff)) for p in needed]
    count = len(series.patches)
    for index, patch in enumerate(series.patches, 1):
        number, total = (patch.number, patch.total) if patch.total else (index, count)
        steps.append(Step(patch, Blame.SERIES, f"patch {number}/{total} {patch.subject!r}", parse_diff(patch.diff)))
    return steps


def paths_of(steps: Iterable[Step]) -> set[str]:
    """Return every path that the steps name, old and new."""
    return {path for step in steps for file in step.diff.files for path in (file.old, file.new) if path}


class Applier:
    """The state of one application. made holds the steps that changed something, with what they changed."""

    def __init__(
        self, repo: Path, commit: str, steps: Sequence[Step], *, scratch: Path, log: Path | None = None
    ) -> None:
        """Begin at a commit; nothing is applied yet. scratch must exist."""
        self.index = SmallIndex(repo, commit, paths_of(steps), scratch, log)
        self.notes: list[str] = []
        self.commands: list[str] = []
        self.already: list[Step] = []
        self.fuzzy: list[Step] = []
        self.made: list[tuple[Step, dict[str, TreeEntry | None]]] = []

    def take(self, step: Step, *, allow_fuzz: bool = False, try_fuzz: bool = True) -> Tried:
        """Apply one step, or find out that it is in the tree already; else what fuzz would do, with try_fuzz."""
        before = self.index.entries
        data = self._bytes(step)
        options = _options(step)
        if bare := [f for f in step.diff.files if any(h.bare for h in f.hunks)]:
            # Without context git would put the hunk at the end of the file. Only the very same file makes it safe.
            options.append("--unidiff-zero")
            if strange := next((f for f in bare if not self._is_preimage(f)), None):
                return Tried(Attempt(output=f"error: {strange.path}: {NO_CONTEXT}"))
        attempt = self.index.apply(data, options=options)
        self.commands.append(attempt.command)
        if attempt.ok and not attempt.moved:
            return self._took(step, before, attempt)
        after = self.index.entries
        if attempt.ok:
            self.index.restore(before)
        back = self.index.apply(data, options=[*options, "-R"], check=True)
        if back.ok and (not back.moved or (not attempt.ok and self._in_place(step))):
            self.already.append(step)
            self.notes.append(f"{step.label} is in the tree already (its reverse applies)")
            return Tried(attempt, already=True)
        if attempt.ok:
            self.index.restore(after)
            return self._took(step, before, attempt)
        reduced = ("-C2", "-C1") if try_fuzz else ()
        fuzz = next((c for c in reduced if self.index.apply(data, options=[*options, c], check=True).ok), "")
        if fuzz and allow_fuzz and self.index.apply(data, options=[*options, fuzz]).ok:
            self.fuzzy.append(step)
            self.notes.append(f"{step.label} was applied with fuzz ({fuzz})")
            return self._took(step, before, attempt)
        return Tried(attempt, fuzz=fuzz)

    def complaint(self, step: Step) -> str:
        """Return git's first error about the step, "" when git would take it; nothing is applied."""
        tried = self.index.apply(step.diff.text.encode("utf-8", "surrogateescape"), options=_options(step), check=True)
        return "" if tried.ok else tried.first_error

    def texts(self, paths: Iterable[str]) -> dict[str, str]:
        """Return the text of those paths that are there now."""
        return {path: data.decode("utf-8", "replace") for path, data in self.index.contents(list(paths)).items()}

    def to_start(self) -> None:
        """Go back to where the series begins: base and its prerequisites."""
        entries = dict(self.index.start)
        for step, changed in self.made:
            if step.role is Blame.PREREQUISITE:
                for path, entry in changed.items():
                    entries.pop(path, None)
                    if entry is not None:
                        entries[path] = entry
        if entries != self.index.entries:
            self.index.restore(entries)

    def holds(self, steps: Sequence[Step]) -> bool:
        """Tell whether base, with its prerequisites, has all of the series: taken back from its end, as a whole.

        A patch alone cannot be taken back where a later one changes the same lines. What was applied is gone after.
        """
        self.to_start()
        return all(self._takes_back(step) for step in reversed(steps) if step.role is Blame.SERIES)

    def _takes_back(self, step: Step) -> bool:
        data = adapt(step.diff, self.index.contents([f.path for f in step.diff.files]))[0]
        options = [*_options(step), "-R"]
        tried = self.index.apply(data, options=options, check=True)
        return tried.ok and (not tried.moved or self._in_place(step)) and self.index.apply(data, options=options).ok

    def three_way(self, step: Step) -> tuple[str, bytes]:
        """Try the step as a three-way merge from the blobs that it names; nothing is kept.

        Returns what came of it in one line ("" when the blobs are unknown here), and the merged change as a diff when
        there is no conflict.
        """
        before = self.index.entries
        data = adapt(step.diff, self.index.contents([f.old or f.new for f in step.diff.files]))[0]
        start = self.index.tree()
        tried = self.index.apply(data, options=[*_options(step), "--3way"])
        try:
            if tried.ok:
                return "a three-way merge succeeds", self.index.diff(start, self.index.tree())
            conflicts = re.findall(r"^Applied patch to '(.*)' with conflicts", tried.output, re.MULTILINE)
            if not conflicts:
                return "", b""
            return f"a three-way merge has conflicts in {', '.join(shown(c) for c in conflicts[:8])}", b""
        finally:
            self.index.restore(before)

    def commits(self) -> list[Commit]:
        """Return what the steps changed as commits to be made."""
        return [_commit(step, changed) for step, changed in self.made]

    def _in_place(self, step: Step) -> bool:
        # What the step leaves behind stands in the files; does it stand where the step would have put it?
        texts = self.texts(f.path for f in step.diff.files)
        return all(
            in_place(hunk, texts.get(f.path, "").split("\n"), f.lines("-")) for f in step.diff.files for hunk in f.hunks
        )

    def _is_preimage(self, file: FileDiff) -> bool:
        entry = self.index.entries.get(file.old)
        return entry is not None and len(file.old_blob) >= 7 and entry.oid.startswith(file.old_blob)

    def _took(self, step: Step, before: dict[str, TreeEntry], attempt: Attempt) -> Tried:
        self.made.append((step, changes(before, self.index.entries)))
        return Tried(attempt, applied=True)

    def _bytes(self, step: Step) -> bytes:
        files = step.diff.files
        data, notes = adapt(step.diff, self.index.contents([f.old or f.new for f in files]))
        self.notes += [f"{step.label}: {note}" for note in notes]
        flagged = [f.path for f in files if f.path.rpartition("/")[2] in _FLAGGED]
        self.notes += [f"{step.label} changes {shown(path)}: git ignores it here" for path in flagged]
        running = [f.path for f in files if _runs_commands(f)]
        self.notes += [f"{step.label} lets {shown(path)} run commands on the build host" for path in running]
        return data


def applies(repo: Path, commit: str, steps: Sequence[Step], *, scratch: Path, log: Path | None = None) -> str:
    """Tell why the steps do not apply to a commit, in one line; an empty string when they do. Nothing is kept.

    It is ALREADY_IN when the commit has the series, patch by patch or as a whole.
    """
    work = Applier(repo, commit, steps, scratch=scratch, log=log)
    for step in steps:
        tried = work.take(step, try_fuzz=False)
        if not (tried.applied or tried.already):
            held = step.role is Blame.SERIES and work.holds(steps)
            return ALREADY_IN if held else f"{step.label}: {tried.attempt.first_error}"
    return "" if work.made else ALREADY_IN


def _runs_commands(file: FileDiff) -> bool:
    name = file.path.rpartition("/")[2]
    build = name.startswith(("Kconfig", "Makefile", "Kbuild")) or name.endswith((".mk", ".include"))
    return build and any(word in line for line in file.lines("+") for word in _RUN)


def _options(step: Step) -> list[str]:
    return ["-p0"] if step.prefixless else []


def _commit(step: Step, changed: dict[str, TreeEntry | None]) -> Commit:
    name, address = split_author(step.patch.author)
    epoch, zone = commit_date(step.patch.date)
    return Commit(
        name=name or "unknown",
        address=address,
        epoch=epoch,
        zone=zone,
        message=f"{step.patch.subject}\n\n{step.patch.message}",
        files=changed,
    )
