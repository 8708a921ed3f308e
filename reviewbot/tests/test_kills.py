"""When a wrong kernel counts as caught."""

from reviewbot.findings.compare import Observed, Run
from reviewbot.model import Status
from reviewbot.mutate import kills

PASS, FAIL, SKIP = (Observed(status=s) for s in (Status.PASS, Status.FAIL, Status.SKIP))
ERROR = Observed(status=Status.ERROR, reason="did not come to its end")
GOOD = {"abi/a": PASS, "abi/old": FAIL, "raw/b": PASS, "raw/s": SKIP}
PROGRAMS = ("abi", "raw")


def _differences(run: Run, *runs: Run, programs: tuple[str, ...] = PROGRAMS) -> list[str]:
    right = kills.expected(runs or [GOOD, GOOD], [])
    return [text.split(" ")[0] for text in kills.differences(right, run, programs)]


def test_the_same_results_catch_nothing() -> None:
    assert _differences(GOOD) == []


def test_failed_crashed_missing_and_mended_cases_catch() -> None:
    assert _differences(GOOD | {"abi/a": FAIL}) == ["abi/a"]
    assert _differences(GOOD | {"raw": ERROR}) == ["raw"], "a program that crashed is a case that was not there"
    assert _differences({k: v for k, v in GOOD.items() if k != "raw/b"}) == ["raw/b"]
    assert _differences(GOOD | {"abi/old": PASS}) == ["abi/old"], "the set of failing cases differs"


def test_a_skip_is_no_answer() -> None:
    assert _differences(GOOD | {"abi/a": SKIP}) == []
    assert _differences(GOOD | {"raw/s": PASS}) == []


def test_what_flips_on_the_right_kernel_does_not_count() -> None:
    flips = GOOD | {"raw/b": FAIL}
    assert _differences(flips, GOOD, flips) == []
    assert _differences(GOOD | {"abi/a": FAIL}, GOOD, flips) == ["abi/a"]
    both = kills.join(kills.expected([GOOD], ["one"]), kills.expected([flips], ["two"]))
    assert both.unstable == {"raw/b"}
    assert both.consoles == ("one", "two")
    assert kills.differences(both, flips, PROGRAMS) == ()


def test_two_right_kernels_are_compared() -> None:
    right = kills.expected([GOOD, GOOD], [])
    assert kills.contrast(right, kills.expected([GOOD], [])) == ()
    assert kills.contrast(right, kills.expected([GOOD | {"abi/a": FAIL}], [])) == ("abi/a",)
    assert kills.contrast(right, kills.expected([GOOD, GOOD | {"abi/a": FAIL}], [])) == ()
    assert kills.contrast(right, kills.expected([{"abi/a": PASS}], [])) == ("abi/old", "raw/b", "raw/s")


def test_programs_that_were_not_asked_for_are_not_missing() -> None:
    only = {"raw/b": FAIL, "raw/s": SKIP}
    assert _differences(only, programs=("raw",)) == ["raw/b"]


def test_the_second_boot_runs_the_programs_that_differed() -> None:
    assert kills.programs_of(["raw/b (fail: x)"], PROGRAMS) == ("raw",)
    assert kills.programs_of(["raw (error)", "abi/a (fail)"], PROGRAMS) == PROGRAMS
    assert kills.programs_of(["the kernel went down: panic"], PROGRAMS) == PROGRAMS


def test_a_complaint_of_the_kernel_catches_unless_the_right_one_has_it_too() -> None:
    warning = (
        "[    1.000000] ------------[ cut here ]------------\n"
        "[    1.000000] WARNING: CPU: 0 PID: 9 at kernel/events/core.c:9999 perf_output_sample+0x1/0x2\n"
        "[    1.000000] ---[ end trace 0000000000000000 ]---\n"
    )
    assert kills.complaints(kills.expected([GOOD], ["quiet\n"]), warning)
    assert not kills.complaints(kills.expected([GOOD], [warning]), warning)
    assert not kills.complaints(kills.expected([GOOD], [""]), "quiet\n")
