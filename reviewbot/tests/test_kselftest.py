"""generate.kselftest: what is rendered compiles, runs, and holds a case for what is in scope."""

import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from reviewbot.generate.bits import Kind
from reviewbot.generate.combinations import combinations, covering_rows
from reviewbot.generate.kselftest import load_specs, programs, render_kselftest
from reviewbot.generate.parts import ScopedPart
from reviewbot.generate.scope import Scope, ScopedType, find_scope
from reviewbot.generate.spec import Specs
from reviewbot.generate.spec_toml import parse_sample

SPECS = load_specs()
ALL = tuple(sorted(((s.name, 1 << s.bit) for s in SPECS.samples), key=lambda item: item[1]))
NEW = Scope(
    types=tuple(ScopedType(name=n, value=v, new=True, why="new") for n, v in ALL if n.endswith("BUILD_ID_OFFSET")),
    all_types=ALL,
)
RAW = Scope(types=(ScopedType(name="PERF_SAMPLE_RAW", value=1 << 10, new=False, why="touched"),), all_types=ALL)


def makefile_words(pattern: str, files: dict[str, str]) -> list[str]:
    match = re.search(pattern, files["Makefile"])
    assert match
    return match[1].split()


def write(files: dict[str, str], where: Path) -> Path:
    for name, text in files.items():
        assert Path(name).name == name
        (where / name).write_text(text, encoding="utf-8")
    return where


def test_the_directory_is_a_whole_kselftest() -> None:
    files = render_kselftest(NEW)
    assert {
        "Makefile",
        "config",
        "settings",
        "decode.c",
        "decode.h",
        "scope.h",
        "abi.c",
        "layout.c",
        "build_id.c",
    } <= set(files)
    sources = makefile_words(r"LOCAL_SOURCES := (.*)", files)
    headers = makefile_words(r"LOCAL_HEADERS := (.*)", files)
    tests = makefile_words(r"TEST_GEN_PROGS := (.*)", files)
    assert tests == list(programs(NEW, SPECS))
    assert {*sources, *headers, *(f"{t}.c" for t in tests), "Makefile", "config", "settings"} == set(files)
    assert all(text.endswith("\n") for text in files.values())


def test_records_of_the_kernel_are_tested_where_a_part_in_scope_is_held_by_them() -> None:
    assert not {"kernel_text", "cgroups", "throttle"} & set(programs(NEW, SPECS))
    part = ScopedPart(
        name="PERF_RECORD_CGROUP", kind=Kind.RECORD, value=19, new=False, why="named", programs=("cgroups",)
    )
    held = programs(replace(NEW, parts=(part,)), SPECS)
    assert "cgroups" in held
    assert "throttle" not in held
    assert {"kernel_text", "cgroups", "throttle"} <= set(programs(replace(NEW, every=True), SPECS))


def test_every_record_is_held_by_a_test_or_needs_hardware() -> None:
    hardware = {"AUX", "ITRACE_START", "LOST_SAMPLES", "AUX_OUTPUT_HW_ID"}
    left = {r.name.removeprefix("PERF_RECORD_") for r in SPECS.records if not r.programs}
    assert left <= hardware


def test_what_an_older_header_lacks_is_defined_and_what_it_has_is_not() -> None:
    header = "enum perf_event_sample_format {" + ",".join(f"{n} = {v}" for n, v in ALL[:20]) + "};\n"
    header += "#define PERF_FORMAT_LOST (1U << 4)\nstruct perf_event_attr { __u16 sample_max_stack; };"
    compat = render_kselftest(find_scope(header, header, "", SPECS, every=True))["compat.h"]
    assert "#define PERF_SAMPLE_CGROUP (1ULL << 21)" in compat
    assert "#define PERF_SAMPLE_PHYS_ADDR" not in compat
    assert "#define PERF_FORMAT_LOST" not in compat
    assert "#define HAVE_RESERVED_2 1" in compat
    assert "#define PERF_RECORD_CALLCHAIN_DEFERRED 22" in compat
    assert "#define HAVE_SAMPLE_MAX_STACK 1" in compat
    assert "#define HAVE_DEFER_CALLCHAIN 0" in compat


def test_an_old_kernel_is_not_asked_for_what_its_header_does_not_have() -> None:
    header = "enum perf_event_sample_format {" + ",".join(f"{n} = {v}" for n, v in ALL[:19]) + "};\n"
    header += "struct perf_event_attr {\n\t__u32\t__reserved_2;\t/* align to __u64 */\n};\n"
    compat = render_kselftest(find_scope(header, header, "", SPECS, every=True))["compat.h"]
    assert "#define PERF_FORMAT_LOST 0\n" in compat
    assert "#define HAVE_RESERVED_2 0\n" in compat


