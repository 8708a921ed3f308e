"""Cases on base against cases on patched."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reviewbot.findings.compare import Observed, Run, compare_cases, read_program, unsettled
from reviewbot.model import Blame, Origin, Status

P, F, S, E = Status.PASS, Status.FAIL, Status.SKIP, Status.ERROR


def run_of(**cases: Status) -> Run:
    return {f"t/{name}": Observed(status=status, reason=f"{name} {status}") for name, status in cases.items()}


@pytest.mark.parametrize(
    ("base", "patched", "origin", "status"),
    [
        ([P], [P], None, P),
        ([S], [P], None, P),
        ([F], [P], Origin.FIXED, P),
        ([P, P], [F, F], Origin.INTRODUCED, F),
        ([S, S], [F, F], Origin.INTRODUCED, F),
        ([P, P], [F, P], Origin.FLAKY, Status.WARN),
        ([P, F], [F, F], Origin.FLAKY, Status.WARN),
        ([S, S], [F, P], Origin.FLAKY, Status.WARN),
        ([F], [F], Origin.PRE_EXISTING, F),
        ([P], [S], None, S),
        ([P, P], [S, S], None, S),
        ([P, P], [S, P], None, P),
        ([S, S], [F, S], Origin.FLAKY, Status.WARN),
        ([P, P], [E, E], None, E),
    ],
)
def test_origin(base: list[Status], patched: list[Status], origin: Origin | None, status: Status) -> None:
    (case,) = compare_cases([run_of(a=s) for s in base], [run_of(a=s) for s in patched])
    assert (case.origin, case.patched) == (origin, status)
    assert case.counts == (origin is Origin.INTRODUCED and case.blame is Blame.SERIES)


def test_a_case_that_patched_lost_is_no_pass() -> None:
    (case,) = compare_cases([run_of(a=P)], [{}])
    assert case.patched is E
    assert "not reported on patched" in case.reason


def test_repeats_are_counted() -> None:
    (case,) = compare_cases([run_of(a=P)] * 2, [run_of(a=F), run_of(a=P)])
    assert (case.runs, case.failures) == (2, 1)
    assert "1 of 2" in case.reason


def test_only_what_base_does_not_fail_runs_again() -> None:
    assert unsettled(run_of(a=P, b=F, c=S, d=P), run_of(a=F, b=F, c=F, d=P)) == ("t/a", "t/c")


def test_what_patched_skips_and_base_passes_runs_again() -> None:
    assert unsettled(run_of(a=P, b=S, c=F), run_of(a=S, b=S, c=S)) == ("t/a",)


KTAP = "TAP version 13\n1..2\nok 1 a\nok 2 b\n"


@pytest.mark.parametrize(
    ("ktap", "rc", "status", "words"),
    [
        (KTAP, "0\n", None, ""),
        (KTAP, "1\n", F, "exit status 1 although no case failed"),
        (KTAP, "137\n", F, "did not end within 60 s"),
        (KTAP, "139\n", F, "signal 11"),
        (KTAP, None, E, "did not come to its end"),
        ("", "0\n", E, "empty"),
        (None, "127\n", E, "could not be started"),
        ("TAP version 13\n1..0 # SKIP no tracefs\n", "4\n", S, "no tracefs"),
    ],
)
def test_a_program_as_a_whole(ktap: str | None, rc: str | None, status: Status | None, words: str) -> None:
    seen = read_program("t", ktap, rc, 60)
    assert (seen["t"].status if "t" in seen else None) == status
    if status:
        assert words in seen["t"].reason


def test_a_planned_case_that_never_came_is_an_error() -> None:
    seen = read_program("t", "TAP version 13\n1..2\nok 1 a\n", "0", 60)
    assert sorted(o.status for o in seen.values()) == sorted([P, E, *([E] if "t" in seen else [])])


def test_the_reason_of_a_failure_is_the_first_thing_found_wrong() -> None:
    seen = read_program(
        "t", "TAP version 13\n1..1\n# sample: x\n# FAIL: 8 bytes left\n# FAIL: more\nnot ok 1 a\n", "1", 60
    )
    assert seen["t/a"].reason == "8 bytes left"


STATUSES = st.sampled_from([P, F, S, E])


@given(st.lists(STATUSES, min_size=1, max_size=3), st.lists(STATUSES, min_size=1, max_size=3))
def test_a_failure_on_patched_is_never_a_pass(base: list[Status], patched: list[Status]) -> None:
    (case,) = compare_cases([run_of(a=s) for s in base], [run_of(a=s) for s in patched])
    if F in patched or E in patched:
        assert case.patched is not P
    else:
        assert case.origin in (None, Origin.FIXED)
    if F in base[:1] or E in base[:1]:
        assert not case.counts
