"""parse.uapi: enum values as C gives them, and what is refused."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reviewbot.parse.uapi import UapiError, duplicates, parse_enum

HEADER = """
#ifndef X
enum first { ONE = 1, TWO, FLAG = 1U << 4, };
/* a comment { with } braces */
enum perf_event_sample_format {
	PERF_SAMPLE_IP	= 1U << 0,	/* bit */
	PERF_SAMPLE_TID	= 1U << 1,
	PERF_SAMPLE_BOTH = PERF_SAMPLE_IP | PERF_SAMPLE_TID,
	PERF_SAMPLE_MAX = 1U << 27,		/* non-ABI */
};
enum context {
	KERNEL = (__u64)-128,
	LAST = FLAG,
	NEXT,
};
#define WEIGHT (PERF_SAMPLE_IP | PERF_SAMPLE_TID)
enum odd { A = sizeof(int), B };
#endif
"""


def test_values_of_the_enum_in_order() -> None:
    values = parse_enum(HEADER, "perf_event_sample_format")
    assert list(values.items()) == [
        ("PERF_SAMPLE_IP", 1),
        ("PERF_SAMPLE_TID", 2),
        ("PERF_SAMPLE_BOTH", 3),
        ("PERF_SAMPLE_MAX", 1 << 27),
    ]


def test_implicit_values_casts_and_earlier_enums() -> None:
    assert parse_enum(HEADER, "first") == {"ONE": 1, "TWO": 2, "FLAG": 16}
    assert parse_enum(HEADER, "context") == {"KERNEL": 2**64 - 128, "LAST": 16, "NEXT": 17}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0x1fULL", 31),
        ("017", 15),
        ("0", 0),
        ("-1", -1),
        ("~0", -1),
        ("(1 << 3) - 1", 7),
        ("2 * 3 + 1", 7),
        ("6 & 3", 2),
    ],
)
def test_expressions(text: str, value: int) -> None:
    assert parse_enum(f"enum e {{ A = {text} }};", "e") == {"A": value}


@pytest.mark.parametrize(
    "text",
    ["", "enum e;", "enum f { A };", "enum e { A = sizeof(int) };", "enum e { A = B };", "enum e { A = (char)1 };"],
)
def test_what_cannot_be_told_is_refused(text: str) -> None:
    with pytest.raises(UapiError):
        parse_enum(text, "e")


def test_an_enum_that_nobody_asked_for_may_be_odd() -> None:
    assert parse_enum(HEADER + "enum e { X = 3 };", "e") == {"X": 3}


def test_duplicates_names_the_later_one() -> None:
    assert duplicates({"A": 1, "B": 2, "C": 1}) == ("C",)
    assert duplicates({"A": 1, "B": 2}) == ()


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(UapiError):
        parse_enum(text, "e")


@given(st.lists(st.integers(0, 2**40), max_size=20))
def test_what_is_written_is_read(numbers: list[int]) -> None:
    text = "enum e {" + ",".join(f"N{i} = {n}ULL" for i, n in enumerate(numbers)) + "};"
    if numbers:
        assert list(parse_enum(text, "e").values()) == numbers
