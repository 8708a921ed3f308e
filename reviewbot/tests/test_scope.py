"""generate.scope: which sample types a series is about."""

import re

import pytest

from reviewbot.generate.kselftest import load_specs, programs, render_kselftest
from reviewbot.generate.scope import Scope, find_scope
from reviewbot.generate.spec import SampleSpec
from reviewbot.generate.spec_toml import parse_any
from reviewbot.parse.uapi import UapiError

BASE = (
    "enum perf_event_sample_format {{"
    " PERF_SAMPLE_IP = 1U << 0, PERF_SAMPLE_RAW = 1U << 10, {new} PERF_SAMPLE_MAX = {top} }};"
)
OLD = BASE.format(new="", top="1U << 11")
NEW = BASE.format(new="PERF_SAMPLE_FRESH = 1U << 11,", top="1U << 12")
DIFF = """diff --git a/{path} b/{path}
--- a/{path}
+++ b/{path}
@@ -10,{old} +10,{new} @@{context}
{body}
"""


def diff(body: str, path: str = "kernel/events/core.c", context: str = "") -> str:
    lines = body.split("\n")
    old = sum(line[:1] in " -" for line in lines)
    new = sum(line[:1] in " +" for line in lines)
    return DIFF.format(path=path, old=old, new=new, context=f" {context}" if context else "", body=body)


def names(scope: Scope) -> list[str]:
    return [t.name.removeprefix("PERF_SAMPLE_") for t in scope.types]


def test_a_new_type_is_in_scope_and_new() -> None:
    scope = find_scope(OLD, NEW, "", load_specs())
    assert names(scope) == ["FRESH"]
    assert scope.types[0].new
    assert scope.types[0].value == 1 << 11
    assert scope.next_value == 1 << 12
    assert scope.unverified == ("PERF_SAMPLE_FRESH",)
    assert any("no spec" in n for n in scope.notes)


def test_a_type_named_in_an_added_line_is_touched() -> None:
    scope = find_scope(OLD, OLD, diff(" a\n+\tif (t & PERF_SAMPLE_RAW)\n b"), load_specs())
    assert names(scope) == ["RAW"]
    assert not scope.types[0].new


@pytest.mark.parametrize(
    "line", ["-\tif (t & PERF_SAMPLE_RAW)", " \tif (t & PERF_SAMPLE_RAW)", "+\t * PERF_SAMPLE_RAW"]
)
def test_a_removed_context_or_comment_line_touches_nothing(line: str) -> None:
    assert find_scope(OLD, OLD, diff(f" a\n{line}\n+\tx();\n b"), load_specs()).empty


def test_no_uapi_change_but_a_struct_of_its_own() -> None:
    body = " struct perf_raw_frag {\n \tunion {\n+\t\tstruct perf_raw_frag *next;\n \t};\n };"
    scope = find_scope(OLD, OLD, diff(body, "include/linux/perf_event.h"), load_specs())
    assert names(scope) == ["RAW"]
    assert "perf_raw_frag" in scope.types[0].why


def test_the_function_in_the_hunk_header_counts() -> None:
    scope = find_scope(
        OLD, OLD, diff(" \ta();\n+\tb();\n \tc();", context="static int bpf_perf_event_output(void)"), load_specs()
    )
    assert names(scope) == ["RAW"]


def test_what_follows_the_function_does_not_count() -> None:
    body = " }\n \n-static struct unwind_work work;\n \n int other(void)"
    assert find_scope(OLD, OLD, diff(body, context="static int bpf_perf_event_output(void)"), load_specs()).empty


def test_text_that_looks_like_a_file_header_is_a_line() -> None:
    body = " x\n+++ PERF_SAMPLE_RAW;\n y"
    assert names(find_scope(OLD, OLD, diff(body), load_specs())) == ["RAW"]


def test_every_type_when_asked() -> None:
    scope = find_scope(OLD, OLD, "", load_specs(), every=True)
    assert names(scope) == ["IP", "RAW"]


