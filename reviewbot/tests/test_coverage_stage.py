"""The coverage stage on a miniature tree whose "kernel" is a program of this machine: real make, gcc and gcov."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reviewbot.model import AppliedPatch, ApplyResult, ApplyState, Blame, Outcome, Status
from reviewbot.parse.kconfig import Wanted
from reviewbot.stages.coverage import coverage
from reviewbot.tests.minitree import FILES, MAKEFILE, commit, make_repo
from reviewbot.tools.cache import Cache
from reviewbot.tools.extra import Extra
from reviewbot.tools.git import must
from reviewbot.tools.guest import GuestTest
from reviewbot.tools.kernel import Builder
from reviewbot.tools.make import Make, compiler
from reviewbot.tools.vng import Boot, Ending, Machine

if TYPE_CHECKING:
    from reviewbot.parse.coverage import AddedLine

COUNTERS = "-fprofile-arcs -ftest-coverage"
# As kbuild does: counters for the stems that the command line names, and compiled from the build directory.
COUNTING = (
    MAKEFILE.replace(
        "cat $^ > $(O)/arch/x86/boot/bzImage", "$(CC) --coverage -o $(O)/arch/x86/boot/bzImage $^"
    ).replace(
        "@$(CC) -Wall -Iinclude -c -o $@ $<",
        f"@cd $(O) && $(CC) -Wall -I$(CURDIR)/include $(if $(GCOV_PROFILE_$(notdir $*).o),{COUNTERS})"
        " -c -o $*.o $(CURDIR)/$<",
    )
    + "lib/%.i: lib/%.c\n\t@mkdir -p $(O)/lib\n\t@$(CC) -E -Iinclude -o $(O)/$@ $(CURDIR)/$<\n"
)
MAIN = '#include "mini.h"\n\nint main(int argc, char **argv)\n{\n\t(void)argv;\n\treturn one() + argc > 99;\n}\n'
PATCHED = """\
#include "mini.h"

#ifdef CONFIG_ABSENT
static int gone;
#endif

static int rare(int x)
{
	return x - 1;
}

int one(void)
{
	int x = two();

	if (x > 5)
		x = rare(x);
	return x;
}
"""


class Runner(Machine):
    """Runs the image on this machine and hands its counters over as a guest does; there is no kernel to boot."""

    def boot(self, image: Path, share: Path, log: Path, **more: object) -> Boot:
        tests = more["tests"]
        assert isinstance(tests, tuple)
        assert isinstance(tests[0], GuestTest)
        assert tests[0].name == "gcov-reset"
        (share / "out").mkdir()
        build = image.parents[3]
        done = subprocess.run([str(image)], cwd=build, check=False)
        for line in str(more["after"]).splitlines():
            _, source, target = line.split()
            data = Path(source.removeprefix("/sys/kernel/debug/gcov"))
            shutil.copy(data, share / "out" / target.rpartition("/")[2])
        for test in tests:
            (share / "out" / f"{test.name}.rc").write_text(f"{done.returncode}\n")
        log.write_text("console\n")
        return Boot(ending=Ending.FINISHED, console="", share=share, command="boot", duration_s=0.1, accelerator="none")


def measure(
    tmp_path: Path, files: dict[str, str], *, machine: type[Machine] = Runner
) -> Outcome[tuple[AddedLine, ...]]:
    repo = make_repo(tmp_path / "repo", {**FILES, "Makefile": COUNTING, "lib/main.c": MAIN})
    base = must(repo, "rev-parse", "HEAD")
    tip = commit(repo, files, "lib: change it")
    cache = Cache(tmp_path / "cache")
    source = tmp_path / "source"
    must(repo, "worktree", "add", "--quiet", "--detach", str(source), base)
    run_dir = tmp_path / "run"
    make = Make(
        source=source,
        build=cache.dir("builds", "counting"),
        compiler=compiler(),
        ccache_dir=cache.dir("ccache"),
        log=run_dir / "coverage" / "build.log",
    )
    programs = cache.dir("programs")
    (programs / "abi").write_text("#!/bin/sh\n")
    (programs / "abi").chmod(0o755)
    (programs / "notes.txt").write_text("no program\n")
    run_dir.mkdir()
    bench = Extra(
        stage="coverage",
        label="the instrumented kernel",
        machine=machine(cache=cache, root=tmp_path, timeout_s=20),
        builder=Builder(make=make, store=cache.dir("store"), on_progress=lambda _: None),
        wanted=(Wanted(symbol="GCOV_KERNEL", value="y", reason="counters"),),
        programs=programs,
        job=cache.dir("job"),
        run_dir=run_dir,
        note=lambda _: None,
    )
    applied = ApplyResult(
        state=ApplyState.APPLIED,
        summary="1 patch",
        base_commit=base,
        prerequisite_commit=base,
        tip_commit=tip,
        patches=(AppliedPatch(subject="lib: change it", commit=tip, role=Blame.SERIES, files=tuple(files)),),
    )
    return coverage(bench, applied, repo=repo, patched=cache.dir("builds", "patched"))


def test_the_lines_that_no_test_ran_are_shown(tmp_path: Path) -> None:
    outcome = measure(tmp_path, {"lib/one.c": PATCHED})
    result = outcome.result
    assert result.status is Status.PASS, result
    assert not result.required
    assert "executable added lines ran" in result.summary
    titles = {f.title: f for f in result.findings}
    missed = next(f for t, f in titles.items() if t.startswith("no test ran") and "rare()" in t)
    assert (missed.file, missed.function, missed.severity) == ("lib/one.c", "rare", Status.PASS)
    assert "return x - 1;" in missed.excerpt
    assert any("x = rare(x);" in f.excerpt for f in result.findings if f.function == "one")
    assert [f.excerpt.split()[0] for t, f in titles.items() if "not built" in t] == ["4"]
    facts = dict(result.facts)
    assert facts["instrumented objects"] == "lib/one.o"
    assert facts["exit status of the tests"] == "0: 1"
    assert "missed" in facts["lib/one.c"]


def test_a_boot_that_ends_early_is_an_error_of_its_own(tmp_path: Path) -> None:
    outcome = measure(tmp_path, {"lib/one.c": PATCHED}, machine=Machine)
    assert (outcome.result.status, outcome.result.required) == (Status.ERROR, False)
    assert "boot ended early" in outcome.result.summary


@pytest.mark.parametrize(
    ("files", "words"),
    [({"README": "text\n"}, "adds no line of C"), ({"arch/other.c": "int x;\n"}, "is compiled in this configuration")],
)
def test_nothing_to_measure_is_said(tmp_path: Path, files: dict[str, str], words: str) -> None:
    outcome = measure(tmp_path, files)
    assert outcome.result.status is Status.SKIP
    assert words in outcome.result.summary


def test_a_kernel_that_does_not_build(tmp_path: Path) -> None:
    outcome = measure(tmp_path, {"lib/one.c": "int one(void) { return }\n"})
    assert outcome.result.status is Status.ERROR
    assert "does not build" in outcome.result.summary
