"""Failing cases as findings: which lines of a series write a value, and which cases have one cause."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reviewbot.findings.causes import case_findings, without_records
from reviewbot.generate.kselftest import load_specs
from reviewbot.generate.rules import load_rules
from reviewbot.generate.writers import LINES_MAX, PatchedFile, find_lines
from reviewbot.model import Blame, Breach, Case, Origin, SourceLine, StageResult, Status, main_breach
from reviewbot.parse.blame import parse_blame
from reviewbot.parse.diff import parse_diff
from reviewbot.parse.hunk import Hunk
from reviewbot.report import view
from reviewbot.resources import example_dir

RULES = load_rules()
SPECS = load_specs()
ANSWER = next(spec for spec in SPECS.records if spec.short == "CALLCHAIN_DEFERRED")


def after(hunk: Hunk) -> list[str]:
    """The new side of a hunk as functions of their own: what the hunk cuts off is closed again."""
    lines = [line for line in hunk.lines if not line.startswith("-")]
    head = hunk.header.rpartition("@@")[2].strip()
    if re.match(r"\w.*\(", head) and not head.endswith(";"):
        # A block that the hunk leaves was entered before it.
        left = [line for line in lines if line[1:].strip() == "}" and line[1:2] == "\t"][:1]
        lines = [f" {head}{'' if ')' in head else ' int rest)'}", " {", *[" \t{"] * len(left), *lines]
    opened = sum(line[1:] == "{" for line in lines) - sum(line[1:] == "}" for line in lines)
    return [*lines, *[" }"] * opened, " "]


@pytest.fixture(scope="module")
def seed() -> tuple[PatchedFile, ...]:
    """The hunks of the packaged series as if they were whole files: what the patch adds is whole."""
    files = []
    for file in parse_diff((example_dir("build-id-offset") / "series.txt").read_text()).files:
        lines = [line for hunk in file.hunks for line in after(hunk)]
        added = {n: 3 for n, line in enumerate(lines, 1) if line.startswith("+")}
        files.append(PatchedFile(path=file.path, text="\n".join(line[1:] for line in lines).encode(), added=added))
    return tuple(files)


def failing(name: str, rule: str, seen: str, **more: object) -> Case:
    breach = Breach(rule=rule, seen=seen, record="  0000: 00", level=RULES[rule].level)
    values = {"patched": Status.FAIL, "origin": Origin.INTRODUCED, "base": Status.SKIP, "reason": seen, **more}
    return Case(name=name, breaches=(breach,), **values)  # type: ignore[arg-type]


SIZE = (
    "u8 size = 0;",
    "if (bpf_bid->status == BPF_STACK_BUILD_ID_VALID)",
    "size = BUILD_ID_SIZE_MAX;",
    "bid->size = size;",
)
IP_IN_PLACE = (
    "if (resolve_ip_nr)",
    "buf->bids[0].ip = data->ip;",
    "stack_map_get_build_id_offset(buf->bids,",
)
IN_PLACE = (
    "buf->bids[resolve_ip_nr + i].ip =",
    "data->callchain->ip[user_start + i];",
    "stack_map_get_build_id_offset(buf->bids,",
)
HEADER = (
    "data->dyn_size += sizeof(u64);",
    "nr = min_t(u64, data->callchain->nr, max_nr);",
    "data->dyn_size += nr * sizeof(struct perf_sample_build_id_offset);",
)


@pytest.mark.parametrize(
    ("breach", "function", "texts", "absent"),
    [
        (("build-id.size", "BUILD_ID_OFFSET: build ID size 20"), "perf_bpf_to_sample_bid_offset", SIZE, "header_size"),
        (
            ("build-id.size", "CALLCHAIN_DEFERRED: build ID size 20"),
            "perf_bpf_to_sample_bid_offset",
            SIZE,
            "header_size",
        ),
        (("build-id.mapping", "CALLCHAIN_BUILD_ID_OFFSET[2]: x"), "perf_output_sample_build_id", IN_PLACE, "trace->"),
        (("build-id.mapping", "CALLCHAIN_BUILD_ID_OFFSET[2]: x"), "perf_output_sample_build_id", IN_PLACE, "data->ip"),
        (("build-id.mapping", "BUILD_ID_OFFSET: x"), "perf_output_sample_build_id", IP_IN_PLACE, "callchain->ip"),
        (
            ("build-id.kernel", "CALLCHAIN_BUILD_ID_OFFSET[0]: x"),
            "perf_output_sample_build_id",
            (".offset = data->callchain->ip[i],", "for (u64 i = 0; i < unres_prefix; i++) {"),
            "data->ip",
        ),
        (
            ("build-id.kernel", "BUILD_ID_OFFSET: x"),
            "perf_output_sample_build_id",
            (".offset = data->ip,", "} else if (buf && resolve_ip_nr) {"),
            "data->callchain",
        ),
        (
            ("deferred.address", "CALLCHAIN_DEFERRED: the answer is for 0x1"),
            "perf_resolve_build_id_offsets",
            ("for (u16 i = 0; i < nr; i++)", "bpf_bids[i].ip = trace->entries[i];"),
            "buf->bids",
        ),
        (("header.size", "header.size 120"), "perf_prepare_sample", HEADER, "deferred_event"),
        (
            ("header.size", "CALLCHAIN_DEFERRED: header.size 120"),
            "perf_callchain_deferred_output",
            (
                "header_size = sizeof(deferred_event->event) + (nr * elem_size);",
                "deferred_event->event.header.size = header_size;",
            ),
            "dyn_size",
        ),
    ],
)
def test_the_lines_of_the_seed_that_write_it(
    seed: tuple[PatchedFile, ...], breach: tuple[str, str], function: str, texts: tuple[str, ...], absent: str
) -> None:
    (finding,) = case_findings([failing("p/c", *breach)], RULES, SPECS, seed)
    shown = [line.text.strip() for line in finding.lines]
    assert set(texts) <= set(shown), shown
    assert not any(absent in text for text in shown)
    assert len(shown) <= LINES_MAX
    assert finding.function == function
    assert {line.patch for line in finding.lines} == {3}
    assert finding.line in {line.line for line in finding.lines if line.writes}


def test_cases_of_one_cause_are_one_finding(seed: tuple[PatchedFile, ...]) -> None:
    cases = [
        failing("chains/a", "build-id.mapping", "CALLCHAIN_BUILD_ID_OFFSET[2]: x"),
        failing("files/in_place.a", "build-id.size", "BUILD_ID_OFFSET: build ID size 20"),
        failing("files/deferred.a", "build-id.size", "CALLCHAIN_DEFERRED: build ID size 20"),
        failing("shared/a", "header.size", "header.size 72"),
        failing("shared/old", "header.size", "header.size 48", origin=Origin.PRE_EXISTING, blame=Blame.BASE),
        Case(name="other", base=Status.PASS, patched=Status.FAIL, reason="x", origin=Origin.INTRODUCED),
    ]
    findings = case_findings(cases, RULES, SPECS, seed)
    assert [(f.rule, f.cases, f.counts) for f in findings] == [
        ("header.size", ("shared/a",), True),
        ("header.size", ("shared/old",), False),
        ("build-id.size", ("files/in_place.a", "files/deferred.a"), True),
        ("build-id.mapping", ("chains/a",), True),
    ]
    assert not findings[1].lines
    stage = StageResult(stage="selftest", status=Status.FAIL, summary="s", findings=findings, cases=tuple(cases))
    assert [case.name for case in stage.loose] == ["other"]
    assert [case.name for case in view.to_look_at(stage)] == ["other"]
    assert [case.name for case in view.cases_of(stage, findings[2])] == ["files/in_place.a", "files/deferred.a"]
    assert not without_records(cases[0]).breaches[0].record


def test_what_counts_stands_for_the_case() -> None:
    mild, grave = Breach(rule="a", seen="s", level=Status.WARN), Breach(rule="b", seen="s")
    case = Case(name="x", base=Status.SKIP, patched=Status.FAIL, reason="r", breaches=(mild, grave))
    assert main_breach(case) == grave


CODE = b"""
struct inner { struct other *link; int size; };
struct outer { struct inner in; };

