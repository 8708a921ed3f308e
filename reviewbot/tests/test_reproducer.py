"""A reproducer is one C file: it compiles alone, without warnings, and knows what it is about."""

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reviewbot.generate.amalgam import Amalgam
from reviewbot.generate.csplit import Item, resolve, split_items
from reviewbot.generate.kselftest import load_specs
from reviewbot.generate.one_case import one_case
from reviewbot.generate.reproducer import Subject, about, file_name, render_reproducer
from reviewbot.model import Breach, Case, Finding, Origin, SourceLine, Status
from reviewbot.tests.test_kselftest import NEW, RAW, with_new_names
from reviewbot.tools.kernel import Kernel
from reviewbot.tools.reproducers import write_reproducers

SYSTEM = Path("/usr/include/linux/perf_event.h")
needs_compiler = pytest.mark.skipif(not shutil.which("gcc") or not SYSTEM.exists(), reason="no compiler")


def header() -> str:
    return with_new_names(SYSTEM.read_text(encoding="utf-8"))


@needs_compiler
@pytest.mark.parametrize(
    ("case", "rule"),
    [
        ("files/in_place.md5_16_bytes", "build-id.size"),
        ("deferred/own.uprobe", "deferred.address"),
        ("chains/made.page_faults.outside.build_id", "build-id.mapping"),
        ("shared/page_faults.build_id", "header.size"),
        ("abi/unused_bits_refused", "open.refused"),
        ("raw_bpf/packet.small", "raw.data"),
    ],
)
def test_it_compiles_alone_and_says_what_it_is_about(case: str, rule: str, tmp_path: Path) -> None:
    text = render_reproducer(RAW if case.startswith("raw") else NEW, header(), Subject(case=case, rule=rule))
    assert '#include "' not in text
    assert "perf_event.h>" not in text
    source = tmp_path / file_name(case)
    source.write_text(text, encoding="utf-8")
    argv = ["gcc", "-static", "-O2", "-Wall", "-Werror", "-o", str(tmp_path / "r"), str(source)]
    built = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert not built.returncode, built.stderr[-3000:]
    said = subprocess.run([tmp_path / "r", "--plan"], capture_output=True, text=True, check=True)
    assert said.stdout == f"{case.partition('/')[2]}: {rule}\n"


@needs_compiler
def test_the_sample_types_that_a_case_does_not_name_are_left_out() -> None:
    text = render_reproducer(NEW, header(), Subject(case="files/in_place.md5_16_bytes", rule="build-id.size"))
    assert "decode_build_id_offset" in text
    assert "decode_branch_stack" not in text
    assert "PERF_SAMPLE_BRANCH_STACK" not in text


@pytest.mark.parametrize("case", ["no_program/x", "abi/no_such_case"])
def test_what_the_tests_do_not_have_is_refused(case: str) -> None:
    with pytest.raises(ValueError, match=r"no program|no case"):
        render_reproducer(NEW, "", Subject(case=case, rule="x"))


MAIN = """
int main(int argc, char **argv)
{
	static int cases[2];

	for (int i = 0; i < 2; i++) {
		if (i)
			ktap_add(one, &cases[i], "one.%s", names[i]);
		else
			ktap_add(two, NULL, "one.%s.%u", names[i], i);
	}
	for (int i = 0; i < 2; i++)
		ktap_add(three, NULL, "three.%s", names[i]);
	return ktap_main(argc, argv);
}
"""


def test_only_what_adds_the_case_is_left_in_main() -> None:
    text = one_case(MAIN, "one.x.7")
    assert re.findall(r"ktap_add\((\w+)", text) == ["two"]
    assert "three" not in text
    assert "cases" not in text
    assert re.findall(r"ktap_add\((\w+)", one_case(MAIN, "three.y")) == ["three"]


def test_what_is_cut_from_main_leaves_no_lines_behind() -> None:
    assert (
        one_case(MAIN, "one.x.7")
        == """
int main(int argc, char **argv)
{
	for (int i = 0; i < 2; i++) {
		if (i)
			(void)0;
		else
			ktap_add(two, NULL, "one.%s.%u", names[i], i);
	}
	return ktap_main(argc, argv);
}
"""
    )


SOURCE = """
/* Not used. */
static int other(void)
{
	return 1;
}

#if HAVE_IT
#define SIZE 8
#else
#define SIZE 4
#endif

struct pair {
	struct pair *next;
	int size;
};

static struct pair first, second;

static int odd(int n);

/* Even? */
static int even(int n)
{
	return n ? odd(n - 1) : 1;
}

static int odd(int n)
{
	return n ? even(n - 1) : SIZE + first.size;
}

int main(void)
{
	return odd(3);
}
"""


