"""Scope in, the sets of sample types out that the layout cases ask for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import or_
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reviewbot.generate.scope import Scope
    from reviewbot.generate.spec import Specs

# Types that a layout case asks for together with each type in scope.
_BASIC = ("IP", "TID", "TIME", "CALLCHAIN", "IDENTIFIER")


@dataclass(frozen=True, slots=True, kw_only=True)
class Combination:
    """Sample bits that one layout case asks for; basic ones run with every kind of event."""

    name: str
    bits: int
    basic: bool


def combinations(scope: Scope, specs: Specs) -> tuple[Combination, ...]:
    """Return the layout cases: each type in scope alone, with the basic ones, with every other; all new ones."""
    own = [(t.name.removeprefix("PERF_SAMPLE_"), t.value) for t in scope.types]
    every = [(n.removeprefix("PERF_SAMPLE_"), v) for n, v in scope.all_types]
    rows: list[tuple[tuple[str, ...], bool]] = [((n,), True) for n, _ in own]
    new = tuple(t.name.removeprefix("PERF_SAMPLE_") for t in scope.types if t.new)
    rows += [(new, True), ((*new, *_BASIC), True)] if len(new) > 1 else []
    rows += [((n, b), True) for n, _ in own for b in _BASIC]
    rows += [((n, other), False) for n, _ in own for other, _ in every]
    values, known = dict(every), _exclusions(specs)
    found: dict[frozenset[str], Combination] = {}
    for row, basic in rows:
        names = frozenset(row)
        if names in found or any(names & known.get(n, frozenset()) for n in names) or not names <= values.keys():
            continue
        label = "+".join(sorted(names, key=lambda n: (n not in dict(own), values[n])))
        found[names] = Combination(name=label, bits=reduce(or_, (values[n] for n in names)), basic=basic)
    return (*found.values(), *_wide_combinations(every, specs, set(found)))


def _wide_combinations(
    every: list[tuple[str, int]], specs: Specs, taken: set[frozenset[str]]
) -> tuple[Combination, ...]:
    """All types that need no special machine at once, and rows that hold every two of them together and apart."""
    needy = {s.short for s in specs.samples if s.needs}
    excluded, names = _exclusions(specs), [n for n, _ in every if n not in needy]
    rows = [("all", _without_exclusions(frozenset(names), excluded))]
    rows += [
        (f"pairwise_{i:02}", _without_exclusions(row, excluded))
        for i, row in enumerate(covering_rows(tuple(names)), start=1)
    ]
    values = dict(every)
    return tuple(
        Combination(name=name, bits=reduce(or_, (values[n] for n in row), 0), basic=True)
        for name, row in rows
        if row not in taken
    )


def covering_rows(names: tuple[str, ...]) -> tuple[frozenset[str], ...]:
    """Return subsets of names such that any two names occur together, each without the other, and both absent.

    Greedy and deterministic: each row is the best of a fixed number of candidates.
    """
    draw = Random(1)  # noqa: S311 - a fixed choice, not a secret
    goals = {(a, b, x, y) for i, a in enumerate(names) for b in names[i + 1 :] for x in (0, 1) for y in (0, 1)}
    rows = []
    while goals:
        row = max((_random_row(names, draw) for _ in range(40)), key=lambda row: len(_reached(goals, row)))
        goals -= _reached(goals, row)
        rows.append(row)
    return tuple(rows)


def _random_row(names: tuple[str, ...], draw: Random) -> frozenset[str]:
    return frozenset(n for n in names if draw.random() < 0.5)


def _reached(goals: set[tuple[str, str, int, int]], row: frozenset[str]) -> set[tuple[str, str, int, int]]:
    return {g for g in goals if (g[0] in row) == g[2] and (g[1] in row) == g[3]}


def _without_exclusions(row: frozenset[str], excluded: dict[str, frozenset[str]]) -> frozenset[str]:
    """Drop the later of two types that the kernel refuses together."""
    kept: set[str] = set()
    for name in sorted(row):
        if not kept & excluded.get(name, frozenset()):
            kept.add(name)
    return frozenset(kept)


def _exclusions(specs: Specs) -> dict[str, frozenset[str]]:
    return {s.short: frozenset(e.removeprefix("PERF_SAMPLE_") for e in s.excludes) for s in specs.samples}
