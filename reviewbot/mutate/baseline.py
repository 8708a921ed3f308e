"""What the right kernel does under the tests: the measure that wrong kernels are held against.

In: a bench, the patched kernel and the one that holds the mutants. Out: a Baseline, from one boot of the first and
several of the second with no mutant active, each of them with the programs in another order; kept in baseline.json, so
that a run can go on. A case that was not the same in all of them is never compared.
"""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from reviewbot.errors import InfraError
from reviewbot.mutate import kills
from reviewbot.record import write_atomically
from reviewbot.threads import together
from reviewbot.tools.programs import program_times
from reviewbot.tools.vng import Ending

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from reviewbot.tools.programs import Bench, Seen

NAME = "baseline.json"
BOOTS = 3  # of the kernel that holds the mutants; the patched kernel's own comes before them


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """The right kernel: what it does, the mutants whose places the tests reach, and how long programs and boots take.

    key says for which tests and which kernels it holds.
    """

    key: str
    right: kills.Expected
    hits: frozenset[int]
    took_s: dict[str, float]
    boot_s: float
    boots: int


def load(out: Path, key: str) -> Baseline | None:
    """Return the baseline that out holds for this key, or None."""
    try:
        found = msgspec.json.decode((out / NAME).read_bytes(), type=Baseline)
    except (OSError, msgspec.DecodeError):
        return None
    return found if found.key == key else None


def measure(bench: Bench, patched: Path, image: Path, *, key: str, jobs: int, note: Callable[[str], None]) -> Baseline:
    """Boot the right kernels: patched, and image with no mutant active.

    Raises InfraError when one does not come to the end of the tests, or when the two differ in every run.
    """
    work = _Work(bench=bench, note=note, seen={"patched": [], "schema": []})
    first = work.boot("patched", patched, None, bench.names)
    took_s = program_times(first.console)
    work.bench = bench.patient(took_s, first.duration_s)
    orders = [_order(work.bench.names, number) for number in range(BOOTS)]
    work.several(image, orders, jobs)
    if work.contrast():
        work.boot("patched", patched, None, bench.names)
        work.boot("patched", patched, None, bench.names)
    if different := work.contrast():
        msg = f"the kernel that holds the mutants differs with none active: {', '.join(different[:8])}"
        raise InfraError(msg)
    return Baseline(
        key=key,
        right=kills.join(*work.sides()),
        hits=frozenset().union(*(one.hits for one in work.seen["schema"])),
        took_s=took_s,
        boot_s=first.duration_s,
        boots=sum(map(len, work.seen.values())),
    )


def save(out: Path, baseline: Baseline) -> None:
    """Write baseline.json by atomic rename."""
    write_atomically(out / NAME, msgspec.json.encode(baseline).decode())


def _order(names: Sequence[str], number: int) -> tuple[str, ...]:
    # The first boot has the order itself, the second the reverse, then any: what depends on it shows.
    if number == 0:
        return tuple(names)
    if number == 1:
        return tuple(reversed(names))
    mixed = list(names)
    random.Random(number).shuffle(mixed)  # noqa: S311 - the same orders in every run
    return tuple(mixed)


@dataclass(slots=True, kw_only=True)
class _Work:
    bench: Bench
    note: Callable[[str], None]
    seen: dict[str, list[Seen]]
    begun: dict[str, int] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def boot(self, side: str, image: Path, number: int | None, names: Sequence[str]) -> Seen:
        with self.lock:
            count = self.begun[side] = self.begun.get(side, 0) + 1
        self.note(f"{side} kernel, run {count}")
        one = self.bench.boot(image, f"{side}-{count}", number=number, names=names)
        if one.ending is not Ending.FINISHED:
            msg = f"the {side} kernel did not come to the end of the tests: {one.ending} {one.detail}"
            raise InfraError(msg)
        with self.lock:
            self.seen[side].append(one)
        return one

    def several(self, image: Path, orders: Sequence[Sequence[str]], jobs: int) -> None:
        left = list(orders)

        def work() -> None:
            while True:
                with self.lock:
                    if not left:
                        return
                    names = left.pop(0)
                self.boot("schema", image, 0, names)

        together(jobs, work)

    def sides(self) -> list[kills.Expected]:
        return [kills.expected([o.run for o in seen], [o.console for o in seen]) for seen in self.seen.values()]

    def contrast(self) -> tuple[str, ...]:
        return kills.contrast(*self.sides())
