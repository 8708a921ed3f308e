"""Whether the lines that a hunk leaves behind stand in the function that the hunk names.

In: a hunk and the lines of the file today. Out: yes or no. `git apply -R` takes them wherever they stand: the end of
another function looks the same once a line has been removed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from reviewbot.parse.hunk import Hunk

# What git shows behind the @@ of a hunk header, by the rules that the kernel's files have (gitattributes(5)): in C no
# label; in device trees nodes, indented as they are; elsewhere any line that begins with a letter.
_HEADS = (
    re.compile(r"[A-Za-z_$](?!\w*:\s*(?:$|/[/*]))"),
    re.compile(r"[A-Za-z_$]"),
    re.compile(r"\s*(?:/\s*\{|&?[A-Za-z_])[^;=]*$"),
)
# With fewer letters an added line stands anywhere.
_TELLING = 8
# So many of them, there once alone, are the hunk's, whatever function has come to stand above them since.
_MANY = 3
_MOST_PLACES = 200


def in_place(hunk: Hunk, lines: Sequence[str], gone: Iterable[str] = ()) -> bool:
    """Tell whether the hunk's new text stands in the file at its own line, or in the function that its header names.

    gone are the lines that the patch removes from the file. Where the header names no function, or one that has another
    line by this very patch, the text must be there once alone, with an added line that tells something.
    """
    after = [line.rstrip("\r") for line in hunk.side("+")]
    if not after:
        return True
    heading = hunk.header.split("@@", 2)[2].strip() if hunk.header.count("@@") >= 2 else ""
    places = list(_places(after, [line.rstrip("\r") for line in lines]))
    if hunk.new_start - 1 in places:
        return True
    telling = sum(len(re.findall(r"\w", line)) >= _TELLING for line in hunk.lines if line[:1] == "+")
    once = len(places) == 1
    if heading and not any(line.strip().startswith(heading) for line in gone):
        found = any(_head_above(lines, place, rule).startswith(heading) for place in places for rule in _HEADS)
        return found or (once and telling >= _MANY)
    return once and telling > 0


def _places(wanted: Sequence[str], lines: Sequence[str]) -> Iterator[int]:
    found = 0
    for index in range(len(lines) - len(wanted) + 1):
        if lines[index] == wanted[0] and list(lines[index : index + len(wanted)]) == wanted:
            yield index
            found += 1
            if found == _MOST_PLACES:
                return


def _head_above(lines: Sequence[str], place: int, rule: re.Pattern[str]) -> str:
    return next((lines[i].strip() for i in range(place - 1, -1, -1) if rule.match(lines[i])), "")
