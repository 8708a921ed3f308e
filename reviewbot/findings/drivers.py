"""What no test of this guest can reach: drivers of a hardware PMU where the kernel found none (pure).

In: the files that a series changes and the console of a boot. Out: one finding a driver, severity PASS: a note, so that
nobody takes the silence of the tests for an answer. Files of other architectures are not in it: they were not compiled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reviewbot.model import Finding, Origin, Status

if TYPE_CHECKING:
    from collections.abc import Iterable

# What arch/x86/events/core.c says at boot when it found no PMU.
_NO_PMU = "Performance Events: no PMU driver"
# Where they are since v4.6, and where they were before.
_DRIVERS = ("arch/x86/events/", "arch/x86/kernel/cpu/perf_event", "drivers/perf/")


def unreached_drivers(files: Iterable[str], console: str) -> tuple[Finding, ...]:
    """Return a note for each PMU driver among files (paths in the tree); none when console shows a PMU."""
    if _NO_PMU not in console:
        return ()
    return tuple(
        Finding(
            title=f"{name} was not run: it drives a hardware PMU, and the guest has none",
            severity=Status.PASS,
            origin=Origin.INTRODUCED,
            file=name,
        )
        for name in sorted(set(files))
        if name.startswith(_DRIVERS) and name.endswith((".c", ".S"))
    )
