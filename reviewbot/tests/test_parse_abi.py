"""parse/abi.py and parse/abi_diff.py: what of a header user space sees, and what a change does to it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reviewbot.parse.abi import parse_header
from reviewbot.parse.abi_diff import Weight, compare_headers
from reviewbot.tests.corpus import DATA

PERF = (DATA / "check" / "perf_event.h").read_text(encoding="utf-8")


def changed(*changes: tuple[str, str]) -> str:
    text = PERF
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


NEW_BIT = ("PERF_SAMPLE_TIME = 1U << 2,\n", "PERF_SAMPLE_TIME = 1U << 2,\n\tPERF_SAMPLE_NEW = 1U << 3,\n")
NEW_MAX = ("PERF_SAMPLE_MAX = 1U << 3", "PERF_SAMPLE_MAX = 1U << 4")
NEW_TEXT = ("&& PERF_SAMPLE_TIME\n", "&& PERF_SAMPLE_TIME\n\t *\t{ u64 n; } && PERF_SAMPLE_NEW\n")
FLAG = "#define PERF_FLAG_FD_NO_GROUP (1UL << 0)\n"


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ([NEW_BIT, NEW_MAX, NEW_TEXT], {"limit-moved": Weight.NOTE}),
        ([NEW_BIT, NEW_TEXT], {"limit": Weight.DOUBTFUL}),
        ([NEW_BIT, NEW_MAX], {"limit-moved": Weight.NOTE, "layout-comment": Weight.DOUBTFUL}),
        ([NEW_MAX], {"limit-moved": Weight.DOUBTFUL}),
        ([NEW_BIT, NEW_TEXT, ("NEW = 1U << 3", "NEW = 1U << 2")], {"value-twice": Weight.BROKEN}),
        ([("PERF_SAMPLE_TID = 1U << 1", "PERF_SAMPLE_TID = 0x1")], {"value-changed": Weight.BROKEN}),
        ([("PERF_SAMPLE_TID = 1U << 1", "PERF_SAMPLE_TID = 0x2")], {}),
        ([("\tPERF_SAMPLE_TIME = 1U << 2,\n", "")], {"removed": Weight.DOUBTFUL}),
        ([("PERF_SAMPLE_TIME = 1U << 2,\n", "PERF_SAMPLE_TIME = 1U << 2,\n\tPERF_OLD = PERF_SAMPLE_TID,\n")], {}),
        ([(FLAG, FLAG + "#define PERF_FLAG_FD_OUTPUT (1UL << 1)\n")], {}),
        ([(FLAG, FLAG + "#define PERF_FLAG_FD_OUTPUT (1UL << 0)\n")], {}),
        ([(FLAG, FLAG + "#define PERF_FLAG_FD_NO_OUTPUT (1UL << 0)\n")], {"bit-twice": Weight.DOUBTFUL}),
        ([(FLAG, "#define PERF_FLAG_FD_NO_GROUP (1UL << 4)\n")], {"value-changed": Weight.BROKEN}),
        ([("enabled : 1,\n", "enabled : 1,\n\t      more : 1,\n"), ("1 : 63", "1 : 62")], {"layout": Weight.NOTE}),
        ([("__u64 bp_addr;", "__u64 bp_addr;\n\t\t__u64 config2;")], {"layout": Weight.NOTE}),
        ([("__u32 __reserved_2;", "__u32 __reserved_2;\n\t__u64 sig_data;")], {"layout": Weight.NOTE}),
        ([("__u32 size;", "__u32 size;\n\t__u32 sizes;")], {"layout": Weight.DOUBTFUL}),
        ([("__u32 size;", "__u64 size;")], {"layout": Weight.DOUBTFUL}),
        ([("__u64 bp_addr;", "__u32 bp_addr;")], {"layout": Weight.DOUBTFUL}),
        ([("__u32 type;", "__u32 type; /* of the event */")], {}),
    ],
)  # fmt: skip
def test_headers(changes: list[tuple[str, str]], wanted: dict[str, Weight]) -> None:
    found = compare_headers(parse_header(PERF), parse_header(changed(*changes)))
    assert {change.rule: change.weight for change in found} == wanted


def values(text: str) -> dict[str, int | None]:
    return {c.name: c.value for group in parse_header(text).enums.values() for c in group}


def test_values_follow_c() -> None:
    text = (
        "enum e { A, B = 4, C, D = (1 << 3) | 1, E = ~0, F = -1, G = B, H = 010, I = BIT(5), J = (__u32)7, K = X, L };"
    )
    wanted = {"A": 0, "B": 4, "C": 5, "D": 9, "E": -1, "F": -1, "G": 4, "H": 8, "I": 32, "J": 7, "K": None, "L": None}
    assert values(text) == wanted


def test_names_that_a_macro_makes_are_not_guessed() -> None:
    text = "#define N(x) P_ ## x\nenum e { N(A), N(B), Z, Y = 9 };"
    assert values(text).get("Y") == 9
    assert values(text).get("Z") is None


def test_members_of_one_declaration_are_apart() -> None:
    record = parse_header("struct s { __u64 a : 1, /* one */ b : 63; struct { int c; } d; };").records["struct s"]
    assert [member.text for member in record.members] == ["__u64 a : 1", "__u64 b : 63", "struct { int c ; } d ;"]
    assert record.members[2].record is not None


def test_an_anonymous_enum_keeps_its_identity() -> None:
    old, new = parse_header("enum { A, B, C };"), parse_header("enum { Z, A, B, C };")
    assert {change.rule for change in compare_headers(old, new)} == {"value-changed"}


def test_a_new_enum_is_searched_for_values_twice() -> None:
    changes = compare_headers(parse_header(""), parse_header("enum e { A = 1, B = 2, C = 2, D = B, E_MAX = 2 };"))
    assert [(change.rule, change.title) for change in changes] == [("value-twice", "C has the value of B, 2")]


def test_a_hostile_header_is_read() -> None:
    deep = "enum e { A = " + "(" * 3000 + "1" + ")" * 3000 + ", B = " + "9" * 9000 + ", C = 1 << 99999999 };"
    assert values(deep)["C"] is None
    parse_header("struct a { " * 3000)


@given(st.text(alphabet="enum struct{}()=,;:<|1AB_MAX/*#define \n", max_size=200))
def test_any_text_is_read(text: str) -> None:
    header = parse_header(text)
    assert compare_headers(header, header) == ()
    compare_headers(parse_header(PERF), header)
    compare_headers(header, parse_header(PERF))
