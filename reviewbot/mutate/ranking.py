"""Which test program to run first on a wrong kernel (pure).

A boot ends with the first difference, so what comes first decides how long a mutant takes. A program is worth its
chance to catch the mutant, by what it caught before in the same function and elsewhere, over the time that it takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_SAME_FUNCTION = 4.0  # a catch in the same function tells as much as so many elsewhere
_UNKNOWN = 0.5  # what a program that has caught nothing yet may still be good for
_START_S = 0.3  # what any program takes beside its own time


def ranked(
    names: Sequence[str],
    took_s: Mapping[str, float],
    catches: Iterable[tuple[str, Iterable[str]]],
    function: str,
) -> tuple[str, ...]:
    """Return the program names, the best one first; what is worth the same stays in its order.

    took_s is the seconds of each program on the right kernel; catches are (function, programs that differed) of the
    mutants that were caught.
    """
    worth = dict.fromkeys(names, _UNKNOWN)
    for where, programs in catches:
        for name in set(programs) & worth.keys():
            worth[name] += _SAME_FUNCTION if where == function else 1.0
    return tuple(sorted(names, key=lambda name: -worth[name] / (took_s.get(name, 0.0) + _START_S)))
