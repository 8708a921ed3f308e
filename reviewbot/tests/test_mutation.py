"""Mutated sources as commits, what the compiler refuses, and boots that are stopped early."""

from pathlib import Path

import pytest

from reviewbot.findings.compare import Run
from reviewbot.generate.mutants import find_mutants
from reviewbot.generate.schemata import DEFINITION_FILE, rewrite
from reviewbot.model import Status
from reviewbot.tests.minitree import MAKEFILE, make_repo
from reviewbot.tools import programs
from reviewbot.tools.git import must
from reviewbot.tools.kernel import Builder
from reviewbot.tools.make import Compiler, Make
from reviewbot.tools.mutation import build_schema, commit_alone, objects_of, read_files, refusals, seen_lines

SOURCE = """\
struct s { int a; };
int g(struct s *p, int n);
#define PUT(x) g(&(x), 1)
int f(struct s *p, int n)
{
	struct s local = *p;
	int copy = n + 2;

	if (p)
		copy = 0;
	copy = n;
	g(p, n);
	PUT(local);
#ifdef CONFIG_ABSENT
	g(p, 7);
#endif
	return copy;
}
"""
FILES = {
    "Makefile": MAKEFILE + "%.o: %.c\n\t@mkdir -p $(O)/$(dir $@)\n\t$(CC) -c -o $(O)/$@ $<\n"
    "%.i: %.c\n\t@mkdir -p $(O)/$(dir $@)\n\t$(CC) -E -o $(O)/$@ $<\n",
    "include/mini.h": "",
    "lib/a.c": SOURCE,
    "init/main.c": "#define noinstr\n#define NULL 0\n#define core_param(a, b, c, d)\n"
    "#define __module_param_call(...)\nstruct kernel_param { int x; };\n"
    "struct kernel_param_ops { int (*get)(char *, const struct kernel_param *); };\n",
    "include/linux/moduleparam.h": "",
}
ADDED = {"lib/a.c": range(1, 20)}


@pytest.fixture
def builder(tmp_path: Path) -> Builder:
    source, build = make_repo(tmp_path / "source", FILES), tmp_path / "build"
    build.mkdir()
    tools = Compiler(path="gcc -Iinclude", version="", linker="", ccache="")
    make = Make(source=source, build=build, compiler=tools, ccache_dir=tmp_path, log=tmp_path / "build.log")
    return Builder(make=make, store=tmp_path / "store", on_progress=lambda _: None)


def test_a_schema_leaves_out_what_the_compiler_refuses(builder: Builder) -> None:
    repo = builder.make.source
    tip = must(repo, "rev-parse", "HEAD")
    files = read_files(repo, tip, ["lib/a.c"])
    mutants = find_mutants(files, ADDED).mutants
    built = build_schema(builder, repo, tip, files=files, mutants=mutants, note=lambda _: None)
    titles = {m.number: m.title for m in mutants}
    refused = [titles[n] for n, reason in built.invalid.items() if reason.startswith("does not compile")]
    assert any("g(p, n) → g(n, p)" in title for title in refused), "pointers and integers cannot be swapped"
    absent = [titles[n] for n, reason in built.invalid.items() if "configuration" in reason]
    assert absent
    assert all(" f: " in title and ("7" in title or "g(p, 7)" in title) for title in absent)
    kept = {m.before for m in built.kept}
    assert {"p", "n + 2", "copy = n;", "PUT(local);"} <= kept
    assert len(built.kept) + len(built.invalid) + len(built.alone) == len(mutants)
    text = read_files(repo, built.commit, ["lib/a.c", DEFINITION_FILE])
    assert b"reviewbot_at(" in text["lib/a.c"]
    assert b"int reviewbot_at(int number)" in text[DEFINITION_FILE]
    again = build_schema(builder, repo, tip, files=files, mutants=mutants, note=lambda _: None)
    assert again.commit == built.commit, "the same input gives the same commit"


