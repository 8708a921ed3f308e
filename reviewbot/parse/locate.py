"""Where a hunk belongs in a file, and what is different there.

In: a hunk and the lines of a file. Out: a Place. Exact places are found as `git apply` finds them; else the nearest
place by likeness, fast on files of tens of thousands of lines: only places that share lines with the hunk are compared.
"""

from __future__ import annotations

import difflib
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reviewbot.parse.hunk import Hunk

NO_CONTEXT = "the hunk has no context lines (diff -U0): its place cannot be checked"
_CANDIDATES = 6
# A line that stands in more places than this says nothing about where the hunk belongs.
_COMMON = 60
_SHOWN_LINES = 60
_LONG = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The nearest place: 1-based line (0 for none), likeness 0..1, text, and a unified diff of expected to found."""

    exact: bool = False
    line: int = 0
    similarity: float = 0.0
    text: str = ""
    difference: str = ""
    reason: str = ""


def locate(hunk: Hunk, lines: Sequence[str]) -> Place:
    """Return where the hunk's old side stands in lines, or the nearest place and what is different."""
    old = hunk.side("-")
    if not old:
        return Place(exact=True, line=1) if not lines else Place(reason=NO_CONTEXT)
    if at := _exact(old, lines, hunk.old_start):
        return Place(exact=True, line=at, similarity=1.0)
    new = hunk.side("+")
    done = _exact(new, lines, hunk.new_start) if new else 0
    start, end, ratio = _nearest(old, lines, hunk.old_start)
    if not ratio:
        return Place(reason="nothing in the file is like this hunk")
    found = lines[start:end]
    return Place(
        line=start + 1,
        similarity=round(ratio, 3),
        text="\n".join(found[:_SHOWN_LINES]),
        difference=_difference(old, found),
        reason=f"the change is there already, at line {done}" if done else _reason(hunk, old, found),
    )


def _exact(wanted: Sequence[str], lines: Sequence[str], near: int) -> int:
    size = len(wanted)
    places = [i for i in range(len(lines) - size + 1) if lines[i] == wanted[0] and lines[i + size - 1] == wanted[-1]]
    whole = list(wanted)
    nearest = sorted(places, key=lambda i: abs(i + 1 - near))
    return next((i + 1 for i in nearest if list(lines[i : i + size]) == whole), 0)


def _nearest(old: Sequence[str], lines: Sequence[str], near: int) -> tuple[int, int, float]:
    where: dict[str, list[int]] = defaultdict(list)
    wanted = {_plain(line) for line in old}
    for index, line in enumerate(lines):
        plain = _plain(line)
        if plain in wanted:
            where[plain].append(index)
    votes: Counter[int] = Counter()
    for index, line in enumerate(old):
        plain = _plain(line)
        places = where.get(plain, [])
        if len(plain) < 2 or len(places) > _COMMON:
            continue
        for place in places:
            votes[max(0, place - index)] += 1
    starts = sorted(votes, key=lambda s: (-votes[s], abs(s - near)))[:_CANDIDATES]
    best = (0, 0, 0.0)
    for start in starts:
        window = _window(old, lines, start)
        if window[2] > best[2]:
            best = window
    return best


def _window(old: Sequence[str], lines: Sequence[str], start: int) -> tuple[int, int, float]:
    low, high = max(0, start - 5), min(len(lines), start + len(old) + 25)
    # In a long hunk, lines that stand everywhere are left out: comparing each with each takes minutes.
    matcher = difflib.SequenceMatcher(
        None, [_plain(x) for x in old], [_plain(x) for x in lines[low:high]], autojunk=len(old) > _LONG
    )
    blocks = [b for b in matcher.get_matching_blocks() if b.size]
    if not blocks:
        return (0, 0, 0.0)
    # What comes before the first match and after the last one belongs to the place, too.
    first, last = blocks[0], blocks[-1]
    begin = max(0, low + first.b - first.a)
    end = min(len(lines), low + last.b + last.size + (len(old) - last.a - last.size))
    matched = sum(b.size for b in blocks)
    return (begin, end, 2 * matched / (len(old) + end - begin))


def _difference(old: Sequence[str], found: Sequence[str]) -> str:
    lines = difflib.unified_diff(list(old), list(found), "expected by the patch", "in the tree", lineterm="", n=2)
    shown = list(lines)
    more = [f"… {len(shown) - _SHOWN_LINES} more lines"] if len(shown) > _SHOWN_LINES else []
    return "\n".join(shown[:_SHOWN_LINES] + more)


def _reason(hunk: Hunk, old: Sequence[str], found: Sequence[str]) -> str:
    if [_plain(x) for x in old] == [_plain(x) for x in found]:
        return "only white space is different: the mail program has changed tabs or spaces"
    removed = [line[1:] for line in hunk.lines if line[:1] == "-"]
    there = set(found)
    lacking = [line for line in removed if line not in there]
    if lacking:
        return f"{len(lacking)} of the {len(removed)} lines that the hunk removes are different or gone"
    return "the lines around the change are different"


def _plain(line: str) -> str:
    return " ".join(line.split())
