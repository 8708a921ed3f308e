"""Drivers of a hardware PMU: told as not run where the guest has none."""

import pytest

from reviewbot.findings.drivers import unreached_drivers
from reviewbot.model import Status

NO_PMU = "[    0.5] Performance Events: no PMU driver, software events only.\n"
FILES = ("kernel/events/core.c", "arch/x86/events/amd/ibs.c", "arch/s390/kernel/perf_cpum_sf.c", "drivers/perf/x.c")


def test_a_driver_is_told_as_not_run_where_no_pmu_is() -> None:
    found = unreached_drivers(FILES, NO_PMU)
    assert [f.file for f in found] == ["arch/x86/events/amd/ibs.c", "drivers/perf/x.c"]
    assert all(f.severity is Status.PASS and "was not run" in f.title for f in found)


@pytest.mark.parametrize("console", ["", "[    0.5] Performance Events: AMD PMU driver.\n"])
def test_where_a_pmu_is_nothing_is_claimed(console: str) -> None:
    assert unreached_drivers(FILES, console) == ()