def test_rendering_is_deterministic() -> None:
    assert render_kselftest(NEW) == render_kselftest(NEW)


def test_programs_follow_the_oracles_in_scope() -> None:
    assert "build_id" in programs(NEW, SPECS)
    assert "raw" not in programs(NEW, SPECS)
    assert "raw" in programs(RAW, SPECS)
    assert "build_id" not in programs(RAW, SPECS)


def test_what_counts_since_boot_is_looked_at_first() -> None:
    assert programs(NEW, SPECS)[0] == "account"
    assert "account" not in programs(RAW, SPECS)


def test_an_empty_scope_has_no_tests() -> None:
    with pytest.raises(ValueError, match="no sample type"):
        render_kselftest(Scope(types=(), all_types=ALL))


def test_layout_cases_cover_each_pair_once_and_nothing_that_excludes_itself() -> None:
    rows = combinations(NEW, SPECS)
    assert len({r.name for r in rows}) == len(rows) == len({r.bits for r in rows})
    bits = {r.bits for r in rows}
    for own in NEW.types:
        assert own.value in bits
        for _, other in ALL:
            assert own.value | other in bits
    assert NEW.types[0].value | NEW.types[1].value in bits
    rows = combinations(find_scope_of(("WEIGHT",)), SPECS)
    assert not any("WEIGHT_STRUCT" in r.name for r in rows)


def find_scope_of(names: tuple[str, ...]) -> Scope:
    header = "enum perf_event_sample_format {" + ",".join(f"{n} = {v}" for n, v in ALL) + "};"
    scope = find_scope(header, header, "", SPECS, every=True)
    chosen = tuple(t for t in scope.types if t.name.removeprefix("PERF_SAMPLE_") in names)
    return Scope(types=chosen, all_types=scope.all_types)


def test_covering_rows_hold_every_two_names_together_and_apart() -> None:
    names = tuple("abcdefgh")
    rows = covering_rows(names)
    for i, a in enumerate(names):
        for b in names[i + 1 :]:
            assert {(a in row, b in row) for row in rows} == {(x, y) for x in (True, False) for y in (True, False)}
    assert len(rows) < 16


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The rendered directory, with headers that know every type that the tests name."""
    if not shutil.which("gcc") or not shutil.which("make"):
        pytest.skip("no compiler")
    where = write(render_kselftest(NEW), tmp_path_factory.mktemp("kselftest"))
    headers = where / "usr" / "include" / "linux"
    headers.mkdir(parents=True)
    system = Path("/usr/include/linux/perf_event.h")
    if not system.exists():
        pytest.skip("no linux/perf_event.h")
    (headers / "perf_event.h").write_text(with_new_names(system.read_text(encoding="utf-8")), encoding="utf-8")
    (where / "out").mkdir()
    return where


def make(where: Path, *targets: str) -> subprocess.CompletedProcess[str]:
    headers = f"KHDR_INCLUDES=-isystem {where}/usr/include"
    return subprocess.run(
        ["make", "-C", where, headers, f"OUTPUT={where}/out", "CFLAGS=-O0", *targets],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
    )


@pytest.fixture(scope="module")
def abi(rendered: Path) -> Path:
    """One program, built by the rendered Makefile."""
    result = make(rendered, f"{rendered}/out/abi")
    assert result.returncode == 0, result.stdout + result.stderr
    return rendered / "out" / "abi"


def with_new_names(header: str) -> str:
    """Add what a newer header than the host's would have."""
    extra = [f"#define {n} {v:#x}ULL" for n, v in ALL if n not in header]
    if "PERF_FORMAT_LOST" not in header:
        extra.append("#define PERF_FORMAT_LOST 16")
    if "defer_callchain" not in header:
        header = re.sub(r"__reserved_1\s*:\s*\d+;", "defer_callchain:1, defer_output:1, __reserved_1:24;", header)
    if "PERF_CONTEXT_USER_DEFERRED" not in header:
        extra.append("#define PERF_CONTEXT_USER_DEFERRED ((__u64)-640)")
    for value, name in ((21, "AUX_OUTPUT_HW_ID"), (22, "CALLCHAIN_DEFERRED")):
        if f"PERF_RECORD_{name}" not in header:
            extra.append(f"#define PERF_RECORD_{name} {value}")
    if "PERF_SAMPLE_BRANCH_COUNTERS" not in header:
        extra.append("#define PERF_SAMPLE_BRANCH_COUNTERS (1U << 19)")
    return header + "\n".join(extra) + "\n"