static int set(struct outer *outer, struct other *o, int n)
{
	struct inner mine = {
		.size = n,
	};
	int size = 1;

	if (n > 2)
		n = size;
	outer->in.size = n;
	o->size = 3;
	memset(&mine.size, 0, sizeof(mine.size));
	call(size);
	return mine.size;
}
"""


def lines_of(code: bytes, *writes: str) -> list[str]:
    file = PatchedFile(path="k/a.c", text=code, added=dict.fromkeys(range(1, code.count(b"\n") + 1), 1))
    return [line.text.strip() for line in find_lines([file], writes)]


def test_a_member_is_told_from_its_namesake() -> None:
    assert lines_of(CODE, "inner.size") == [
        "struct inner mine = {",
        ".size = n,",
        "if (n > 2)",
        "n = size;",
        "outer->in.size = n;",
        "memset(&mine.size, 0, sizeof(mine.size));",
    ]
    assert lines_of(CODE, "other.size") == ["o->size = 3;"]
    assert lines_of(CODE, "call()") == ["call(size);"]
    assert lines_of(CODE, "unknown.size") == []


def test_only_added_lines_are_shown() -> None:
    file = PatchedFile(path="k/a.c", text=CODE, added={14: 2})
    (line,) = find_lines([file], ["inner.size"])
    assert line == SourceLine(patch=2, file="k/a.c", line=14, function="set", text="\touter->in.size = n;")


@given(st.text(alphabet="{}();=.,-> \n\tifstructa*[]0", max_size=300))
def test_no_source_makes_it_raise(text: str) -> None:
    lines_of(f"int f(struct a *a)\n{{\n{text}\n}}\n".encode(), "a.t", "i", "f()")


def test_shared_tabs_are_left_out_of_what_is_shown() -> None:
    lines = [
        SourceLine(patch=1, file="a.c", line=n, function=f, text=text)
        for n, f, text in ((1, "f", "\t\tx;"), (2, "f", "\t\t\ty;"), (9, "g", "\tz;"))
    ]
    ((key, shown),) = view.by_file(lines)
    assert key == (1, "a.c")
    assert [line.text for line in shown] == ["x;", "\ty;", "z;"]


def test_blame_is_read_from_the_porcelain_format() -> None:
    first, second = "a" * 40, "b" * 40
    text = (
        f"{first} 7 1 2\nauthor A U Thor\nfilename k/a.c\n\tint a;\n{first} 8 2\n\t{second} 3 3\n{second} 1 3 1\n\tx\n"
    )
    assert parse_blame(text) == {1: first, 2: first, 3: second}
