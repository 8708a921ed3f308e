"""Whether the lines that a hunk leaves behind stand in the function that the hunk names.

In: a hunk and the lines of the file today. Out: yes or no. `git apply -R` takes them wherever they stand: the end of
another function looks the same once a line has been removed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from reviewbot.parse.hunk import Hunk

# What git shows behind the @@ of a hunk header: a line that begins a function, a record, a Kconfig entry. No label.
_HEAD = re.compile(r"[A-Za-z_$](?!\w*:\s*(?:$|/[/*]))")
# With fewer letters an added line stands anywhere.
_TELLING = 8
_MOST_PLACES = 200


def in_place(hunk: Hunk, lines: Sequence[str]) -> bool:
    """Tell whether the hunk's new text stands in the file at its own line, or in the function that its header names.

    Where the header names none, the text must be there once alone, with an added line that tells something.
    """
    after = [line.rstrip("\r") for line in hunk.side("+")]
    heading = hunk.header.split("@@", 2)[2].strip() if hunk.header.count("@@") >= 2 else ""
    places = list(_places(after, [line.rstrip("\r") for line in lines]))
    if not after or hunk.new_start - 1 in places:
        return True
    if heading:
        return any(_head_above(lines, place).startswith(heading) for place in places)
    telling = any(len(re.findall(r"\w", line)) >= _TELLING for line in hunk.lines if line[:1] == "+")
    return len(places) == 1 and telling


def _places(wanted: Sequence[str], lines: Sequence[str]) -> Iterator[int]:
    found = 0
    for index in range(len(lines) - len(wanted) + 1):
        if lines[index] == wanted[0] and list(lines[index : index + len(wanted)]) == wanted:
            yield index
            found += 1
            if found == _MOST_PLACES:
                return


def _head_above(lines: Sequence[str], place: int) -> str:
    return next((lines[i].strip() for i in range(place - 1, -1, -1) if _HEAD.match(lines[i])), "")
