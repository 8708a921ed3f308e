"""parse/ktap.py against its corpus (data/ktap), and against anything at all."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reviewbot.parse.ktap import KtapCase, TapOutcome, parse_ktap
from reviewbot.tests.corpus import Sample, samples


def shown(case: KtapCase, wanted: str) -> str:
    line = f"{case.outcome} {case.name}"
    return f"{line} | {case.reason}" if " | " in wanted else line


@pytest.mark.parametrize("sample", samples("ktap"), ids=lambda s: s.name)
def test_corpus(sample: Sample) -> None:
    result = parse_ktap(sample.text)
    wanted = sample.all("case")
    assert len(result.cases) == len(wanted), result.cases
    assert [shown(case, want) for case, want in zip(result.cases, wanted, strict=True)] == wanted
    assert [result.outcome] == sample.all("outcome")
    assert result.error == "".join(sample.all("error"))
    assert result.skipped == "".join(sample.all("skipped"))
    for note in sample.all("note"):
        assert note in result.notes
    for want in sample.all("diagnostics"):
        name, text = want.split(" | ", 1)
        assert text in next(case for case in result.cases if case.name == name).diagnostics


def test_a_clean_log_has_no_notes() -> None:
    assert parse_ktap("KTAP version 1\n1..1\nok 1 a\n").notes == ()


def test_a_cut_last_line_is_noted() -> None:
    assert "the last line is cut off: it has no line end" in parse_ktap("KTAP version 1\n1..1\nok 1 a").notes


def test_a_huge_plan_stays_small() -> None:
    result = parse_ktap("KTAP version 1\n1..999999999\nok 1 a\n")
    assert result.outcome is TapOutcome.NOT_RUN
    assert len(result.cases) < 2000
    assert result.cases[-1].name == "999998998 more tests"


def test_deep_nesting_stays_flat() -> None:
    text = "".join(f"{'  ' * depth}KTAP version 1\n" for depth in range(500))
    assert parse_ktap(text).outcome is TapOutcome.ERROR


def test_long_diagnostics_are_bounded() -> None:
    text = "KTAP version 1\n1..1\n" + "# noise\n" * 5000 + "not ok 1 a\n"
    diagnostics = parse_ktap(text).cases[0].diagnostics
    assert "lines left out" in diagnostics
    assert len(diagnostics) < 20_000


def test_many_equal_names_stay_quick() -> None:
    text = "KTAP version 1\n" + "".join(f"ok {n} same\n" for n in range(1, 20_001))
    assert parse_ktap(text).cases[-1].name == "same (20000)"


LINES = st.sampled_from(
    [
        "KTAP version 1", "TAP version 13", "1..2", "1..0 # SKIP x", "ok 1 a", "ok 2 b", "not ok 1 a", "ok 1 a # SKIP",
        "not ok 2 b # TIMEOUT 45 seconds", "not ok 1 # exit=139", "Bail out! x", "# Subtest: s", "# note", "", "noise",
        "# Totals: pass:1 fail:0 xfail:0 xpass:0 skip:0 error:0",
    ]
)  # fmt: skip
PREFIXES = st.sampled_from(["", "  ", "    ", "# ", "# # ", "[    1.000000] ", "  # "])


@given(st.lists(st.tuples(PREFIXES, LINES), max_size=30))
def test_any_order_of_lines_keeps_the_rules(parts: list[tuple[str, str]]) -> None:
    result = parse_ktap("".join(f"{prefix}{line}\n" for prefix, line in parts))
    names = [case.name for case in result.cases]
    assert len(names) == len(set(names))
    if result.outcome is TapOutcome.PASS:
        assert any(case.outcome is TapOutcome.PASS for case in result.cases)
        assert not any(t.outcome in (TapOutcome.FAIL, TapOutcome.ERROR, TapOutcome.NOT_RUN) for t in result.tests)
    for case in result.cases:
        assert case.outcome is TapOutcome.PASS or case.reason


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    parse_ktap(text)
    parse_ktap(f"KTAP version 1\n1..2\n{text}\n")


@pytest.mark.parametrize(
    "line", ["# " * 10**6, "ok 1 " + "# " * 10**6, "[" * 10**6, "ok 1 a #" + " " * 10**6 + "x"], ids=len
)
def test_a_hostile_line_takes_no_time(line: str) -> None:
    started = time.monotonic()
    parse_ktap(f"KTAP version 1\n1..1\n{line}\nok 1 a\n")
    assert time.monotonic() - started < 2
