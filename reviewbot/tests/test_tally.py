"""What the tests of a review come to."""

import pytest

from reviewbot.findings.tally import tally
from reviewbot.model import Blame, Case, Finding, Origin, Status

INTRODUCED, OLD = Origin.INTRODUCED, Origin.PRE_EXISTING


def case(patched: Status, origin: Origin | None = None, blame: Blame = Blame.SERIES) -> Case:
    return Case(name="abi/a", base=Status.PASS, patched=patched, reason="why", origin=origin, blame=blame)


def finding(title: str, *cases: str, severity: Status = Status.FAIL) -> Finding:
    return Finding(title=title, severity=severity, origin=INTRODUCED, cases=cases)


GOOD, BAD, WARNS = case(Status.PASS), case(Status.FAIL, INTRODUCED), case(Status.WARN, INTRODUCED)


@pytest.mark.parametrize(
    ("cases", "findings", "finished", "status", "end"),
    [
        ([GOOD], [], True, Status.PASS, "1 pass, 0 fail, 0 skipped"),
        ([GOOD, WARNS], [], True, Status.WARN, "1 pass, 0 fail, 0 skipped"),
        ([GOOD, case(Status.FAIL, OLD)], [], True, Status.WARN, "1 fail, 0 skipped, 1 fail on base too"),
        ([GOOD, case(Status.FAIL, INTRODUCED, Blame.PREREQUISITE)], [], True, Status.WARN, "1 fail, 0 skipped"),
        ([GOOD, BAD], [], True, Status.FAIL, "1 fail, 0 skipped"),
        ([GOOD, BAD], [finding("x", "abi/a")], True, Status.FAIL, "1 of them make 1 finding"),
        ([GOOD, BAD, BAD], [finding("x", "abi/a"), finding("y", "abi/a")], True, Status.FAIL, "make 2 findings"),
        ([GOOD], [finding("BUG: KASAN")], True, Status.FAIL, "0 skipped; BUG: KASAN"),
        ([GOOD], [finding("a note", severity=Status.PASS)], True, Status.PASS, "0 skipped"),
        ([GOOD, case(Status.ERROR)], [], True, Status.ERROR, "1 without a result"),
        ([GOOD], [], False, Status.ERROR, "0 without a result"),
        ([BAD], [], False, Status.FAIL, "1 fail, 0 skipped"),
        ([case(Status.SKIP)], [], True, Status.ERROR, "1 skipped: nothing was tested"),
        ([], [], True, Status.ERROR, "nothing was tested"),
    ],
)
def test_tally(cases: list[Case], findings: list[Finding], finished: bool, status: Status, end: str) -> None:
    seen, text = tally(cases, findings, programs=3, finished=finished)
    assert seen is status
    assert text.startswith(f"{len(cases)} cases of 3 programs: ")
    assert text.endswith(end)
