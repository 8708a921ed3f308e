"""The debug stage on a miniature tree: real make and gcc, and a machine that reads what a kernel would do."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from reviewbot.model import Blame, Case, Origin, Outcome, Status
from reviewbot.parse.kconfig import Wanted
from reviewbot.stages.debug import PATIENCE, debug, debug_machine
from reviewbot.tests.extrabench import WANTED, Mini, Runner
from reviewbot.tests.minitree import FILES
from reviewbot.tools.programs import PROGRAM_TIMEOUT_S

if TYPE_CHECKING:
    from pathlib import Path

    from reviewbot.tools.extra import Extra

CHECKING = Wanted(symbol="CHECK", value="y", reason="checks itself")


def checked(mark: str) -> str:
    """Return C that puts a mark into the image of the debug kernel alone."""
    return f'#ifdef CONFIG_CHECK\nconst char marked[] = "mark:{mark}";\n#endif\n'


def run(
    tmp_path: Path, ours: str = "", theirs: str = "", wanted: tuple[Wanted, ...] = (CHECKING,)
) -> tuple[Outcome[tuple[Case, ...]], Mini, Extra]:
    tree = {"lib/two.c": FILES["lib/two.c"] + theirs}
    mini = Mini(tmp_path, {"lib/one.c": FILES["lib/one.c"] + (ours or "/* more */\n")}, tree=tree)
    extra = mini.one_more("debug", "the debug kernel", (*WANTED, *wanted), "debug")
    return debug(extra, mini.kernels(), mini.applied, known=()), mini, extra


def test_nothing_to_complain_about(tmp_path: Path) -> None:
    outcome, mini, _ = run(tmp_path)
    result = outcome.result
    assert (result.status, result.required) == (Status.PASS, False)
    assert result.summary == "no complaint of the kernel and no leak; 1 cases pass, 0 fail, 0 skipped"
    assert not any("base" in note for note in mini.notes)
    assert {log.path for log in result.logs} >= {"debug/kmemleak-the-debug-kernel-patched-1.log"}


@pytest.mark.parametrize(
    ("mark", "title", "function"),
    [("splat", "WARNING at lib/one.c", "one"), ("leak", "kmemleak: unreferenced object of size N", "planted_leak")],
)
def test_a_complaint_and_a_leak_count_once(tmp_path: Path, mark: str, title: str, function: str) -> None:
    outcome, mini, _ = run(tmp_path, ours=checked(mark))
    found = [f for f in outcome.result.findings if f.counts]
    assert outcome.result.status is Status.FAIL
    assert [(f.title, f.function, f.severity) for f in found] == [(f"the debug kernel: {title}", function, Status.FAIL)]
    assert "the debug kernel: building base" in mini.notes


@pytest.mark.parametrize("mark", ["splat", "leak"])
def test_what_base_shows_too_is_pre_existing(tmp_path: Path, mark: str) -> None:
    outcome, _, _ = run(tmp_path, theirs=checked(mark))
    assert outcome.result.status is Status.PASS
    assert [(f.origin, f.blame) for f in outcome.result.findings] == [(Origin.PRE_EXISTING, Blame.BASE)]


def test_leaks_that_were_not_looked_for_are_no_pass(tmp_path: Path) -> None:
    outcome, _, _ = run(tmp_path, ours=checked("blind"))
    assert outcome.result.status is Status.ERROR
    assert "leaks were not looked for" in outcome.result.summary


def test_a_program_that_is_too_slow_on_base_too_is_pre_existing(tmp_path: Path) -> None:
    outcome, _, _ = run(tmp_path, theirs=checked("slow"))
    case = next(c for c in outcome.result.cases if c.name == "abi")
    assert (case.origin, case.counts) == (Origin.PRE_EXISTING, False)
    assert case.reason.endswith(f"did not end within {PROGRAM_TIMEOUT_S * PATIENCE} s")


def test_what_base_does_not_know_is_for_a_reader(tmp_path: Path) -> None:
    outcome, _, _ = run(tmp_path, ours=checked("slow"))
    case = next(c for c in outcome.result.cases if c.name == "abi")
    assert (case.patched, case.blame, case.counts) == (Status.WARN, Blame.UNKNOWN, False)
    assert "slow enough to be the reason" in case.reason
    assert outcome.result.status is Status.WARN


def test_a_case_that_base_passes_twice_is_introduced(tmp_path: Path) -> None:
    outcome, _, _ = run(tmp_path, ours=checked("fails"))
    case = outcome.result.cases[0]
    assert (case.base, case.patched, case.runs, case.counts) == (Status.PASS, Status.FAIL, 2, True)


def test_a_kernel_that_does_not_build_there(tmp_path: Path) -> None:
    outcome, _, _ = run(tmp_path, ours="#ifdef CONFIG_CHECK\n#error no checks\n#endif\n")
    assert outcome.result.status is Status.FAIL
    assert "#error no checks" in outcome.result.summary


def test_symbols_that_do_not_stick_are_told(tmp_path: Path) -> None:
    outcome, _, _ = run(tmp_path, wanted=(Wanted(symbol="DROPPED", value="y", reason="gone"),))
    assert ("not in its .config", "DROPPED") in outcome.result.facts


def test_the_machine_is_patient(tmp_path: Path) -> None:
    mini = Mini(tmp_path, {"lib/one.c": FILES["lib/one.c"] + "/* more */\n"})
    plain = Runner(cache=mini.cache, root=tmp_path, timeout_s=20)
    slow = debug_machine(plain)
    assert (slow.timeout_s, slow.memory_mib > plain.memory_mib) == (20 * PATIENCE, True)
    assert debug_machine(replace(plain, memory_mib=8192)).memory_mib == 8192
