"""generate.spec: the packaged specs are whole and agree with each other; wrong ones are refused."""

import re
from pathlib import Path

import pytest

from reviewbot.generate.expression import SpecError, c_expression
from reviewbot.generate.kselftest import load_specs
from reviewbot.generate.parts import header_parts
from reviewbot.generate.rules import rules_for
from reviewbot.generate.spec_set import build_specs
from reviewbot.generate.spec_toml import parse_record, parse_sample
from reviewbot.resources import data_dir

GOOD = '# A word.\nname = "PERF_SAMPLE_NEW"\nbit = 30\nplace = 900\nlayout = [{ name = "word", type = "u64" }]\n'
# What linux/perf_event.h of 7.2 defines, and the two types of the example series.
NAMES = [
    "IP",
    "TID",
    "TIME",
    "ADDR",
    "READ",
    "CALLCHAIN",
    "ID",
    "CPU",
    "PERIOD",
    "STREAM_ID",
    "RAW",
    "BRANCH_STACK",
    "REGS_USER",
    "STACK_USER",
    "WEIGHT",
    "DATA_SRC",
    "IDENTIFIER",
    "TRANSACTION",
    "REGS_INTR",
    "PHYS_ADDR",
    "AUX",
    "CGROUP",
    "DATA_PAGE_SIZE",
    "CODE_PAGE_SIZE",
    "WEIGHT_STRUCT",
    "BUILD_ID_OFFSET",
    "CALLCHAIN_BUILD_ID_OFFSET",
]


def test_every_sample_type_has_a_spec_with_its_bit() -> None:
    assert {s.name: s.bit for s in load_specs().samples} == {f"PERF_SAMPLE_{n}": bit for bit, n in enumerate(NAMES)}


def test_every_record_type_has_a_spec() -> None:
    assert sorted({r.value for r in load_specs().records} | {9}) == list(range(1, 23))


def test_samples_stand_in_record_order() -> None:
    order = [s.short for s in load_specs().samples]
    assert order[:4] == ["IDENTIFIER", "IP", "TID", "TIME"]
    assert order[-3:] == ["AUX", "BUILD_ID_OFFSET", "CALLCHAIN_BUILD_ID_OFFSET"]
    assert order.index("ID") < order.index("STREAM_ID") < order.index("CPU") < order.index("READ") < order.index("RAW")


def test_sample_id_is_what_the_kernel_appends() -> None:
    trailer = sorted((s for s in load_specs().samples if s.sample_id), key=lambda s: s.sample_id)
    assert [s.short for s in trailer] == ["TID", "TIME", "ID", "STREAM_ID", "CPU", "IDENTIFIER"]


def test_every_oracle_is_a_c_function() -> None:
    header = (data_dir("selftests") / "lib" / "oracle.h").read_text(encoding="utf-8")
    for spec in load_specs().samples:
        assert not spec.oracle or re.search(rf"\boracle_{spec.oracle}\b", header), spec.name


def test_a_new_type_needs_only_its_spec() -> None:
    specs = build_specs({"new.toml": GOOD}, {}, "")
    assert specs.samples[0].layout[0].name == "word"
    assert specs.samples[0].summary == "A word."


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("# A word.\n", ""), "first line"),
        (("PERF_SAMPLE_NEW", "NEW"), "named PERF_SAMPLE"),
        (("bit = 30", "bit = 64"), "bit from 0 to 63"),
        (("bit = 30", 'bit = "30"'), "must be a int"),
        (("bit = 30", "bit = true"), "must be a int"),
        (("place = 900\n", ""), "place must be"),
        (("u64", "u65"), "unknown type"),
        (('"word"', '"Word;"'), "no C word"),
        (('type = "u64"', 'type = "u64", length = "3"'), "length"),
        (('type = "u64"', 'type = "bytes"'), "need a count"),
        (('type = "u64"', 'type = "u64", count = "later"'), "no earlier field"),
        (('type = "u64"', 'type = "u64", when = "system(1)"'), "no earlier field"),
        (("place = 900", "place = 900\nplaces = 3"), "unknown keys"),
        (('"word"', '"int"'), "'int' is a word of C"),
        (("# A word.", "# A */ int x; /* word."), "first line stands in a C comment"),
        (("place = 900", 'place = 900\nneeds = ["a \\" quote"]'), "needs has 'a \" quote'"),
        (("place = 900", 'place = 900\nattr = {"x = 1; y" = 2}'), "no field of struct perf_event_attr"),
        (("place = 900", 'place = 900\nattr = {sample_max_stack = "system(1)"}'), "no earlier field"),
    ],
)
def test_a_wrong_spec_is_refused(change: tuple[str, str], says: str) -> None:
    with pytest.raises(SpecError, match=re.escape(says)):
        build_specs({"new.toml": GOOD.replace(*change)}, {}, "")


