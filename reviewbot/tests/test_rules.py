"""The rules of the tests: what the table says, where a rule stands, and that every failure names one."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from reviewbot.findings.explain import explain
from reviewbot.generate.expression import SpecError
from reviewbot.generate.kselftest import render_kselftest
from reviewbot.generate.rules import Rule, Tree, load_rules, parse_rules, rule_macro, sources
from reviewbot.model import Breach, Case, Origin, Status
from reviewbot.parse.breaches import is_whole, parse_breaches
from reviewbot.resources import data_dir
from reviewbot.tests.test_kselftest import NEW, SPECS

RULES = load_rules()
C_FILES = sorted([*data_dir("selftests").glob("lib/*.c"), *data_dir("selftests").glob("programs/*.c")])
USED = re.compile(r"\bRULE_[A-Z][A-Z_]*\b")
OWN = {"RULE_BEGIN", "RULE_END", "RULE_SIZE"}
# A failure's text either names its rule, or passes on one that does.
FAILURE = re.compile(r"\b(ktap_fail|ktap_stop|sample_fail|record_fail)\((?P<arguments>(?:[^;]|;(?= ))*?)\);", re.DOTALL)
ENTRY = """
# FAIL: BUILD_ID_OFFSET: build ID size 20; expected 16, the size of the note of /made
# rule: build-id.size
# expected: 16, the size of the note of /made
# seen: BUILD_ID_OFFSET: build ID size 20
# sample: misc 0x2 size 48 sample_type 0x2000001
#   0000:  09 00 00 00 02 00 30 00
# FAIL: BUILD_ID_OFFSET: build ID size 20; expected 16, the size of the note of /made
# rule: build-id.size
# FAIL: IP 0x1 of user space is in no executable mapping
# rule: sample.ip
# seen: IP 0x1 of user space is in no executable mapping
# 4 more failures like these"""


def test_every_rule_is_used_and_every_name_is_a_rule() -> None:
    templates = data_dir("selftests").glob("templates/*.j2")
    used = {name for path in [*C_FILES, *templates] for name in USED.findall(path.read_text())} - OWN
    used |= {rule_macro(spec.rule) for spec in SPECS.samples if spec.proofs}
    assert used == {rule.macro for rule in RULES.values()}
    header = render_kselftest(NEW)["rules.h"]
    assert all(f'#define {rule.macro} "\\001{rule.name}\\002"' in header for rule in RULES.values())


@pytest.mark.parametrize("path", C_FILES, ids=lambda path: path.name)
def test_every_failure_names_its_rule(path: Path) -> None:
    for match in FAILURE.finditer(path.read_text()):
        arguments = match["arguments"]
        passed_on = "problem" in arguments or '"%s", text' in arguments or "what" in arguments or ", text" in arguments
        assert "RULE_" in arguments or passed_on or "format" in arguments, arguments


@pytest.mark.parametrize(
    "text",
    [
        '["A"]\ntext = "x"\nman = "y"',
        '["a"]\ntext = "x"',
        '["a"]\ntext = "x"\nman = "y"\nlevel = "error"',
        '["a"]\ntext = "x"\nman = "y"\nlevel = "maybe"',
        '["a"]\ntext = "x"\nman = "y"\nwhere = "z"',
    ],
)
def test_a_rule_that_says_too_little_or_too_much_is_refused(text: str) -> None:
    with pytest.raises(SpecError):
        parse_rules(text)


def test_a_source_is_quoted_from_the_tree_and_from_the_message() -> None:
    rule = Rule(name="a", text="t", uapi=r"\bsize;", message="size = 0", man="m(2), S")
    header = "/*\n *\tu8\t\tsize;\n */\n"
    message = "Write it.\n\nIf there is none, it\nis empty (size = 0) there. Other text."
    assert sources(rule, Tree(header=header, messages=(("perf: One", message),))) == (
        'include/uapi/linux/perf_event.h:2: "u8 size;"',
        'commit message of "perf: One": "If there is none, it is empty (size = 0) there."',
        "m(2), S",
    )
    assert sources(rule, Tree()) == ("m(2), S",)