def test_records_that_the_series_touches() -> None:
    body = " \ta();\n+\tb();\n \tc();"
    scope = find_scope(OLD, OLD, diff(body, context="static void perf_callchain_deferred_output(void)"), load_specs())
    assert scope.records == ("PERF_RECORD_CALLCHAIN_DEFERRED",)


@pytest.mark.parametrize(
    ("header", "note"),
    [
        (BASE.format(new="PERF_SAMPLE_TWICE = 1U << 10,", top="1U << 11"), "value of another"),
        (BASE.format(new="PERF_SAMPLE_FRESH = 1U << 11,", top="1U << 11"), "PERF_SAMPLE_MAX is 0x800"),
        ("enum perf_event_sample_format { PERF_SAMPLE_IP = 1U << 1 };", "was removed"),
        (BASE.format(new="PERF_SAMPLE_TID = 1U << 12,", top="1U << 13"), "bit 1 in its spec"),
    ],
)
def test_notes_say_what_is_wrong_with_the_header(header: str, note: str) -> None:
    assert any(note in n for n in find_scope(OLD, header, "", load_specs()).notes)


WRITE = """ void perf_output_sample(struct perf_output_handle *handle)
 {
 \tu64 sample_type = data->type;
@BEFORE@
 \tif (sample_type & PERF_SAMPLE_IP) {
 \t\tput(handle, data->ip);
@IP@
 \t} else if (sample_type &
 \t\t   PERF_SAMPLE_RAW) {
 \t\tput(handle, data->raw);
@RAW@
 \t} else {
@ELSE@
 \t}
@AFTER@
 }"""


def written(place: str, line: str) -> str:
    return "\n".join(line if row == place else row for row in WRITE.split("\n") if row == place or row[:1] != "@")


@pytest.mark.parametrize(
    ("place", "line", "expected"),
    [
        ("@IP@", "+\t\tbarrier();", ["IP"]),
        ("@IP@", "-\t\tbarrier();", ["IP"]),
        ("@IP@", "+\t\tfor (i = 0; i < n; i++)\n+\t\t\tbarrier();", ["IP"]),
        ("@RAW@", "+\t\tbarrier();", ["IP", "RAW"]),  # the else of a condition on IP
        ("@ELSE@", "+\t\tbarrier();", ["IP", "RAW"]),
        ("@BEFORE@", "+\tbarrier();", ["IP", "RAW"]),
        ("@AFTER@", "-\tbarrier();", ["IP", "RAW"]),
        ("@AFTER@", "+\tif (sample_type & PERF_SAMPLE_RAW)\n+\t\tbarrier();", ["RAW"]),
        ("@BEFORE@", "+\tu64 unused;", []),
        ("@BEFORE@", "+\t/* What is there. */\n+", []),
    ],
)
def test_a_changed_line_is_about_the_conditions_around_it(place: str, line: str, expected: list[str]) -> None:
    scope = find_scope(OLD, OLD, diff(written(place, line)), load_specs())
    assert names(scope) == expected


def test_what_deals_with_every_type_says_so() -> None:
    scope = find_scope(OLD, OLD, diff(written("@AFTER@", "+\tbarrier();")), load_specs())
    assert all(t.why.startswith("every type: a changed line of perf_output_sample") for t in scope.types)


@pytest.mark.parametrize(
    "line", ["+\tint x; /* like PERF_SAMPLE_RAW */", "+\tint x; // PERF_SAMPLE_RAW", "+\t/* of\n+\tPERF_SAMPLE_RAW */"]
)
def test_comments_name_nothing(line: str) -> None:
    assert find_scope(OLD, OLD, diff(f" a\n{line}\n b"), load_specs()).empty


def test_code_behind_a_comment_that_ends_counts() -> None:
    body = " \t * that began above the hunk\n \t */\n+\tif (t & PERF_SAMPLE_RAW)\n \t\tx();"
    assert names(find_scope(OLD, OLD, diff(body), load_specs())) == ["RAW"]


def test_user_space_tools_are_not_the_kernel() -> None:
    assert find_scope(OLD, OLD, diff(" a\n+\tx(PERF_SAMPLE_RAW);\n b", "tools/perf/util/evsel.c"), load_specs()).empty


