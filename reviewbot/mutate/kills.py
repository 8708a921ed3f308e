"""When a wrong kernel counts as caught (pure).

In: what the tests reported on the right kernel, several times, and on a wrong one. Out: the cases that differ. A case
counts only while the right kernel's runs agree on it. Failed, crashed and missing cases make the set that is compared;
a case that is skipped instead is no answer and catches nothing.
"""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - msgspec reads the annotations of Expected
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from reviewbot.findings.splats import splat_findings
from reviewbot.model import Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from reviewbot.findings.compare import Observed, Run

_BAD = (Status.FAIL, Status.ERROR)
MISSING = "missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The right kernel: whether each case is bad on it, those that flip, and what it said on its consoles."""

    bad: Mapping[str, str]
    names: frozenset[str]
    unstable: frozenset[str]
    consoles: tuple[str, ...]


def _bad(run: Run, names: frozenset[str]) -> dict[str, str]:
    found = {name: str(seen.status) for name, seen in run.items() if seen.status in _BAD}
    return found | dict.fromkeys(names - run.keys(), MISSING)


def expected(runs: Sequence[Run], consoles: Sequence[str]) -> Expected:
    """Return what the right kernel does, from at least one run and its consoles."""
    names = frozenset(name for run in runs for name in run)
    sets = [_bad(run, names) for run in runs]
    unstable = frozenset(name for name in names if len({name in one for one in sets}) > 1)
    bad = {name: kind for name, kind in sets[0].items() if name not in unstable}
    return Expected(bad=bad, names=names - unstable, unstable=unstable, consoles=tuple(consoles))


def join(one: Expected, other: Expected) -> Expected:
    """Return what two sets of runs of the right kernel agree on."""
    unstable = one.unstable | other.unstable | (one.bad.keys() ^ other.bad.keys())
    names = (one.names | other.names) - unstable
    bad = {name: kind for name, kind in one.bad.items() if name in names}
    return Expected(bad=bad, names=names, unstable=unstable, consoles=one.consoles + other.consoles)


def contrast(one: Expected, other: Expected) -> tuple[str, ...]:
    """Return the cases on which two kernels differ in every run."""
    stable = (one.names | other.names) - one.unstable - other.unstable
    lost = (one.names | one.unstable) ^ (other.names | other.unstable)
    return tuple(sorted({name for name in stable if (name in one.bad) != (name in other.bad)} | lost))


def differences(right: Expected, run: Run, programs: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the cases whose badness differs from the right kernel's, with what was seen.

    programs are those that ran; cases of others are not missing. They come in the order in which they were reported,
    then those that are missing.
    """
    ran = frozenset(name for name in right.names if _program(name) in programs)
    seen = _bad(run, ran)
    fresh = {name for name in seen if name not in right.names and name not in right.unstable}
    gone = {name for name in ran if (name in seen) != (name in right.bad)}
    order = {name: place for place, name in enumerate(run)}
    names = sorted(gone | fresh, key=lambda name: (order.get(name, len(order)), name))
    return tuple(f"{name} ({_words(name, run, seen, right)})" for name in names)


def _words(name: str, run: Run, seen: Mapping[str, str], right: Expected) -> str:
    if name not in seen:
        return f"{right.bad[name]} before, now {run[name].status}"
    observed: Observed | None = run.get(name)
    reason = " ".join((observed.reason or observed.excerpt).split())[:160] if observed else ""
    return f"{seen[name]}: {reason}" if reason else seen[name]


def complaints(right: Expected, console: str) -> tuple[str, ...]:
    """Return the titles of what the kernel complained about and the right kernel did not."""
    return tuple(f"console: {f.title}" for f in splat_findings(right.consoles, [console]) if f.counts)


def programs_of(differing: Sequence[str], programs: Sequence[str]) -> tuple[str, ...]:
    """Return those programs, in order, that have one of the differing cases; all of them when none has."""
    names = {_program(case_of(text)) for text in differing}
    return tuple(p for p in programs if p in names) or tuple(programs)


def without(right: Expected, names: Iterable[str]) -> Expected:
    """Return the right kernel without those cases: they are not compared."""
    left = frozenset(names)
    bad = {name: kind for name, kind in right.bad.items() if name not in left}
    return replace(right, bad=bad, names=right.names - left, unstable=right.unstable | left)


def case_of(difference: str) -> str:
    """Return the name of the case that a difference is about."""
    return difference.split(" (", 1)[0]


def _program(name: str) -> str:
    return name.split("/", 1)[0]
