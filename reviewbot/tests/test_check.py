"""Stage check and every check of the registry: a sample that fires, and one that stays silent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reviewbot.checks.contract import Answer, Check, finding
from reviewbot.checks.registry import CHECKS
from reviewbot.errors import InfraError
from reviewbot.model import Blame, Finding, Patch, Series, Status
from reviewbot.stages.check import check
from reviewbot.tests.tree import MiniTree
from reviewbot.tools.checkpatch import Complaint, parse_complaints

if TYPE_CHECKING:
    from pathlib import Path

    from reviewbot.model import StageResult

SIGNED = "\n\nSigned-off-by: Alex Example <alex@example.com>\n"
PERF = """\
enum perf_event_sample_format {
	PERF_SAMPLE_IP = 1U << 0,
	PERF_SAMPLE_TID = 1U << 1,
	PERF_SAMPLE_TIME = 1U << 2,

	PERF_SAMPLE_MAX = 1U << 3, /* non-ABI */
};

enum perf_event_type {
	/*
	 * struct {
	 *	{ u64 ip; } && PERF_SAMPLE_IP
	 *	{ u32 pid, tid; } && PERF_SAMPLE_TID
	 *	{ u64 time; } && PERF_SAMPLE_TIME
	 * };
	 */
	PERF_RECORD_SAMPLE = 9,
};

#define PERF_FLAG_FD_NO_GROUP (1UL << 0)

