"""A diff made for `patch -pN` as one for -p1, which git and everything here expect.

In: a diff and N. Out: the diff with other names in its headers; hunks stay as they are. Source: quilt(1), whose series
file gives N for each patch; git-apply(1).
"""

from __future__ import annotations

import re

from reviewbot.parse.diff import parse_diff

_NAME = re.compile(r"(?P<sign>--- |\+\+\+ )(?P<name>\S.*)")
_MOVE = re.compile(r"(?P<word>(?:rename|copy) (?:from|to) )(?P<name>[^\"\s].*)")
_GIT = re.compile(r"diff --git (?P<old>[^\s\"]+) (?P<new>[^\s\"]+)")
_NO_FILE = "/dev/null"


def with_one_prefix(diff: str, level: int) -> str:
    """Return the diff (as parse_diff gives it) for -p1; level is the N that it was made for."""
    if level == 1:
        return diff
    lines = diff.split("\n")
    for file in parse_diff(diff).files:
        end = file.hunks[0].line - 1 if file.hunks else len(lines)
        for index in range(file.line - 1, end):
            if index > file.line - 1 and lines[index].startswith("diff --git "):
                break
            lines[index] = _header(lines[index], level)
    return "\n".join(lines)


def _header(line: str, level: int) -> str:
    if match := _GIT.fullmatch(line):
        old, new = (_renamed(match[side], side[0], level) for side in ("old", "new"))
        return f"diff --git {old} {new}"
    if match := _NAME.fullmatch(line):
        return match["sign"] + _renamed(match["name"], "o" if match["sign"] == "--- " else "n", level)
    if (match := _MOVE.fullmatch(line)) and level > 1:
        return match["word"] + _without(match["name"], level - 1)
    return line


def _renamed(name: str, side: str, level: int) -> str:
    if name.startswith((_NO_FILE, '"')):
        return name
    prefix = "a/" if side == "o" else "b/"
    return prefix + _without(name, level)


def _without(name: str, count: int) -> str:
    for _ in range(count):
        name = name.partition("/")[2]
    return name
