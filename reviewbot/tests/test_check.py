"""Stage check and every check of the registry: a sample that fires, and one that stays silent."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from reviewbot.checks import checkpatch, copies, diffstat, trailers, uapi, whitespace
from reviewbot.checks.contract import Answer, Check, finding
from reviewbot.checks.registry import CHECKS
from reviewbot.errors import InfraError
from reviewbot.model import Blame, Finding, Patch, Series, Status
from reviewbot.stages.check import check
from reviewbot.tests.corpus import DATA
from reviewbot.tests.tree import MiniTree
from reviewbot.tools.checkpatch import Complaint, parse_complaints

if TYPE_CHECKING:
    from pathlib import Path

    from reviewbot.model import StageResult

SIGNED = "\n\nSigned-off-by: Alex Example <alex@example.com>\n"
PERF = (DATA / "check" / "perf_event.h").read_text(encoding="utf-8")
HEADER = "include/uapi/linux/perf_event.h"
CHECKPATCH = (DATA / "check" / "checkpatch.pl").read_text(encoding="utf-8")
BASE_FILES = {
    HEADER: PERF,
    f"tools/{HEADER}": PERF,
    "kernel/a.c": "int a;\n",
    "scripts/checkpatch.pl": CHECKPATCH,
    "scripts/spelling.txt": "teh||the\n",
}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> MiniTree:
    tree = MiniTree(tmp_path_factory.mktemp("template") / "repo")
    tree.start(BASE_FILES)
    return tree


@pytest.fixture
def tree(template: MiniTree, tmp_path: Path) -> MiniTree:
    shutil.copytree(template.repo, tmp_path / "repo")
    return MiniTree(tmp_path / "repo", base=template.base)


def run_check(tree: MiniTree, series: Series | None = None, checks: tuple[Check, ...] = CHECKS) -> StageResult:
    applied = tree.applied()
    work = tree.repo.parent
    outcome = check(
        tree.repo,
        applied.tip_commit,
        applied,
        series or Series(title="t", patches=()),
        scripts=work / "scripts",
        log=work / "check.log",
        scratch=work / "scratch",
        checks=checks,
    )
    assert outcome.value is None
    return outcome.result


def rules(result: StageResult) -> dict[str, Status]:
    return {found.rule: found.severity for found in result.findings}


def test_a_clean_commit_passes_every_check(tree: MiniTree) -> None:
    tree.patch(f"kernel: add b{SIGNED}", {"kernel/b.c": "int b;\n"})
    result = run_check(tree)
    assert result.findings == ()
    assert (result.status, result.summary) == (Status.PASS, "6 of 6 checks ran; nothing to report")
    assert [name for name, _ in result.facts] == [each.name for each in CHECKS]


def test_prerequisites_are_not_judged(tree: MiniTree) -> None:
    tree.patch("kernel: no sign-off", {"kernel/b.c": "int \t b; \n"}, role=Blame.PREREQUISITE)
    tree.patch(f"kernel: add c{SIGNED}", {"kernel/c.c": "int c;\n"})
    assert run_check(tree).findings == ()


def test_a_series_without_a_commit_is_skipped(tree: MiniTree) -> None:
    tree.patch("only a prerequisite", {"kernel/b.c": "x"}, role=Blame.PREREQUISITE)
    assert run_check(tree).status is Status.SKIP


@pytest.mark.parametrize(
    ("message", "author", "wanted"),
    [
        (f"good{SIGNED}", "Alex Example <alex@example.com>", {}),
        (f"same name{SIGNED}", "Alex Example <alex@work.example.com>", {}),
        ("none\n\ntext\n", "Alex Example <alex@example.com>", {"trailers:sign-off": Status.WARN}),
        (f"other{SIGNED}", "Kim Example <kim@example.com>", {"trailers:author-sign-off": Status.WARN}),
        (
            f"id\n\nChange-Id: I{'a' * 40}{SIGNED[1:]}",
            "Alex Example <alex@example.com>",
            {"trailers:change-id": Status.PASS},
        ),
        (
            f"co\n\nCo-developed-by: Kim Example <kim@example.com>{SIGNED[1:]}",
            "Alex Example <alex@example.com>",
            {"trailers:co-developed-by": Status.PASS},
        ),
        (
            "co\n\nCo-developed-by: Kim Example <kim@example.com>\nSigned-off-by: Kim Example <kim@example.com>\n",
            "Kim Example <kim@example.com>",
            {},
        ),
        (f'form\n\nFixes: 0123456789ab ("x: y"){SIGNED[1:]}', "Alex Example <alex@example.com>", {}),
        (
            f'short\n\nFixes: 0123456 ("x: y"){SIGNED[1:]}',
            "Alex Example <alex@example.com>",
            {"trailers:fixes-form": Status.PASS},
        ),
        (
            f"form\n\nFixes: 0123456789ab x: y{SIGNED[1:]}",
            "Alex Example <alex@example.com>",
            {"trailers:fixes-form": Status.PASS},
        ),
        (f"link\n\nFixes: https://bugs.example.com/1{SIGNED[1:]}", "Alex Example <alex@example.com>", {}),
    ],
)
def test_trailers(tree: MiniTree, message: str, author: str, wanted: dict[str, Status]) -> None:
    tree.patch(message, {"kernel/b.c": "int b;\n"}, author=author)
    assert rules(run_check(tree, checks=(trailers.CHECK,))) == wanted


def test_fixes_names_a_commit_of_the_base(tree: MiniTree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reviewbot.stages.check._HISTORY", 2)
    tree.base = tree.commit("kernel: step 99", {})
    good = f'fix\n\nFixes: {tree.base[:12]} ("kernel: step 99"){SIGNED[1:]}'
    tree.patch(good, {"kernel/b.c": "int b;\n"})
    assert rules(run_check(tree)) == {}
    tree.patch(f'fix\n\nFixes: {tree.base[:12]} ("kernel: step 12"){SIGNED[1:]}', {"kernel/b.c": "int c;\n"})
    tree.patch(f'fix\n\nFixes: {"a" * 12} ("kernel: step 12"){SIGNED[1:]}', {"kernel/b.c": "int d;\n"})
    assert rules(run_check(tree)) == {"trailers:fixes-subject": Status.WARN, "trailers:fixes-unknown": Status.WARN}


def test_checkpatch_errors_warn_and_warnings_are_notes(tree: MiniTree) -> None:
    tree.patch(f"kernel: long{SIGNED}", {"kernel/b.c": f"int b;\n  \tint c;\n/* {'x' * 90} */\n"})
    result = run_check(tree)
    assert rules(result)["checkpatch:CODE_INDENT"] is Status.WARN
    assert rules(result)["checkpatch:LONG_LINE"] is Status.PASS
    assert result.status is Status.WARN
    found = next(found for found in result.findings if found.rule == "checkpatch:CODE_INDENT")
    assert (found.file, found.line) == ("kernel/b.c", 2)


def test_checkpatch_is_the_one_of_the_base(tree: MiniTree) -> None:
    tree.patch(f"scripts: be kind{SIGNED}", {"scripts/checkpatch.pl": "exit 0;\n", ".checkpatch.conf": "--ignore X\n"})
    tree.patch(f"kernel: long{SIGNED}", {"kernel/b.c": f"/* {'x' * 90} */\n"})
    assert "checkpatch:LONG_LINE" in rules(run_check(tree, checks=(checkpatch.CHECK,)))


def test_a_broken_checkpatch_is_a_skip_with_its_reason(tree: MiniTree) -> None:
    tree.patch(f"kernel: odd{SIGNED}", {"kernel/b.c": "BREAK\n"})
    result = run_check(tree)
    assert dict(result.facts)["checkpatch"] == "did not run: checkpatch.pl: broken on purpose"
    assert result.status is Status.WARN
    assert "5 of 6 checks ran" in result.summary


def test_a_tree_without_checkpatch_is_a_skip(tmp_path: Path) -> None:
    tree = MiniTree(tmp_path / "repo")
    tree.start({"kernel/a.c": "int a;\n"})
    tree.patch(f"kernel: add b{SIGNED}", {"kernel/b.c": "int b;\n"})
    assert dict(run_check(tree).facts)["checkpatch"] == "did not run: the base tree has no scripts/checkpatch.pl"


def test_no_perl_is_a_skip(tree: MiniTree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.patch(f"kernel: add b{SIGNED}", {"kernel/b.c": "int b;\n"})
    programs = tree.repo.parent / "bin"
    programs.mkdir()
    (programs / "git").symlink_to("/usr/bin/git")
    monkeypatch.setattr("reviewbot.run.search_path", lambda: str(programs))
    assert dict(run_check(tree).facts)["checkpatch"] == "did not run: perl: not installed"


def test_checkpatch_output_is_read() -> None:
    text = (
        "WARNING:COMMIT_LOG_LONG_LINE: Prefer a maximum 75 chars per line\n#7: \nlong text\n\n"
        "ERROR:SPACING: space required before the open parenthesis '('\n#31: FILE: kernel/a.c:12:\n+\tif(a)\n\n"
        "noise\n\nCHECK:BRACES: braces {} should be used\n#40: FILE: a:b.c:3:\n+x\n"
    )
    assert parse_complaints(text) == (
        Complaint(
            level="warning",
            kind="COMMIT_LOG_LONG_LINE",
            text="Prefer a maximum 75 chars per line",
            excerpt="#7: \nlong text",
        ),
        Complaint(
            level="error",
            kind="SPACING",
            text="space required before the open parenthesis '('",
            file="kernel/a.c",
            line=12,
            excerpt="#31: FILE: kernel/a.c:12:\n+\tif(a)",
        ),
        Complaint(
            level="check",
            kind="BRACES",
            text="braces {} should be used",
            file="a:b.c",
            line=3,
            excerpt="#40: FILE: a:b.c:3:\n+x",
        ),
    )


def test_whitespace_and_conflict_markers(tree: MiniTree) -> None:
    tree.patch(f"kernel: odd{SIGNED}", {"kernel/b.c": "int b; \n<<<<<<< ours\nint c;\n"})
    result = run_check(tree, checks=(whitespace.CHECK,))
    assert rules(result) == {"whitespace:space": Status.PASS, "whitespace:conflict-marker": Status.WARN}
    assert {(found.file, found.line) for found in result.findings} == {("kernel/b.c", 1), ("kernel/b.c", 2)}


def test_diffstat(tree: MiniTree) -> None:
    tree.patch(f"kernel: b{SIGNED}", {"kernel/b.c": "int b;\n"})
    note = "the diffstat says 2 files, the diff touches 1"
    patches = (Patch(subject="kernel: b", message="", diff="", notes=(note, "charset was guessed")),)
    result = run_check(tree, Series(title="t", patches=patches), checks=(diffstat.CHECK,))
    assert [(found.rule, found.title) for found in result.findings] == [("diffstat", note)]
    assert result.status is Status.PASS


def test_copies(tree: MiniTree) -> None:
    text = PERF.replace("/* non-ABI */", "/* not ABI */")
    tree.patch(f"perf: comment{SIGNED}", {HEADER: text})
    (found,) = run_check(tree, checks=(copies.CHECK,)).findings
    assert (found.rule, found.file, found.severity) == ("copies", HEADER, Status.PASS)
    tree.patch(f"tools: comment{SIGNED}", {f"tools/{HEADER}": text})
    assert run_check(tree, checks=(copies.CHECK,)).findings == ()


def test_a_header_that_tools_rewrote_is_no_copy(tmp_path: Path) -> None:
    tree = MiniTree(tmp_path / "repo")
    same, other = "include/linux/hash.h", "include/linux/list.h"
    tree.start({same: "a\n", f"tools/{same}": "a\n", other: "a\n", f"tools/{other}": "b\n"})
    tree.patch(f"lib: change{SIGNED}", {same: "c\n", other: "c\n"})
    assert [found.file for found in run_check(tree, checks=(copies.CHECK,)).findings] == [same]


def test_a_removed_header_is_for_a_reader(tree: MiniTree) -> None:
    tree.patch(f"perf: go{SIGNED}", {HEADER: None, f"tools/{HEADER}": None})
    assert rules(run_check(tree)) == {"uapi:removed": Status.WARN}


def test_a_broken_rule_fails_the_stage(tree: MiniTree) -> None:
    text = PERF.replace("PERF_SAMPLE_TID = 1U << 1", "PERF_SAMPLE_TID = 1U << 5")
    tree.patch(f"perf: move a bit{SIGNED}", {HEADER: text, f"tools/{HEADER}": text})
    result = run_check(tree)
    assert result.status is Status.FAIL
    (found,) = result.findings
    assert (found.rule, found.severity, found.file) == ("uapi:value-changed", Status.FAIL, HEADER)
    assert found.title == "PERF_SAMPLE_TID changes its value from 2 to 0x20"
    assert PERF.splitlines()[found.line - 1].strip().startswith("PERF_SAMPLE_TID")


def test_headers_of_the_kernel_itself_are_not_judged(tree: MiniTree) -> None:
    text = PERF.replace("PERF_SAMPLE_TID = 1U << 1", "PERF_SAMPLE_TID = 1U << 5")
    tree.patch(f"perf: own header{SIGNED}", {"include/linux/perf_event.h": text})
    tree.patch(f"perf: own header{SIGNED}", {"include/linux/perf_event.h": PERF})
    assert run_check(tree, checks=(uapi.CHECK,)).findings == ()


def stand_in(*findings: Finding, skipped: str = "") -> Check:
    return Check(name="stand-in", question="?", ask=lambda _: Answer(findings=findings, skipped=skipped))


def test_all_skipped_is_a_skip(tree: MiniTree) -> None:
    tree.patch(f"kernel: b{SIGNED}", {"kernel/b.c": "int b;\n"})
    result = run_check(tree, checks=(stand_in(skipped="no reason at all"),))
    assert (result.status, result.summary) == (
        Status.SKIP,
        "0 of 1 checks ran; nothing to report; stand-in did not run: no reason at all",
    )


def test_many_findings_are_cut_gravest_first(tree: MiniTree) -> None:
    tree.patch(f"kernel: b{SIGNED}", {"kernel/b.c": "int b;\n"})
    notes = [finding("stand-in", f"note {number}", Status.PASS) for number in range(300)]
    result = run_check(tree, checks=(stand_in(*notes, finding("stand-in", "grave", Status.FAIL)),))
    assert len(result.findings) == 201
    assert result.findings[0].title == "grave"
    assert result.findings[-1].title == "101 more findings of this check are not shown"


def test_a_commit_that_is_gone_is_the_machines_fault(tree: MiniTree) -> None:
    tree.patch(f"kernel: b{SIGNED}", {"kernel/b.c": "int b;\n"})
    (tree.repo / ".git/objects" / tree.patches[0].commit[:2] / tree.patches[0].commit[2:]).unlink()
    with pytest.raises(InfraError):
        run_check(tree)


def test_every_check_has_a_question() -> None:
    assert len({each.name for each in CHECKS}) == len(CHECKS)
    assert all(each.question.endswith("?") for each in CHECKS)
