"""generate.scope: which sample types a series is about."""

import pytest

from reviewbot.generate.kselftest import load_specs
from reviewbot.generate.scope import Scope, find_scope
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
    scope = find_scope(OLD, OLD, diff(" a\n+	if (t & PERF_SAMPLE_RAW)\n b"), load_specs())
    assert names(scope) == ["RAW"]
    assert not scope.types[0].new


@pytest.mark.parametrize(
    "line", ["-	if (t & PERF_SAMPLE_RAW)", " 	if (t & PERF_SAMPLE_RAW)", "+	 * PERF_SAMPLE_RAW"]
)
def test_a_removed_context_or_comment_line_touches_nothing(line: str) -> None:
    assert find_scope(OLD, OLD, diff(f" a\n{line}\n+	x();\n b"), load_specs()).empty


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


def test_a_header_without_the_enum_is_refused() -> None:
    with pytest.raises(UapiError):
        find_scope("", NEW, "", load_specs())
