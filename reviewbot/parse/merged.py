"""Is a patch in a tree already, in a form that has evolved since? Evidence file by file.

In: the files of a diff, and the contents that the tree has today. Out: an Evidence. A file speaks for "merged" by the
added lines that stand in it, the removed lines that do not, and the names that the patch introduces and the file knows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from reviewbot.parse.diff import FileDiff

_NAME = re.compile(r"[A-Za-z_]\w{3,}")
# What is not closed on its line goes to its end: each letter is looked at once, however hostile the line.
_COMMENT = re.compile(r"/\*.*?(?:\*/|$)|//.*|^\s*\*.*|\"(?:[^\"\\]|\\.)*(?:\"|\\?$)")
# With fewer telling lines and names, likeness is chance.
_LEAST_ADDED = 3
_LEAST_NAMES = 2
_NAMES_SHARE = 0.8
_ADDED_SHARE = 0.4
_GONE_SHARE = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Whether the change stands in the tree, and one line a file on why (or why not)."""

    merged: bool
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Counts:
    added: int = 0
    present: int = 0
    removed: int = 0
    gone: int = 0

    def plus(self, other: _Counts) -> _Counts:
        return _Counts(
            self.added + other.added,
            self.present + other.present,
            self.removed + other.removed,
            self.gone + other.gone,
        )


def merged_evidence(files: Sequence[FileDiff], contents: Mapping[str, str | None]) -> Evidence:
    """Compare what the diff adds and removes with contents (path to text; None for a file that is not there)."""
    names = introduced_names(files)
    known = {name for text in contents.values() if text for name in _NAME.findall(text)}
    total = _Counts()
    lines: list[str] = []
    for file in files:
        text = contents.get(file.path)
        if text is None:
            moved = "deleted, as the patch does" if file.status == "deleted" else "not in the tree"
            lines.append(f"{file.path}: {moved}")
            continue
        counts = _counts(file, text)
        total = total.plus(counts)
        lines.append(_line(file, counts, names, text))
    found = sorted(name for name in names if name in known)
    merged = _judge(total, len(names), len(found))
    if names:
        lines.append(
            f"{len(found)} of the {len(names)} names that the patch introduces stand in these files{_sample(found)}"
        )
    return Evidence(merged=merged, lines=tuple(lines))


def introduced_names(files: Iterable[FileDiff]) -> set[str]:
    """Return the identifiers in added code that neither the removed nor the context lines have."""
    old: set[str] = set()
    new: set[str] = set()
    for file in files:
        for hunk in file.hunks:
            for line in hunk.lines:
                target = new if line[:1] == "+" else old
                target.update(_NAME.findall(_COMMENT.sub(" ", line[1:])))
            old.update(_NAME.findall(hunk.header))
    return {name for name in new - old if "_" in name or len(name) > 7}


def _judge(total: _Counts, names: int, found: int) -> bool:
    if total.added < _LEAST_ADDED:
        return False
    added = total.present / total.added >= _ADDED_SHARE
    gone = total.removed == 0 or total.gone / total.removed >= _GONE_SHARE
    named = found / names >= _NAMES_SHARE if names >= _LEAST_NAMES else total.present / total.added >= _NAMES_SHARE
    return added and gone and named


def _counts(file: FileDiff, text: str) -> _Counts:
    there = {_plain(line) for line in text.split("\n")}
    added = _telling(file.lines("+"))
    removed = _telling(file.lines("-")) - added
    return _Counts(
        added=len(added),
        present=len(added & there),
        removed=len(removed),
        gone=len(removed - there),
    )


def _telling(lines: Iterable[str]) -> set[str]:
    # Braces, blank lines and lone keywords stand everywhere.
    plain = {_plain(line) for line in lines}
    return {line for line in plain if len(re.findall(r"\w", line)) >= 6}


def _plain(line: str) -> str:
    return " ".join(line.split())


def _line(file: FileDiff, counts: _Counts, names: set[str], text: str) -> str:
    own = introduced_names([file]) & names
    words = set(_NAME.findall(text))
    parts = [f"{counts.present} of {counts.added} added lines stand in it"]
    if counts.removed:
        parts.append(f"{counts.gone} of {counts.removed} removed lines are gone")
    if own:
        parts.append(f"{len(own & words)} of {len(own)} new names are known{_sample(sorted(own & words))}")
    return f"{file.path}: {', '.join(parts)}"


def _sample(names: list[str]) -> str:
    return f" ({', '.join(names[:6])}{', …' if len(names) > 6 else ''})" if names else ""