struct perf_event_attr {
	__u32 type;
	__u32 size;
	__u64 enabled : 1,
	      __reserved_1 : 63;
	union {
		__u64 config1;
		__u64 bp_addr;
	};
	__u32 __reserved_2;
};
"""
HEADER = "include/uapi/linux/perf_event.h"
# Speaks as checkpatch.pl does; it finds a tab before a space, as the real one does, and tells where it was started.
CHECKPATCH = r"""
open(my $words, '<', __FILE__ =~ s/checkpatch.pl/spelling.txt/r) or die "no spelling.txt\n";
die "a configuration of the series is read\n" if -s ".checkpatch.conf";
my ($file, $found) = ("", 0);
while (<STDIN>) {
	die "broken on purpose\n" if /^\+BREAK/;
	$file = $1 if /^\+\+\+ b\/(.*)/;
	if (/^\+.* \t/) {
		print "ERROR:CODE_INDENT: code indent should use tabs where possible\n#$.: FILE: $file:2:\n$_\n";
		$found = 1;
	}
	if (/^\+.{90}/) {
		print "WARNING:LONG_LINE: line length of 91 exceeds 90 columns\n#$.: FILE: $file:3:\n$_\n";
		$found = 1;
	}
}
exit $found;
"""
BASE_FILES = {
    HEADER: PERF,
    f"tools/{HEADER}": PERF,
    "kernel/a.c": "int a;\n",
    "scripts/checkpatch.pl": CHECKPATCH,
    "scripts/spelling.txt": "teh||the\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> MiniTree:
    tree = MiniTree(tmp_path / "repo")
    tree.start(BASE_FILES)
    return tree


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
            "co\n\nCo-developed-by: Kim Example <kim@example.com>\nSigned-off-by: Kim Example <kim@example.com>"
            f"{SIGNED[1:]}",
            "Alex Example <alex@example.com>",
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
    assert rules(run_check(tree)) == wanted


def test_fixes_names_a_commit_of_the_base(tree: MiniTree) -> None:
    for number in range(100):
        tree.base = tree.commit(f"kernel: step {number}", {})
    tree.repo.joinpath("other").write_text("x")
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
    assert "checkpatch:LONG_LINE" in rules(run_check(tree))


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
    monkeypatch.setattr("reviewbot.run._search_path", lambda: str(programs))
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
    result = run_check(tree)
    assert rules(result) == {"whitespace:space": Status.PASS, "whitespace:conflict-marker": Status.WARN}
    assert {(found.file, found.line) for found in result.findings} == {("kernel/b.c", 1), ("kernel/b.c", 2)}


def test_diffstat(tree: MiniTree) -> None:
    tree.patch(f"kernel: b{SIGNED}", {"kernel/b.c": "int b;\n"})
    note = "the diffstat says 2 files, the diff touches 1"
    patches = (Patch(subject="kernel: b", message="", diff="", notes=(note, "charset was guessed")),)
    result = run_check(tree, Series(title="t", patches=patches))
    assert [(found.rule, found.title) for found in result.findings] == [("diffstat", note)]
    assert result.status is Status.PASS


def test_copies(tree: MiniTree) -> None:
    changed = PERF.replace("/* non-ABI */", "/* not ABI */")
    tree.patch(f"perf: comment{SIGNED}", {HEADER: changed})
    (found,) = run_check(tree).findings
    assert (found.rule, found.file, found.severity) == ("copies", HEADER, Status.PASS)
    tree.patch(f"tools: comment{SIGNED}", {f"tools/{HEADER}": changed})
    assert run_check(tree).findings == ()


def uapi_of(tree: MiniTree, *changes: tuple[str, str]) -> dict[str, Status]:
    text = PERF
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    tree.patch(f"perf: change{SIGNED}", {HEADER: text, f"tools/{HEADER}": text})
    return {rule: severity for rule, severity in rules(run_check(tree)).items() if rule.startswith("uapi")}


NEW_BIT = ("PERF_SAMPLE_TIME = 1U << 2,\n", "PERF_SAMPLE_TIME = 1U << 2,\n\tPERF_SAMPLE_NEW = 1U << 3,\n")
NEW_MAX = ("PERF_SAMPLE_MAX = 1U << 3", "PERF_SAMPLE_MAX = 1U << 4")
NEW_TEXT = ("&& PERF_SAMPLE_TIME\n", "&& PERF_SAMPLE_TIME\n\t *\t{ u64 n; } && PERF_SAMPLE_NEW\n")
FLAG = "#define PERF_FLAG_FD_NO_GROUP (1UL << 0)\n"


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ([NEW_BIT, NEW_MAX, NEW_TEXT], {"uapi:limit-moved": Status.PASS}),
        ([NEW_BIT, NEW_TEXT], {"uapi:limit": Status.WARN}),
        ([NEW_BIT, NEW_MAX], {"uapi:limit-moved": Status.PASS, "uapi:layout-comment": Status.WARN}),
        ([NEW_MAX], {"uapi:limit-moved": Status.WARN}),
        ([NEW_BIT, NEW_MAX, NEW_TEXT, ("NEW = 1U << 3", "NEW = 1U << 2")], {"uapi:value-twice": Status.FAIL, "uapi:limit-moved": Status.PASS}),
        ([("PERF_SAMPLE_TID = 1U << 1", "PERF_SAMPLE_TID = 0x1")], {"uapi:value-changed": Status.FAIL}),
        ([("PERF_SAMPLE_TID = 1U << 1", "PERF_SAMPLE_TID = 0x2")], {}),
        ([("\tPERF_SAMPLE_TIME = 1U << 2,\n", "")], {"uapi:removed": Status.WARN}),
        ([("PERF_SAMPLE_TIME = 1U << 2,\n", "PERF_SAMPLE_TIME = 1U << 2,\n\tPERF_SAMPLE_OLD = PERF_SAMPLE_TID,\n")], {}),
        ([(FLAG, FLAG + "#define PERF_FLAG_FD_OUTPUT (1UL << 1)\n")], {}),
        ([(FLAG, FLAG + "#define PERF_FLAG_FD_OUTPUT (1UL << 0)\n")], {}),
        ([(FLAG, FLAG + "#define PERF_FLAG_FD_NO_OUTPUT (1UL << 0)\n")], {"uapi:bit-twice": Status.WARN}),
        ([(FLAG, "#define PERF_FLAG_FD_NO_GROUP (1UL << 4)\n")], {"uapi:value-changed": Status.FAIL}),
        ([("enabled : 1,\n", "enabled : 1,\n\t      more : 1,\n"), ("1 : 63", "1 : 62")], {"uapi:layout": Status.PASS}),
        ([("__u64 bp_addr;", "__u64 bp_addr;\n\t\t__u64 config2;")], {"uapi:layout": Status.PASS}),
        ([("__u32 __reserved_2;", "__u32 __reserved_2;\n\t__u64 sig_data;")], {"uapi:layout": Status.PASS}),
        ([("__u32 size;", "__u32 size;\n\t__u32 sizes;")], {"uapi:layout": Status.WARN}),
        ([("__u32 size;", "__u64 size;")], {"uapi:layout": Status.WARN}),
        ([("__u64 bp_addr;", "__u32 bp_addr;")], {"uapi:layout": Status.WARN}),
        ([("__u32 type;", "__u32 type; /* of the event */")], {}),
    ],
)  # fmt: skip
def test_uapi(tree: MiniTree, changes: list[tuple[str, str]], wanted: dict[str, Status]) -> None:
    assert uapi_of(tree, *changes) == wanted


def test_a_removed_header_is_for_a_reader(tree: MiniTree) -> None:
    tree.patch(f"perf: go{SIGNED}", {HEADER: None, f"tools/{HEADER}": None})
    assert rules(run_check(tree)) == {"uapi:removed": Status.WARN}


def test_a_broken_rule_fails_the_stage(tree: MiniTree) -> None:
    uapi_of(tree, ("PERF_SAMPLE_TID = 1U << 1", "PERF_SAMPLE_TID = 1U << 5"))
    assert run_check(tree).status is Status.FAIL


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