def test_the_first_breach_of_each_rule_is_read() -> None:
    size, ip = parse_breaches(ENTRY)
    assert size == Breach(
        rule="build-id.size",
        seen="BUILD_ID_OFFSET: build ID size 20",
        expected="16, the size of the note of /made",
        record="sample: misc 0x2 size 48 sample_type 0x2000001\n  0000:  09 00 00 00 02 00 30 00",
    )
    assert (ip.rule, ip.expected) == ("sample.ip", "")
    assert not parse_breaches("# mmap.c:12:name:Expected a (1) == b (2)")


def case_of(*breaches: Breach, excerpt: str = "# FAIL: x") -> Case:
    return Case(
        name="p/c",
        base=Status.SKIP,
        patched=Status.FAIL,
        reason="x",
        origin=Origin.INTRODUCED,
        excerpt=excerpt,
        breaches=breaches,
    )


@pytest.mark.parametrize(
    ("names", "excerpt", "status"),
    [
        (("test.setup",), "# FAIL: x", Status.WARN),
        (("test.setup", "sample.tid"), "# FAIL: x", Status.FAIL),
        (("sample.tid",), "# FAIL: x", Status.FAIL),
        (("unheard.of",), "# FAIL: x", Status.FAIL),
        (("test.setup",), "# FAIL: x\n[... 9 lines left out ...]\n", Status.FAIL),
    ],
)
def test_a_case_that_breaks_only_rules_to_judge_is_a_warning(
    names: tuple[str, ...], excerpt: str, status: Status
) -> None:
    (case,) = explain((case_of(*(Breach(rule=n, seen="s") for n in names), excerpt=excerpt),), RULES, Tree())
    assert case.patched is status
    assert case.counts == (status is Status.FAIL)
    assert is_whole(excerpt) == ("left out" not in excerpt)


def test_a_rule_that_stands_nowhere_is_one_to_judge() -> None:
    rules = parse_rules('["a"]\ntext = "t"\nmessage = "size = 0"')
    broken = case_of(Breach(rule="a", seen="s"))
    (silent,) = explain((broken,), rules, Tree(messages=(("one", "nothing"),)))
    (said,) = explain((broken,), rules, Tree(messages=(("one", "It is empty (size = 0)."),)))
    assert (silent.patched, said.patched) == (Status.WARN, Status.FAIL)
    assert said.breaches[0].sources == ('commit message of "one": "It is empty (size = 0)."',)


def test_a_failure_whose_rule_was_cut_off_is_no_second_breach() -> None:
    whole = "# FAIL: IP is 0\n# rule: sample.ip\n# seen: IP is 0\n"
    cut = "# FAIL: IP is 0\n# … 12 lines left out\n"
    assert [one.rule for one in parse_breaches(whole + cut)] == ["sample.ip"]
    assert [one.rule for one in parse_breaches(whole + cut.replace("IP is 0", "size 3"))] == ["sample.ip", ""]


def test_what_base_breaks_with_its_own_types_is_one_to_judge() -> None:
    broken = case_of(Breach(rule="header.size", seen="s"), excerpt="# FAIL: x")
    own = replace(broken, name="p/old", base=Status.FAIL, origin=Origin.PRE_EXISTING)
    (_, judged) = explain((own, broken), RULES, Tree(header="size"))
    assert judged.patched is Status.WARN
    assert "base breaks the same rule, p/old shows it" in judged.reason
    for other in (
        replace(own, name="q/old"),
        replace(own, breaches=(Breach(rule="sample.tid", seen="s"),)),
        replace(own, origin=Origin.INTRODUCED),
    ):
        assert explain((other, broken), RULES, Tree())[1].patched is Status.FAIL
    assert explain((own, replace(broken, base=Status.PASS)), RULES, Tree())[1].patched is Status.FAIL
