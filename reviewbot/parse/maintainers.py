"""MAINTAINERS to the git trees that the touched files belong to.

In: the text of the file, and paths. Out: the trees (``T:`` lines), the most specific section first. Source: the head of
MAINTAINERS in the kernel tree.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_FIELD = re.compile(r"([A-Z]):\s+(.*)")
_TREE = re.compile(r"(?:git|b4|quilt)\s+(\S+)(?:\s+(\S+))?")


@dataclass(slots=True)
class Section:
    """One entry: its title, file patterns (F:), excluded ones (X:), and trees as (address, branch)."""

    title: str
    files: list[str] = field(default_factory=list)
    excluded: list[str] = field(default_factory=list)
    trees: list[tuple[str, str]] = field(default_factory=list)


def parse_maintainers(text: str) -> list[Section]:
    """Return the entries that name a tree and files."""
    sections: list[Section] = []
    title = ""
    open_section: Section | None = None
    for line in text.split("\n"):
        match = _FIELD.fullmatch(line)
        if match is None:
            title = line.strip() or title
            open_section = None
            continue
        if open_section is None:
            open_section = Section(title)
            sections.append(open_section)
        _note(open_section, match[1], match[2].strip())
    return [s for s in sections if s.trees and s.files]


def _note(section: Section, kind: str, value: str) -> None:
    if kind == "F":
        section.files.append(value)
    elif kind == "X":
        section.excluded.append(value)
    elif kind == "T" and (found := _TREE.match(value)):
        section.trees.append((found[1], found[2] or ""))


def trees_for(sections: Iterable[Section], paths: Iterable[str]) -> list[tuple[str, str]]:
    """Return (address, branch) of the trees that take changes to the paths, best match first."""
    score: Counter[tuple[str, str]] = Counter()
    paths = tuple(paths)
    for section in sections:
        for path in paths:
            depth = max((p.strip("/").count("/") + 1 for p in section.files if _matches(p, path)), default=0)
            if depth and not any(_matches(p, path) for p in section.excluded):
                for tree in section.trees:
                    score[tree] += depth
    return [tree for tree, _ in score.most_common()]


def _matches(pattern: str, path: str) -> bool:
    return _compiled(pattern).match(path) is not None


@lru_cache(maxsize=20_000)
def _compiled(pattern: str) -> re.Pattern[str]:
    # "*" stays within a folder; a trailing slash takes all that is below.
    body = "".join("[^/]*" if c == "*" else "[^/]" if c == "?" else re.escape(c) for c in pattern)
    return re.compile(body + ("" if pattern.endswith("/") else r"(?:/|$)"))


def short_name(address: str) -> str:
    """Return what people call a tree: the last part of its address, without .git."""
    return re.sub(r"\.git$", "", address.rstrip("/")).rsplit("/", 1)[-1]