def test_a_mask_in_the_header_stands_for_its_types() -> None:
    header = OLD + "\n#define PERF_SAMPLE_BOTH\t(PERF_SAMPLE_IP | PERF_SAMPLE_RAW)\n"
    scope = find_scope(header, header, diff(" a\n+\tif (t & PERF_SAMPLE_BOTH)\n \t\tx();"), load_specs())
    assert names(scope) == ["IP", "RAW"]


@pytest.mark.parametrize(("new", "why"), [("PERF_SAMPLE_TWIN = 1U << 10,", "a new name of the bit of PERF_SAMPLE_RAW")])
def test_a_bit_that_base_accepts_is_not_new(new: str, why: str) -> None:
    scope = find_scope(OLD, BASE.format(new=new, top="1U << 11"), "", load_specs())
    assert [(t.name, t.new, t.why) for t in scope.types] == [("PERF_SAMPLE_TWIN", False, why)]
    assert render_kselftest(scope)["scope.h"].count("SCOPE_ALL_BITS\t\t0x401ULL") == 1


WHOLE = """
struct perf_event_attr {
\t__u64\tdisabled : 1, /* off */ precise_ip : 2,
\t\t@attr@ __reserved_1 : 24;
};
#define PERF_RECORD_MISC_USER\t(2 << 0)
@misc@
enum perf_event_type { PERF_RECORD_MMAP = 1, @record@ PERF_RECORD_MAX, };
enum perf_callchain_context { PERF_CONTEXT_USER = (__u64)-512, @marker@ PERF_CONTEXT_MAX = (__u64)-4095, };
"""


def whole(**parts: str) -> str:
    return OLD + re.sub(r"@(\w+)@", lambda mark: parts.get(mark[1], ""), WHOLE)


@pytest.mark.parametrize(
    ("part", "text", "title"),
    [
        ("attr", "shiny : 1,", "attr.shiny (attr bit, bit 3)"),
        ("misc", "#define PERF_RECORD_MISC_SHINE (1 << 12)", "PERF_RECORD_MISC_SHINE (misc bit, 0x1000)"),
        ("record", "PERF_RECORD_SHINE = 23,", "PERF_RECORD_SHINE (record, 0x17)"),
        ("marker", "PERF_CONTEXT_SHINE = (__u64)-768,", "PERF_CONTEXT_SHINE (context marker, 0xfffffffffffffd00)"),
    ],
)
def test_a_new_part_of_the_abi_is_in_scope_and_held_by_nothing(part: str, text: str, title: str) -> None:
    scope = find_scope(whole(), whole(**{part: text}), "", load_specs())
    assert [p.line for p in scope.parts] == [f"{title}: new in the UAPI header; no spec: held by no test"]
    own = parse_any(scope.parts[0].skeleton)
    assert not isinstance(own, SampleSpec)
    assert (own.name, own.value & (1 << 64) - 1) == (scope.parts[0].name, scope.parts[0].value)
    assert not scope.empty
    assert find_scope(whole(), whole(), "", load_specs()).empty


def test_a_record_brings_the_programs_that_hold_it() -> None:
    body = " \ta();\n+\tb();\n \tc();"
    scope = find_scope(OLD, OLD, diff(body, context="static void perf_event_mmap_event(void)"), load_specs())
    assert "PERF_RECORD_MMAP2" in scope.records
    assert "records" in programs(scope, load_specs())
    lines = [p.line for p in scope.parts]
    assert any("the series changes perf_event_mmap_event; held by records (record.content)" in line for line in lines)


def test_an_attr_bit_is_named_behind_attr_alone() -> None:
    for line, expected in (("x = event->attr.freq;", ["attr.freq"]), ("x = freq;", [])):
        scope = find_scope(whole(), whole(), diff(f" a\n+\t{line}\n b"), load_specs())
        assert [p.name for p in scope.parts] == expected


def test_a_header_without_the_enum_is_refused() -> None:
    with pytest.raises(UapiError):
        find_scope("", NEW, "", load_specs())