def test_every_source_compiles_without_a_warning(rendered: Path) -> None:
    flags = ["-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Wno-missing-field-initializers", "-Werror"]
    include = ["-isystem", f"{rendered}/usr/include"]
    sources = sorted(str(path) for path in rendered.glob("*.c"))
    result = subprocess.run(
        ["gcc", "-fsyntax-only", *flags, *include, *sources],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr


def aged(header: str) -> str:
    """The header as a tree of 2016 had it, as far as the tests can tell."""
    text = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    for name, value in ALL:
        if value > 1 << 18:
            text = re.sub(rf"^\s*{name}\s*=.*,$", "", text, flags=re.MULTILINE)
    text = re.sub(r"^\s*PERF_FORMAT_LOST\s*=.*,$", "", text, flags=re.MULTILINE)
    text = re.sub(r"^\s*PERF_RECORD_\w+\s*=\s*(1[6-9]|2\d),$", "", text, flags=re.MULTILINE)
    text = re.sub(r"^#define PERF_RECORD_MISC_(MMAP_BUILD_ID|FORK_EXEC|SWITCH_OUT_PREEMPT)\b.*$", "", text, flags=re.M)
    for number, name in enumerate(
        ("sample_max_stack", "aux_sample_size", "mem_lvl_num", "build_id", "namespaces", "ksymbol", "bpf_event")
    ):
        text = re.sub(rf"\b{name}\b(?=\s*[:;])", f"later_{number}", text)
    return re.sub(r"(__reserved_2;)", r"\1 /* align to __u64 */", text, count=1)


def test_every_source_compiles_against_an_old_header(tmp_path: Path) -> None:
    system = Path("/usr/include/linux/perf_event.h")
    if not shutil.which("gcc") or not system.exists():
        pytest.skip("no compiler or header")
    header = aged(system.read_text(encoding="utf-8"))
    files = render_kselftest(find_scope(header, header, "", SPECS, every=True))
    for have in ("RESERVED_2", "SAMPLE_MAX_STACK", "AUX_SAMPLE_SIZE", "MEM_LVL_NUM", "BUILD_ID", "KSYMBOL"):
        assert f"#define HAVE_{have} 0\n" in files["compat.h"]
    (tmp_path / "linux").mkdir()
    (tmp_path / "linux" / "perf_event.h").write_text(header, encoding="utf-8")
    directory = tmp_path / "tests"
    directory.mkdir()
    sources = sorted(str(path) for path in write(files, directory).glob("*.c"))
    flags = ["-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Wno-missing-field-initializers", "-Werror"]
    result = subprocess.run(
        ["gcc", "-fsyntax-only", *flags, "-isystem", str(tmp_path), *sources],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr


def test_a_program_lists_each_of_its_cases_once(abi: Path) -> None:
    cases = subprocess.run([abi, "--list"], capture_output=True, text=True, check=True).stdout.split()
    assert "refused_on_base_accepted_on_patched.BUILD_ID_OFFSET" in cases
    assert "refused_on_base_accepted_on_patched.CALLCHAIN_BUILD_ID_OFFSET" in cases
    assert len(cases) == len(set(cases))


def test_a_program_prints_ktap_with_its_plan_first(abi: Path) -> None:
    result = subprocess.run([abi, "--kernel=base"], capture_output=True, text=True, check=False)
    lines = result.stdout.splitlines()
    assert lines[0] == "KTAP version 1"
    plan = re.fullmatch(r"1\.\.(\d+)", lines[1])
    assert plan
    results = [line for line in lines if re.match(r"(not )?ok \d+ ", line)]
    assert len(results) == int(plan[1])
    assert any("refused_on_base_accepted_on_patched.BUILD_ID_OFFSET" in line for line in results)


def test_one_case_runs_alone(abi: Path) -> None:
    name = "refused_on_base_accepted_on_patched.BUILD_ID_OFFSET"
    argv = [str(abi), "--kernel=base", f"--case={name}"]
    lines = subprocess.run(argv, capture_output=True, text=True, check=False).stdout.splitlines()
    assert lines[1] == "1..1"
    assert lines[-1].endswith(f"ok 1 {name}")  # what it comes to is the host kernel's affair


def test_a_program_says_how_far_it_is_where_it_is_told_to(abi: Path, tmp_path: Path) -> None:
    console = tmp_path / "console"
    console.touch()
    argv = [str(abi), "--kernel=base", f"--progress={console}"]
    result = subprocess.run(argv, capture_output=True, text=True, check=False)
    count = int(result.stdout.splitlines()[1].removeprefix("1.."))
    said = console.read_text(encoding="utf-8").splitlines()
    assert count > 16
    assert said == [f"<6>abi: {n} of {count} cases" for n in range(16, count, 16)]


def test_a_new_type_is_tried_with_two_events_at_once(rendered: Path, tmp_path: Path) -> None:
    toml = Path(__file__).parent / "data" / "newtype" / "task_time.toml"
    specs = load_specs({toml.name: toml.read_text(encoding="utf-8")})
    new = ScopedType(name="PERF_SAMPLE_TASK_TIME", value=1 << 25, new=True, why="new")
    others = tuple((n, v) for n, v in ALL if v < new.value)
    where = write(render_kselftest(Scope(types=(new,), all_types=(*others, (new.name, new.value))), specs), tmp_path)
    shutil.copytree(rendered / "usr", where / "usr")
    header = where / "usr" / "include" / "linux" / "perf_event.h"
    text = re.sub(r"^#define PERF_SAMPLE_\w*BUILD_ID_OFFSET .*$", "", header.read_text(encoding="utf-8"), flags=re.M)
    header.write_text(f"{text}#define PERF_SAMPLE_TASK_TIME {new.value:#x}ULL\n", encoding="utf-8")
    (where / "out").mkdir()
    result = make(where, f"{where}/out/shared")
    assert result.returncode == 0, result.stdout + result.stderr
    listed = subprocess.run([where / "out" / "shared", "--list"], capture_output=True, text=True, check=True).stdout
    sources = ("page_faults", "sys_enter")
    assert listed.split() == [f"{s}{same}.TASK_TIME" for s in sources for same in ("", ".same")]


def test_a_program_refuses_what_it_does_not_know(abi: Path) -> None:
    for option in ("--kernel=other", "--unknown"):
        assert subprocess.run([abi, option], capture_output=True, check=False).returncode == 2


@pytest.mark.skipif(not shutil.which("gcc"), reason="no compiler")
def test_the_decoder_is_made_from_the_specs(tmp_path: Path) -> None:
    """A made-up type with only a spec is decoded, and a record that is too long or short for it is refused."""
    text = (
        '# Two words.\nname = "PERF_SAMPLE_MADE_UP"\nbit = 40\nplace = 990\n'
        'layout = [{ name = "first", type = "u64" }, { name = "words", type = "u64", count = "first" }]\n'
    )
    specs = Specs(samples=(*SPECS.samples, parse_sample(text)), records=SPECS.records, types=SPECS.types)
    scope = Scope(
        types=(ScopedType(name="PERF_SAMPLE_MADE_UP", value=1 << 40, new=True, why="new"),),
        all_types=(*ALL, ("PERF_SAMPLE_MADE_UP", 1 << 40)),
    )
    where = write(render_kselftest(scope, specs), tmp_path)
    (where / "linux").mkdir()
    system = Path("/usr/include/linux/perf_event.h")
    (where / "linux" / "perf_event.h").write_text(with_new_names(system.read_text(encoding="utf-8")), encoding="utf-8")
    (where / "try.c").write_text(TRY, encoding="utf-8")
    sources = [p for p in where.glob("*.c") if p.stem not in programs(scope, specs)]
    flags = ["-std=gnu11", "-D_GNU_SOURCE", "-isystem", str(where), "-pthread"]
    subprocess.run(["gcc", *flags, "-o", str(where / "try"), *map(str, sources)], check=True)
    result = subprocess.run([str(where / "try")], capture_output=True, text=True, check=True)
    size = "\1header.size\2"
    assert result.stdout.splitlines() == [
        "ok 7 8",
        f"{size}MADE_UP.words needs 3 times 8 bytes, 16 are left",
        f"{size}header.size 32; expected 24, to which sample_type 0x10000000000 decodes",
        f"{size}TID.pid needs 1 times 4 bytes, 0 are left",
    ]


TRY = """
#include "decode.h"
#include <stdio.h>
static void decode(__u64 type, int size, __u64 nr)
{
	struct perf_event_attr attr = { .sample_type = type };
	__u64 words[8] = { 0, nr, 7, 8, 9 };
	struct perf_event_header *header = (void *)words;
	struct sample sample;
	const char *problem;

	header->size = size;
	problem = decode_sample(&attr, header, &sample);
	if (problem)
		puts(problem);
	else
		printf("ok %llu %llu\\n", sample.made_up.words[0], sample.made_up.words[1]);
}
int main(void)
{
	decode(1ULL << 40, 32, 2);
	decode(1ULL << 40, 32, 3);
	decode(1ULL << 40, 32, 1);
	decode(1ULL << 40 | PERF_SAMPLE_TID, 8, 1);
	return 0;
}
"""
