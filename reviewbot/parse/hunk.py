"""One hunk, read by the counts of its header as `git apply` reads it.

In: lines, and where a hunk header stands. Out: a Hunk, where it ends, and what is wrong when the counts do not fit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@(.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunk:
    """One hunk; lines keep their sign. line is that of the header in the diff text, 1-based."""

    header: str
    old_start: int
    old_count: int
    new_start: int
    new_count: int
    lines: tuple[str, ...]
    line: int

    @property
    def bare(self) -> bool:
        """True when no line of context tells where in a file the hunk belongs."""
        return self.old_start > 1 and not any(entry[:1] in (" ", "") for entry in self.lines)

    def side(self, sign: str) -> tuple[str, ...]:
        """Return the text before (sign "-") or after ("+") the hunk, without signs; an empty line is context."""
        return tuple(entry[1:] for entry in self.lines if entry == "" or entry[0] in (" ", sign))


def read_hunk(lines: Sequence[str], start: int, header: re.Match[str], line: int) -> tuple[Hunk, int, str]:
    """Return the hunk whose header (a match of HUNK) is lines[start], the index after it, and what is wrong or "".

    line is the number that the header gets in the Hunk.
    """
    old_left = int(header[2] if header[2] is not None else 1)
    new_left = int(header[4] if header[4] is not None else 1)
    counts = (old_left, new_left)
    here, end = start + 1, len(lines)
    # The innermost loop of everything that reads mail: no calls in it.
    while (old_left > 0 or new_left > 0) and old_left >= 0 and new_left >= 0 and here < end:
        sign = lines[here][:1]
        if sign == "+":
            new_left -= 1
        elif sign == "-":
            old_left -= 1
        elif sign in (" ", ""):
            old_left -= 1
            new_left -= 1
        elif sign != "\\":
            break
        here += 1
    if here < end and lines[here].startswith("\\ "):
        here += 1
    body = tuple(lines[start + 1 : here])
    hunk = Hunk(
        header=lines[start],
        old_start=int(header[1]),
        old_count=counts[0],
        new_start=int(header[3]),
        new_count=counts[1],
        lines=body,
        line=line,
    )
    return hunk, here, _miscount(hunk, lines[here] if here < end else None) if old_left or new_left else ""


def _miscount(hunk: Hunk, following: str | None) -> str:
    if following is None:
        why = "the patch is cut off"
    elif following[:1] not in ("", " ", "+", "-", "\\", "@", "d"):
        why = f"a line that is no diff line, {following[:40]!r}: wrapped by the mail program, or edited by hand"
    else:
        why = "the counts in the hunk header are wrong"
    old = sum(1 for entry in hunk.lines if entry[:1] in ("", " ", "-"))
    new = sum(1 for entry in hunk.lines if entry[:1] in ("", " ", "+"))
    return f"the hunk header says -{hunk.old_count} +{hunk.new_count} lines, there are -{old} +{new}: {why}"
