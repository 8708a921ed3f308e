"""What stands below the last hunk of a file and looks like a part of the diff that would be lost.

In: lines of a diff's text. Out: the line and what is wrong with it. git passes over such lines without a word, and so
takes a patch whose next hunk header was wrapped or indented, or whose hunk has more lines than its header says.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

# What a hunk header looks like that was wrapped, indented or cut, or that has too large a number.
_DAMAGED = re.compile(r"@@|\s+@@+ +[-+]?\d")
# A line of code, not an item of a list, when an empty line stands before it.
_CODE = re.compile(r"[-+](?:\t|  |[^\s-])")


def lost_line(lines: Sequence[str], start: int) -> tuple[int, str] | None:
    """Return the index of the first line from start on (just below a hunk) that would be lost, and why; else None."""
    empty = False
    for here in range(start, len(lines)):
        line = lines[here]
        if line.startswith("---") or line in ("-- ", "--"):
            return None
        if _DAMAGED.match(line):
            return here, f"a damaged hunk header, {line[:60]!r}"
        if line[:1] in ("+", "-"):
            if empty and not _CODE.match(line):
                return None
            return here, f"a line more than the hunk header says, {line[:60]!r}"
        if line[:1] not in ("", " "):
            return None
        empty = empty or not line
    return None


def is_lost_header(lines: Sequence[str], at: int) -> bool:
    """Tell whether a line below a file's diff is the header of a hunk or file that cannot be read."""
    after = lines[at + 1] if at + 1 < len(lines) else ""
    return lines[at].startswith("@@ -") or (lines[at].startswith("--- ") and after.startswith("+++"))