def test_a_spec_of_a_user_cannot_have_the_bit_of_a_released_type() -> None:
    with pytest.raises(SpecError, match=re.escape("own.toml: bit = 24 is that of PERF_SAMPLE_WEIGHT_STRUCT")):
        load_specs({"own.toml": GOOD.replace("bit = 30", "bit = 24")})
    assert load_specs({"own.toml": GOOD.replace("bit = 30", "bit = 25")}).sample("PERF_SAMPLE_NEW")


def test_an_oracle_and_a_program_must_be_there() -> None:
    with pytest.raises(SpecError, match="oracle = 'nosuch': one of"):
        load_specs({"own.toml": GOOD.replace("bit = 30", 'bit = 30\noracle = "nosuch"')})
    with pytest.raises(SpecError, match="programs = 'nosuch': one of"):
        load_specs({"own.toml": '# A mark.\nname = "PERF_CONTEXT_NEW"\nvalue = -768\nprograms = ["nosuch"]\n'})


def test_names_bits_and_places_are_used_once() -> None:
    for other in ("place = 901", "bit = 31"):
        key = other.split(" = ")[0]
        text = re.sub(rf"{key} = \d+", other, GOOD).replace("_NEW", "_OTHER")
        with pytest.raises(SpecError, match="used twice"):
            build_specs({"a.toml": GOOD, "b.toml": text}, {}, "")


def test_record_names_are_checked() -> None:
    with pytest.raises(SpecError, match="PERF_RECORD_"):
        parse_record('# x\nname = "LOST"\nvalue = 2\nlayout = []\n')
    assert parse_sample(GOOD).member == "new"


@pytest.mark.parametrize(
    ("text", "c"),
    [
        ("nr", "s->x.nr"),
        ("hweight64(attr.sample_regs_user)", "hweight64(attr->sample_regs_user)"),
        ("!(misc & PERF_RECORD_MISC_MMAP_BUILD_ID)", "!(header->misc & PERF_RECORD_MISC_MMAP_BUILD_ID)"),
        ("nr * 0x2", "s->x.nr * 0x2"),
    ],
)
def test_expressions_become_c(text: str, c: str) -> None:
    assert c_expression(text, frozenset({"nr"}), "s->x") == c


@pytest.mark.parametrize("text", ["a; b", "nr[0]", '"x"', "exit", "nr # x", "attr.X"])
def test_expressions_outside_the_grammar_are_refused(text: str) -> None:
    with pytest.raises(SpecError):
        c_expression(text, frozenset({"nr"}), "s")


def test_bits_and_markers_agree_with_the_header_of_this_machine() -> None:
    system = Path("/usr/include/linux/perf_event.h")
    if not system.is_file():
        pytest.skip("no linux/perf_event.h")
    parts = header_parts(system.read_text(encoding="utf-8"))
    specs = load_specs()
    known = {s.name: s.value & (1 << 64) - 1 for s in specs.bits} | {r.name: r.value for r in specs.records}
    assert parts.keys() <= known.keys()
    assert parts == {name: known[name] for name in parts}


def test_what_records_and_bits_name_is_there() -> None:
    specs = load_specs()
    bits, rules = {b.name for b in specs.bits}, rules_for(specs)
    assert {name for record in specs.records for name in record.misc} <= bits
    assert {r.rule for r in specs.records if r.rule} | {b.rule for b in specs.bits if b.rule} <= rules.keys()
    assert {name for bit in specs.bits for name in bit.types} <= {s.name for s in specs.samples}


def spoken(name: str) -> str:
    """A regular expression for C that deals with the record, bit or marker of that name."""
    if name.startswith("attr."):
        return rf"[.>]{name.removeprefix('attr.')}\b"
    return rf"\b(?:{name}|{name.removeprefix('PERF_RECORD_').lower()})\b"


def test_a_program_that_holds_a_part_speaks_of_it() -> None:
    sources = {p.stem: p.read_text(encoding="utf-8") for p in (data_dir("selftests") / "programs").glob("*.c")}
    library = "\n".join(p.read_text(encoding="utf-8") for p in (data_dir("selftests") / "lib").glob("*.c"))
    specs = load_specs()
    held = [(r.name, program) for r in specs.records for program in r.programs]
    held += [(b.name, program) for b in specs.bits for program in b.programs]
    assert len(held) > 60
    assert [(n, p) for n, p in held if not re.search(spoken(n), sources[p]) and not re.search(spoken(n), library)] == []