def test_object_code_tells_equivalents(builder: Builder) -> None:
    repo = builder.make.source
    tip = must(repo, "rev-parse", "HEAD")
    files = read_files(repo, tip, ["lib/a.c"])
    mutants = {m.title: m for m in find_mutants(files, ADDED).mutants}

    def same(title: str) -> bool:
        mutant = next(m for text, m in mutants.items() if title in text)
        original, _ = objects_of(builder, tip, ["lib/a.c"])
        changed, failed = objects_of(builder, commit_alone(repo, tip, files, mutant), ["lib/a.c"])
        assert not failed
        return original == changed

    assert same("g(p, 7); → (nothing)"), "this configuration does not compile it"
    assert not same("copy = n; → (nothing)")
    broken = next(m for text, m in mutants.items() if "g(p, n) → g(n, p)" in text)
    _, failed = objects_of(builder, commit_alone(repo, tip, files, broken), ["lib/a.c"])
    assert failed or "-Wint-conversion" in builder.make.log.read_text()


def test_a_complaint_in_a_header_is_about_the_place_of_the_macro() -> None:
    text = SOURCE.encode()
    mutants = find_mutants({"lib/a.c": text}, ADDED).mutants
    schema = rewrite(text, mutants)
    target = next(m for m in mutants if m.before == "PUT(local);" or m.after == "PUT(local)")
    line = next(n for n, owners in enumerate(schema.owners, 1) if target.number in owners)
    output = (
        f"/s/include/put.h:9:3: error: wrong type\n/s/lib/a.c:{line}:2: note: in expansion of macro 'PUT'\n"
        f"/s/include/put.h:9:3: warning: odd [-Wodd]\n/s/lib/a.c:1:2: note: in expansion of macro 'PUT'\n"
    )
    found = refusals(output, {"lib/a.c": schema}, "/s")
    assert target.number in found
    assert found[target.number][0] == "does not compile: wrong type"
    assert refusals("/s/lib/a.c:2:1: warning: unused [-Wunused]\n", {"lib/a.c": schema}, "/s") == {}


def test_line_markers_tell_what_the_compiler_saw() -> None:
    text = '# 1 "a.c"\n# 5 "./include/b.h" 1\nint x;\n\nint y;\n# 3 "a.c" 2\nint z;\n'
    assert seen_lines(text, ["include/b.h", "include/c.h"]) == {"include/b.h": {5, 7}, "include/c.h": set()}


CONSOLE = (
    "[    7.428406] reviewbot: start abi\n[    7.564415] reviewbot: end abi\n[    7.6] other: end x\n"
    "[    8.000000] reviewbot: start raw\r\n[   10.500000] reviewbot: end raw\r\n"
)


def test_the_console_tells_how_long_a_program_took() -> None:
    times = programs.program_times(CONSOLE)
    assert times == {"abi": pytest.approx(0.136, abs=0.001), "raw": pytest.approx(2.5)}


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_boot_is_stopped_after_the_program_that_is_enough(tmp_path: Path, size: int) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "abi.ktap").write_text("KTAP version 1\n1..1\nok 1 a\n")
    (tmp_path / "out" / "abi.rc").write_text("0\n")
    (tmp_path / "out" / "raw.ktap").write_text("KTAP version 1\n1..1\nnot ok 1 b\n")
    (tmp_path / "out" / "raw.rc").write_text("1\n")
    asked: list[str] = []

    def enough(run: Run, name: str) -> bool:
        asked.append(name)
        return any(o.status is Status.FAIL for o in run.values())

    watcher = programs._Watcher(tmp_path, 60, enough)
    data = CONSOLE.encode()

    def feed() -> None:
        for at in range(0, len(data), size):
            watcher.feed(data[at : at + size])

    with pytest.raises(programs._Enough):
        feed()
    assert asked == ["abi", "raw"]
    assert watcher.ended == ["abi", "raw"]
