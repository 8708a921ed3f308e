"""The variants stage on a miniature tree: real make and gcc, and a machine that reads what a kernel would do."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from reviewbot.model import Blame, Case, Finding, Origin, Outcome, StageResult, Status
from reviewbot.parse.kconfig import Wanted
from reviewbot.stages.variants import VariantBench, variants
from reviewbot.tests.extrabench import KCONFIG, WANTED, Mini
from reviewbot.tests.minitree import FILES

if TYPE_CHECKING:
    from pathlib import Path

    from reviewbot.tools.extra import Extra

HEADER = FILES["include/mini.h"]
STUB = (
    HEADER + "#ifdef CONFIG_EXTRA\nint three(void);\n#else\nstatic inline int three(void)\n{\n\treturn 0;\n}\n#endif\n"
)
CALLS = FILES["lib/one.c"].replace("return 1", "return three()")
THREE = '#include "mini.h"\n\n#ifdef CONFIG_EXTRA\nint three(void)\n{\n\treturn 3;\n}\n#endif\n'
GOOD = {"include/mini.h": STUB, "lib/one.c": CALLS, "lib/three.c": THREE}


def off(mark: str, symbol: str = "EXTRA") -> str:
    """Return C that puts a mark into an image that is built without the symbol."""
    return f'#ifndef CONFIG_{symbol}\nconst char marked_{symbol}[] = "mark:{mark}";\n#endif\n'


def vary(
    tmp_path: Path,
    files: dict[str, str],
    *,
    tree: dict[str, str] | None = None,
    prerequisite: dict[str, str] | None = None,
    more: tuple[Wanted, ...] = (),
    needed: frozenset[str] = frozenset({"MINI"}),
    known: tuple[StageResult, ...] = (),
) -> tuple[Outcome[tuple[Case, ...]], Mini]:
    mini = Mini(tmp_path, files, tree=tree, prerequisite=prerequisite)
    kernels = mini.kernels()

    def kernel_with(wanted: Wanted) -> Extra:
        symbols = (*(w for w in WANTED if w.symbol != wanted.symbol), wanted, *more)
        label = f"CONFIG_{wanted.symbol}={wanted.value}"
        return mini.one_more(f"{wanted.symbol}-{wanted.value}", label, symbols, "variants")

    bench = VariantBench(builder=mini.builder, needed=needed, kernel_with=kernel_with)
    return variants(bench, kernels, mini.applied, repo=mini.repo, known=known), mini


def test_a_good_stub(tmp_path: Path) -> None:
    outcome, mini = vary(tmp_path, GOOD)
    result = outcome.result
    assert (result.status, result.required, result.findings) == (Status.PASS, False, ())
    assert [(c.name, c.base, c.patched) for c in result.cases] == [("EXTRA=n/abi/case", Status.SKIP, Status.PASS)]
    assert result.summary.startswith("with CONFIG_EXTRA=n: patched builds and boots; 1 cases pass")
    assert "CONFIG_EXTRA=n: building patched" in mini.notes
    assert not any("base" in note for note in mini.notes)
    for log in result.logs:
        assert log.path.startswith("EXTRA-n") or (mini.run_dir / log.path).is_file()


def test_a_missing_stub_does_not_build(tmp_path: Path) -> None:
    header = HEADER + "#ifdef CONFIG_EXTRA\nenum { THREE = 3 };\n#endif\n"
    files = {"include/mini.h": header, "lib/one.c": FILES["lib/one.c"].replace("return 1", "return THREE")}
    outcome, mini = vary(tmp_path, files)
    result = outcome.result
    assert result.status is Status.FAIL
    found = [f for f in result.findings if f.counts]
    assert {f.file for f in found} == {"lib/one.c"}
    assert "THREE" in found[0].title
    assert found[0].title.startswith("CONFIG_EXTRA=n: ")
    assert "CONFIG_EXTRA=n: building base" in mini.notes
    assert result.cases == ()


def test_what_base_cannot_build_either_is_left_out(tmp_path: Path) -> None:
    broken = FILES["lib/two.c"] + "#ifndef CONFIG_EXTRA\n#error not without EXTRA\n#endif\n"
    outcome, _ = vary(tmp_path, GOOD, tree={"lib/two.c": broken})
    assert outcome.result.status is Status.SKIP
    assert "CONFIG_EXTRA=n: not tried: the tree does not build with it" in outcome.result.summary


def test_a_new_warning_is_the_series_own(tmp_path: Path) -> None:
    text = CALLS.replace("{\n", "{\n#ifndef CONFIG_EXTRA\n\tint left_over;\n#endif\n")
    outcome, _ = vary(tmp_path, {**GOOD, "lib/one.c": text})
    assert outcome.result.status is Status.WARN
    assert [f.severity for f in outcome.result.findings] == [Status.WARN]
    assert "left_over" in outcome.result.findings[0].title


def test_a_case_that_fails_there_alone_is_introduced(tmp_path: Path) -> None:
    outcome, mini = vary(tmp_path, {**GOOD, "lib/one.c": CALLS + off("fails")})
    case = outcome.result.cases[0]
    assert outcome.result.status is Status.FAIL
    assert (case.base, case.patched, case.origin, case.failures) == (Status.PASS, Status.FAIL, Origin.INTRODUCED, 2)
    assert case.counts
    assert [n for n in mini.notes if "run" in n] == [
        *(f"CONFIG_EXTRA=n: patched, run {n}" for n in (1, 2)),
        *(f"CONFIG_EXTRA=n: base, run {n}" for n in (1, 2)),
    ]


def test_a_case_that_base_fails_there_too_is_not(tmp_path: Path) -> None:
    outcome, _ = vary(tmp_path, GOOD, tree={"lib/two.c": FILES["lib/two.c"] + off("fails")})
    case = outcome.result.cases[0]
    assert (case.patched, case.origin, case.counts) == (Status.FAIL, Origin.PRE_EXISTING, False)
    assert outcome.result.status is Status.PASS


def test_what_the_review_has_shown_is_not_told_again(tmp_path: Path) -> None:
    case = Case(name="abi/case", base=Status.PASS, patched=Status.FAIL, reason="known", origin=Origin.INTRODUCED)
    known = (StageResult(stage="selftest", status=Status.FAIL, summary="known", cases=(case,)),)
    outcome, mini = vary(tmp_path, {**GOOD, "lib/one.c": CALLS + off("fails")}, known=known)
    assert outcome.result.cases == ()
    assert not any("base" in note for note in mini.notes)
    assert any("1 cases that fail on the review" in value for _, value in outcome.result.facts)


@pytest.mark.parametrize(("mark", "words"), [("splat", "WARNING at lib/one.c"), ("panic", "the guest does not come")])
def test_a_complaint_counts_once(tmp_path: Path, mark: str, words: str) -> None:
    outcome, _ = vary(tmp_path, {**GOOD, "lib/one.c": CALLS + off(mark)})
    found = [f for f in outcome.result.findings if f.counts]
    assert outcome.result.status is Status.FAIL
    assert [f.title.startswith(f"CONFIG_EXTRA=n: {words}") for f in found] == [True]
    assert found[0].blame is Blame.SERIES


def test_a_complaint_that_base_has_is_pre_existing(tmp_path: Path) -> None:
    outcome, _ = vary(tmp_path, GOOD, tree={"lib/two.c": FILES["lib/two.c"] + off("splat")})
    assert outcome.result.status is Status.PASS
    assert [f.origin for f in outcome.result.findings] == [Origin.PRE_EXISTING]


def test_a_complaint_that_the_review_has_shown_is_not_told_again(tmp_path: Path) -> None:
    splat = Finding(
        title="WARNING at lib/one.c", severity=Status.FAIL, origin=Origin.INTRODUCED, function="one", file="lib/one.c"
    )
    known = (StageResult(stage="selftest", status=Status.FAIL, summary="known", findings=(splat,)),)
    outcome, mini = vary(tmp_path, {**GOOD, "lib/one.c": CALLS + off("splat")}, known=known)
    assert (outcome.result.status, outcome.result.findings) == (Status.PASS, ())
    assert not any("base" in note for note in mini.notes)


@pytest.mark.parametrize("mark", ["fails", "splat", "panic"])
def test_what_the_prerequisites_bring_is_theirs(tmp_path: Path, mark: str) -> None:
    theirs = {"lib/two.c": FILES["lib/two.c"] + off(mark)}
    outcome, mini = vary(tmp_path, GOOD, prerequisite=theirs)
    blamed = [
        *(c.blame for c in outcome.result.cases if c.patched is Status.FAIL),
        *(f.blame for f in outcome.result.findings),
    ]
    assert set(blamed) == {Blame.PREREQUISITE}
    assert not any(c.counts for c in outcome.result.cases)
    assert outcome.result.status is not Status.FAIL
    assert mini.notes[-1] == "CONFIG_EXTRA=n: prerequisite, run 1"


def test_an_error_of_a_prerequisite_is_theirs(tmp_path: Path) -> None:
    theirs = {"lib/two.c": FILES["lib/two.c"] + "#ifndef CONFIG_EXTRA\n#error not without\n#endif\n"}
    outcome, _ = vary(tmp_path, GOOD, prerequisite=theirs)
    assert [(f.blame, f.severity) for f in outcome.result.findings] == [(Blame.PREREQUISITE, Status.PASS)]
    assert outcome.result.status is Status.SKIP
    assert "does not build with it without the series either" in outcome.result.summary


def test_a_guest_that_could_not_boot_is_not_tried(tmp_path: Path) -> None:
    more = (Wanted(symbol="DROPPED", value="y", reason="a test"),)
    outcome, mini = vary(tmp_path, GOOD, more=more, needed=frozenset({"DROPPED"}))
    assert outcome.result.status is Status.SKIP
    assert "the guest needs what depends on it: DROPPED" in outcome.result.summary
    assert not any("building" in note for note in mini.notes)


def test_a_machine_that_starts_nothing_is_a_reason(tmp_path: Path) -> None:
    outcome, _ = vary(tmp_path, {**GOOD, "lib/one.c": CALLS + off("nothing")})
    assert (outcome.result.status, outcome.result.required) == (Status.ERROR, False)
    assert "qemu did not start a kernel" in outcome.result.summary


def test_what_cannot_be_turned_is_said(tmp_path: Path) -> None:
    text = "".join(f"#ifdef CONFIG_{s}\nint in_{s};\n#endif\n" for s in ("MINI", "HELD", "ABSENT", "DROPPED"))
    outcome, mini = vary(tmp_path, {"lib/one.c": FILES["lib/one.c"] + text})
    facts = dict(outcome.result.facts)
    assert facts["CONFIG_MINI=n"] == "not tried: the guest needs it"
    assert facts["CONFIG_HELD=n"] == "not tried: selected by MINI"
    assert facts["CONFIG_ABSENT=y"] == "not tried: no Kconfig file of this tree defines ABSENT"
    assert outcome.result.status is Status.SKIP
    titles = {f.title: f.severity for f in outcome.result.findings}
    reason = "depends on ABSENT (not set)"
    assert titles[f"1 added line not built: CONFIG_DROPPED is off ({reason})"] is Status.PASS
    assert mini.notes == []


def test_what_is_off_is_turned_on(tmp_path: Path) -> None:
    kconfig = 'config LATE\n\tbool "late"\n'
    text = FILES["lib/one.c"] + "#ifdef CONFIG_LATE\nint late(void) { return oops; }\n#endif\n"
    mini_kconfig = {"Kconfig": KCONFIG + kconfig}
    outcome, _ = vary(tmp_path, {"lib/one.c": text}, tree=mini_kconfig)
    assert outcome.result.status is Status.FAIL
    assert "CONFIG_LATE=y: error: 'oops' undeclared" in outcome.result.summary


def test_a_few_are_tried_and_the_rest_is_named(tmp_path: Path) -> None:
    symbols = ("EXTRA", "MORE", "OTHER", "FOURTH")
    text = "".join(f"#ifndef CONFIG_{s}\nint without_{s};\n#endif\n" for s in symbols)
    outcome, _ = vary(tmp_path, {"lib/one.c": FILES["lib/one.c"] + text})
    facts = dict(outcome.result.facts)
    assert outcome.result.status is Status.PASS
    assert len({c.name.split("/")[0] for c in outcome.result.cases}) == 3
    assert facts["not tried"].endswith("at most 3 variants in one review")


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"lib/one.c": FILES["lib/one.c"].replace("1;", "2;")}, "no Kconfig symbol decides"),
        ({"arch/arm/x.c": "#ifdef CONFIG_EXTRA\nint x;\n#endif\n"}, "no Kconfig symbol decides"),
        ({"drivers/x.c": "#ifdef CONFIG_EXTRA\nint x;\n#endif\n"}, "no Kconfig symbol decides"),
    ],
)
def test_nothing_to_vary(tmp_path: Path, files: dict[str, str], words: str) -> None:
    outcome, _ = vary(tmp_path, files)
    assert outcome.result.status is Status.SKIP
    assert words in outcome.result.summary


def test_a_series_that_the_tree_has(tmp_path: Path) -> None:
    mini = Mini(tmp_path, GOOD)
    applied = replace(mini.applied, prerequisite_commit=mini.applied.tip_commit, base_commit=mini.applied.tip_commit)
    bench = VariantBench(builder=mini.builder, needed=frozenset(), kernel_with=lambda _: pytest.fail("not needed"))
    outcome = variants(bench, mini.kernels(), applied, repo=mini.repo, known=())
    assert outcome.result.status is Status.SKIP
