"""The values that a KTAP log is read into.

In: what the reader of parse/ktap.py found. Out: tests, cases and the result of a whole log. Frozen; no reading here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from reviewbot.parse.ktap_text import unique

if TYPE_CHECKING:
    from reviewbot.parse.ktap_lines import Result


class TapOutcome(StrEnum):
    """What one test came to on one kernel; NOT_RUN was planned and never reported."""

    PASS = "pass"
    FAIL = "fail"
    SKIP = "skip"
    ERROR = "error"
    NOT_RUN = "not run"


# From harmless to harmful: of two results for one test, the later in this order counts.
BY_HARM = (TapOutcome.PASS, TapOutcome.SKIP, TapOutcome.NOT_RUN, TapOutcome.ERROR, TapOutcome.FAIL)


@dataclass(frozen=True, slots=True, kw_only=True)
class KtapTest:
    """One test of the tree. reason is one line, empty for a plain pass; diagnostics are the lines before its result."""

    name: str
    outcome: TapOutcome
    reason: str = ""
    diagnostics: str = ""
    children: tuple[KtapTest, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KtapCase:
    """One test, flat: name is the path from the root, joined with "/". A group is a test that has subtests."""

    name: str
    outcome: TapOutcome
    reason: str
    diagnostics: str
    group: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class KtapResult:
    """A whole log. error says in one line why the log as a whole is not to be trusted, or is empty.

    skipped is the reason of a top-level ``1..0 # SKIP``. diagnostics are the lines after the last result.
    """

    tests: tuple[KtapTest, ...] = ()
    error: str = ""
    skipped: str = ""
    notes: tuple[str, ...] = ()
    diagnostics: str = ""

    @property
    def cases(self) -> tuple[KtapCase, ...]:
        """Every test and group in the order of the log, a group before its subtests; names are unique."""
        taken: dict[str, int] = {}
        return tuple(_flatten(self.tests, "", taken))

    @property
    def outcome(self) -> TapOutcome:
        """The worst: a failure, then an error, then not run; a log in which nothing passed is not a pass."""
        found = {test.outcome for test in self.tests}
        if TapOutcome.FAIL in found:
            return TapOutcome.FAIL
        if self.error or TapOutcome.ERROR in found:
            return TapOutcome.ERROR
        if TapOutcome.NOT_RUN in found:
            return TapOutcome.NOT_RUN
        return TapOutcome.PASS if TapOutcome.PASS in found else TapOutcome.SKIP


def _flatten(tests: tuple[KtapTest, ...], path: str, taken: dict[str, int]) -> list[KtapCase]:
    cases = []
    for test in tests:
        name = unique(f"{path}{test.name}", taken)
        group = bool(test.children)
        cases.append(
            KtapCase(name=name, outcome=test.outcome, reason=test.reason, diagnostics=test.diagnostics, group=group)
        )
        cases += _flatten(test.children, f"{name}/", taken)
    return cases


def own_outcome(line: Result) -> tuple[TapOutcome, str]:
    """Return what a result line says by itself: the outcome, and the reason in one line (empty for a plain pass)."""
    match line.directive:
        case "SKIP":
            return TapOutcome.SKIP, line.data or "no reason given"
        case "TODO" | "XFAIL" if not line.ok or line.directive == "XFAIL":
            return TapOutcome.SKIP, f"expected failure: {line.data}".rstrip(": ")
        case "TIMEOUT":
            return TapOutcome.FAIL, f"timed out: {line.data}".rstrip(": ")
        case "ERROR":
            return TapOutcome.ERROR, line.data or "no reason given"
    if line.data.startswith("exit="):
        return (TapOutcome.FAIL, _exit_status(line.data.removeprefix("exit=")))
    return (TapOutcome.PASS if line.ok else TapOutcome.FAIL), line.data


def _exit_status(text: str) -> str:
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 4 else 0
    return f"exit status {text} (signal {number - 128})" if 128 < number < 193 else f"exit status {text}"
