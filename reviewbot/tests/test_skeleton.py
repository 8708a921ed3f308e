"""generate.skeleton: specs from the layout comment of PERF_RECORD_SAMPLE."""

from hypothesis import given
from hypothesis import strategies as st

from reviewbot.generate.kselftest import load_specs, render_kselftest
from reviewbot.generate.scope import find_scope
from reviewbot.generate.skeleton import documented_layout, documented_types, provisional_spec, render_spec
from reviewbot.generate.spec import Field
from reviewbot.generate.spec_toml import parse_sample

HEADER = """
enum perf_event_sample_format { PERF_SAMPLE_IP = 1U << 0, PERF_SAMPLE_TWO = 1U << 40, PERF_SAMPLE_SILENT = 1U << 41, };
enum perf_event_type {
    /*
     * struct {
     *    u64    time;
     * };
     */
    PERF_RECORD_LOST    = 2,
    /*
     * struct {
     *    struct perf_event_header    header;
     *
     *    { u64            ip;      } && PERF_SAMPLE_IP
     *    #
     *    # A note { with } braces
     *    #
     *    { u32            size;
     *      char            data[size];}&& PERF_SAMPLE_RAW
     *    { u32            cpu, res; } && PERF_SAMPLE_CPU
     *    { u64            nr;
     *      { u64 from, to; } entries[nr];
     *    } && PERF_SAMPLE_NESTED
     *    { u64            nr;
     *      u64            __words[nr]; } && PERF_SAMPLE_TWO
     * };
     */
    PERF_RECORD_SAMPLE    = 9,
};
"""


def test_the_documented_types_in_order() -> None:
    short = [n.removeprefix("PERF_SAMPLE_") for n in documented_types(HEADER)]
    assert short == ["IP", "RAW", "CPU", "NESTED", "TWO"]


def test_layouts_of_plain_fields() -> None:
    assert documented_layout(HEADER, "PERF_SAMPLE_IP") == (Field(name="ip", type="u64"),)
    assert documented_layout(HEADER, "PERF_SAMPLE_CPU") == (
        Field(name="cpu", type="u32"),
        Field(name="res", type="u32"),
    )
    assert documented_layout(HEADER, "PERF_SAMPLE_RAW") == (
        Field(name="size", type="u32"),
        Field(name="data", type="bytes", count="size"),
    )
    assert documented_layout(HEADER, "PERF_SAMPLE_TWO") == (
        Field(name="nr", type="u64"),
        Field(name="words", type="u64", count="nr"),
    )


def test_what_is_nested_or_missing_has_none() -> None:
    assert documented_layout(HEADER, "PERF_SAMPLE_NESTED") is None
    assert documented_layout(HEADER, "PERF_SAMPLE_SILENT") is None
    assert documented_layout("", "PERF_SAMPLE_IP") is None


def test_a_skeleton_is_a_spec() -> None:
    spec = provisional_spec(HEADER, "PERF_SAMPLE_TWO", 1 << 40)
    again = parse_sample(render_spec(spec))
    assert (again.name, again.bit, again.layout) == (spec.name, 40, spec.layout)


def test_types_without_a_spec_are_rendered_from_the_comment() -> None:
    scope = find_scope("enum perf_event_sample_format { PERF_SAMPLE_IP = 1 };", HEADER, "", load_specs())
    assert scope.unverified == ("PERF_SAMPLE_TWO", "PERF_SAMPLE_SILENT")
    assert any("PERF_SAMPLE_SILENT has no layout in the comment" in note for note in scope.notes)
    decoder = render_kselftest(scope)["decode.c"]
    assert "decode_two" in decoder
    assert "take(c, s->two.nr, 8" in decoder
    assert decoder.index("decode_aux(") < decoder.index("decode_two(") < decoder.index("decode_silent(")


def test_a_comment_that_differs_from_the_spec_is_noted() -> None:
    wrong = HEADER.replace("PERF_SAMPLE_TWO", "PERF_SAMPLE_TIME")
    scope = find_scope("enum perf_event_sample_format { PERF_SAMPLE_IP = 1 };", wrong, "", load_specs())
    assert any("PERF_SAMPLE_TIME: the layout in the comment" in note for note in scope.notes)


@given(st.text(max_size=300))
def test_any_comment_is_read_or_not(text: str) -> None:
    header = "/*\n" + text.replace("*/", "") + "} && PERF_SAMPLE_IP */\nPERF_RECORD_SAMPLE"
    documented_layout(header, "PERF_SAMPLE_IP")
    documented_types(header)