def items(text: str, file: str) -> tuple[Item, ...]:
    return tuple(split_items(resolve(text, {"HAVE_IT": "1"}), file))


def test_what_is_not_reached_is_left_out_and_the_rest_stands_in_order() -> None:
    amalgam = Amalgam(items=items(SOURCE, "a.c"))
    amalgam.reach(["main"], "a.c")
    text = amalgam.render()
    assert "other" not in text
    assert "second" not in text
    assert "#define SIZE 8" in text
    assert "#define SIZE 4" not in text
    assert text.index("struct pair {") < text.index("static struct pair first;") < text.index("SIZE + first.size")
    assert "/* Even? */\nstatic int even(int n)\n{" in text
    assert text.index("static int odd(int n);") < text.index("return n ? odd(n - 1)")


def test_variables_of_one_declaration_are_told_apart() -> None:
    text = "static int a, *b, ends[2] = { -1, 1 };\nstatic void (*call)(int a, int b);\nint main(void)\n{\n}\n"
    found = items(text, "a.c")
    assert [item.names for item in found] == [("a",), ("b",), ("ends",), ("call",), ("main",)]
    assert [item.text for item in found[:3]] == ["static int a;", "static int *b;", "static int ends[2] = { -1, 1 };"]


def test_private_names_of_two_files_are_told_apart() -> None:
    one = "static int help(void)\n{\n\treturn 1;\n}\n\nint use(void)\n{\n\treturn help();\n}\n"
    two = "static int help(void)\n{\n\treturn 2;\n}\n\nint main(void)\n{\n\treturn help() + use();\n}\n"
    amalgam = Amalgam(items=(*items(one, "one.c"), *items(two, "two.c")))
    amalgam.reach(["main"], "two.c")
    text = amalgam.render()
    assert text.count("int help(void)") == 1
    assert len(set(re.findall(r"help\w*\(void\)", text))) == 2


@given(st.text(alphabet="#if def\n{}();=,/*\"'structAB \\", max_size=200))
def test_no_source_makes_it_raise(text: str) -> None:
    tuple(split_items(resolve(text, {"A": "1"}), "a.c"))


def test_the_head_is_a_comment_whatever_a_record_holds() -> None:
    breach = Breach(rule="a.b", seen="seen */ int x; \\", expected="16", text="It is so", sources=("man(2)",))
    case = Case(
        name="p/c", base=Status.SKIP, patched=Status.FAIL, reason="r", origin=Origin.INTRODUCED, breaches=(breach,)
    )
    line = SourceLine(patch=3, file="k/a.c", line=7, function="f", text="\tx = 1; /* y */")
    finding = Finding(title="t", severity=Status.FAIL, origin=Origin.INTRODUCED, rule="a.b", lines=(line,))
    lines = about(case, finding, "a kernel")
    assert "The rule, a.b: It is so." in lines
    assert "k/a.c:7: x = 1; /* y */" in lines
    assert any("gcc -static" in text for text in lines)


@needs_compiler
def test_a_file_is_written_for_each_case_that_counts(tmp_path: Path) -> None:
    place = tmp_path / "include" / "linux"
    place.mkdir(parents=True)
    (place / "perf_event.h").write_text(header(), encoding="utf-8")
    kernel = Kernel(
        commit="c",
        image=tmp_path,
        headers=tmp_path / "include",
        config=tmp_path,
        release="7.2.9",
        diagnostics=(),
        objects=0,
        cached=True,
    )
    names = ("abi/reserved.BUILD_ID_OFFSET", "abi/unused_bits_refused", "abi")
    breach = Breach(rule="open.refused", seen="s")
    cases = [
        Case(name=n, base=Status.PASS, patched=Status.FAIL, reason="r", origin=Origin.INTRODUCED, breaches=(breach,))
        for n in names
    ]
    ours = Finding(title="t", severity=Status.FAIL, origin=Origin.INTRODUCED, rule="open.refused", cases=names)
    old = replace(ours, origin=Origin.PRE_EXISTING)
    found, left = write_reproducers(tmp_path, (ours, old), cases, specs=load_specs(), scope=NEW, patched=kernel)
    assert found.reproducer == "selftest/reproduce/abi-reserved.BUILD_ID_OFFSET.c"
    assert not left.reproducer
    written = sorted(path.name for path in (tmp_path / "selftest" / "reproduce").iterdir())
    assert written == ["abi-reserved.BUILD_ID_OFFSET.c", "abi-unused_bits_refused.c"]
    assert "7.2.9" in (tmp_path / found.reproducer).read_text()


def test_a_name_of_a_case_is_a_name_of_a_file() -> None:
    assert file_name("files/in place.16$") == "files-in-place.16-.c"
