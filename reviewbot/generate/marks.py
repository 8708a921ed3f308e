"""What a person has found out about mutants by reading: marks in a TOML file (pure).

In: the text of an ``equivalent.toml`` and the mutants of a series. Out: the mark of each mutant that one is about, and
the marks that are about none. A mark names a mutant by what is changed into what, never by a line number; white space
does not count. Refused: a mark that could be about several mutants and does not say which.

    [[mutant]]
    file = "kernel/events/core.c"
    function = "perf_output_sample"
    before = "bid->res2 = 0;"
    after = ""
    kind = "equivalent"     # or "unreachable": no machine of these tests can show it
    reason = "The padding was cleared by the memset() before."
    nth = 1                 # of the mutants that read the same in this function; only where there are several
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reviewbot.generate.mutants import Mutant

KINDS = ("equivalent", "unreachable")
_TEXTS = ("file", "function", "before", "after", "kind", "reason")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One mark: kind says what was found, reason why in a sentence or two. nth is 0 where there is one such mutant."""

    file: str
    function: str
    before: str
    after: str
    kind: str
    reason: str
    nth: int = 0

    @property
    def title(self) -> str:
        """One line for a reader."""
        return f"{self.file} {self.function}: {self.before} → {self.after or '(nothing)'}"


def parse_marks(text: str) -> tuple[Mark, ...]:
    """Return the marks of a TOML text. Raises ValueError for anything that is not as described above."""
    try:
        entries = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(str(error)) from error
    tables = entries.get("mutant", [])
    if entries.keys() - {"mutant"} or not isinstance(tables, list):
        msg = "holds something else than [[mutant]] tables"
        raise ValueError(msg)
    return tuple(_mark(number, table) for number, table in enumerate(tables, 1))


def _mark(number: int, table: object) -> Mark:
    if not isinstance(table, dict) or table.keys() - {"nth"} != set(_TEXTS):
        msg = f"mutant {number}: needs {', '.join(_TEXTS)} and may have nth"
        raise ValueError(msg)
    texts = {name: table[name] for name in _TEXTS}
    nth = table.get("nth", 0)
    if not all(isinstance(t, str) for t in texts.values()) or not isinstance(nth, int) or nth < 0:
        msg = f"mutant {number}: its values are texts, nth a number"
        raise ValueError(msg)
    if texts["kind"] not in KINDS or not texts["reason"].strip():
        msg = f"mutant {number}: kind is one of {', '.join(KINDS)}, and reason says why"
        raise ValueError(msg)
    return Mark(**{name: " ".join(t.split()) for name, t in texts.items()}, nth=nth)


def match_marks(marks: Sequence[Mark], mutants: Sequence[Mutant]) -> tuple[Mapping[int, Mark], tuple[Mark, ...]]:
    """Return the mark of each mutant by number, and the marks that are about no mutant.

    Raises ValueError when a mark fits several mutants and has no nth.
    """
    found: dict[int, Mark] = {}
    stale = []
    for mark in marks:
        fit = [m.number for m in mutants if _key(m) == (mark.file, mark.function, mark.before, mark.after)]
        if len(fit) > 1 and not mark.nth:
            msg = f"{mark.title}: fits {len(fit)} mutants; nth says which"
            raise ValueError(msg)
        if len(fit) < max(mark.nth, 1):
            stale.append(mark)
        else:
            found[fit[max(mark.nth, 1) - 1]] = mark
    return found, tuple(stale)


def _key(mutant: Mutant) -> tuple[str, str, str, str]:
    before, after = (" ".join(t.replace("\\\n", " ").split()) for t in (mutant.before, mutant.after))
    return mutant.file, mutant.function, before, after
