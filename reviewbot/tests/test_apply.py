"""Apply states that need a tree of their own shape; the mails of data/mail are in test_mail_cases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reviewbot.errors import UsageError
from reviewbot.model import ApplyResult, ApplyState, BaseInfo, Blame, Patch, Series
from reviewbot.parse.diff import parse_diff
from reviewbot.parse.hostile import offences
from reviewbot.parse.place import in_place
from reviewbot.resources import example_dir
from reviewbot.stages.apply import apply
from reviewbot.stages.base import choose_base
from reviewbot.stages.intake import intake
from reviewbot.tests.mailtree import files_for, make_repo
from reviewbot.tools.git import git_bytes, must

if TYPE_CHECKING:
    from pathlib import Path

FILE = "lib/a.c"
BASE = "".join(f"int line_{n:03};\n" for n in range(1, 101))


def diff(old: str, new: str, *, at: int = 50, path: str = FILE) -> str:
    context = [f" int line_{n:03};\n" for n in (at - 3, at - 2, at - 1)]
    after = [f" int line_{n:03};\n" for n in (at + 1, at + 2, at + 3)]
    minus = [f"-{line}\n" for line in old.split("\n") if line]
    plus = [f"+{line}\n" for line in new.split("\n") if line]
    counts = f"-{at - 3},{6 + len(minus)} +{at - 3},{6 + len(plus)}"
    body = "".join([*context, *minus, *plus, *after])
    return f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ {counts} @@\n{body}"


def patch(text: str, subject: str = "lib: change", number: int = 0, total: int = 0) -> Patch:
    files = tuple(f.path for f in parse_diff(text).files)
    return Patch(subject=subject, message="", diff=text, files=files, number=number, total=total)


def series(*patches: Patch, **more: object) -> Series:
    return Series(title="t", patches=patches, total=len(patches), **more)  # type: ignore[arg-type]


def run(tmp_path: Path, one: Series, *needed: Series, base: str = BASE, fuzz: bool = False) -> ApplyResult:
    repo = tmp_path / "tree.git"
    head = make_repo(repo, {FILE: base.encode()})
    info = BaseInfo(tree="small", commit=head, describe="1.0", chosen_by="test")
    got = apply(repo, info, one, needed, scratch=tmp_path / "s", log=tmp_path / "log", allow_fuzz=fuzz).value
    assert got is not None
    return got


ONE = diff("int line_050;", "int line_050_changed;")
TWO = diff("int line_060;", "int line_060_changed;", at=60)


def test_prerequisites_come_first_and_are_told_apart(tmp_path: Path) -> None:
    got = run(tmp_path, series(patch(TWO)), series(patch(ONE)))
    assert [p.role for p in got.patches] == [Blame.PREREQUISITE, Blame.SERIES]
    assert got.prerequisite_commit == got.patches[0].commit
    assert got.tip_commit == got.patches[1].commit
    text = git_bytes(tmp_path / "tree.git", "cat-file", "blob", f"{got.tip_commit}:{FILE}").decode()
    assert text == BASE.replace("line_050;", "line_050_changed;").replace("line_060;", "line_060_changed;")


def test_the_reverse_check_sees_what_is_in_already(tmp_path: Path) -> None:
    merged = BASE.replace("line_050;", "line_050_changed;")
    assert run(tmp_path, series(patch(ONE)), base=merged).state is ApplyState.ALREADY_MERGED


def test_a_patch_that_would_go_in_twice_is_already_merged(tmp_path: Path) -> None:
    # The same lines stand in the file two times: without the reverse check the change would go into the second.
    add = diff("", "int added;")
    twice = BASE + "".join(f"int line_{n:03};\n" for n in range(40, 60))
    merged = twice.replace("int line_049;\nint line_051;", "int line_049;\nint added;\nint line_051;", 1)
    base = merged.replace("int line_050;\n", "")
    base = base.replace("int line_049;\n", "int line_049;\nint added;\n", 1)
    assert run(tmp_path, series(patch(add)), base=base).state is ApplyState.ALREADY_MERGED


def test_a_series_that_is_half_in_goes_on_with_the_rest(tmp_path: Path) -> None:
    merged = BASE.replace("line_050;", "line_050_changed;")
    got = run(tmp_path, series(patch(ONE, "one", 1, 2), patch(TWO, "two", 2, 2)), base=merged)
    assert got.state is ApplyState.APPLIED
    assert [p.subject for p in got.patches] == ["two"]
    assert any("in the tree already" in line for line in got.evidence)


def test_a_prerequisite_that_does_not_apply_is_named(tmp_path: Path) -> None:
    got = run(tmp_path, series(patch(TWO)), series(patch(diff("int other;", "int x;"))))
    assert got.state is ApplyState.DOES_NOT_APPLY
    assert not got.tip_commit


def test_the_failing_hunk_is_shown_with_the_nearest_place(tmp_path: Path) -> None:
    moved = BASE.replace("int line_050;", "int line_050; /* changed since */")
    moved = "/* head */\n" * 20 + moved
    got = run(tmp_path, series(patch(TWO, "two", 1, 2), patch(ONE, "one", 2, 2)), base=moved)
    assert got.state is ApplyState.DOES_NOT_APPLY
    (failure,) = got.failures
    assert (failure.file, failure.line, failure.nearest_line) == (FILE, 47, 67)
    assert "-int line_050;\n+int line_050; /* changed since */" in failure.difference
    assert "patch 2/2" in got.summary


@pytest.mark.parametrize(
    ("heading", "lines", "inside"),
    [
        ("properties:", ["properties:", "  enum:", "    - a", "    - new"], True),
        ("properties:", ["properties:", "required:", "    - a", "    - new"], False),
        ("&uart0 {", ["/ {", "\tleds {", "\t};", "};", "&uart0 {", "    - a", "    - new"], True),
        ("soc: soc@0 {", ["/ {", "\tsoc: soc@0 {", "    - a", "    - new"], True),
        ("soc: soc@0 {", ["/ {", "\tsoc: soc@0 {", "\t};", "\tcpus {", "    - a", "    - new"], False),
        ("int f(void)", ["int f(void)", "{", "out:", "    - a", "    - new"], True),
        ("int f(void)", ["int f(void)", "{", "}", "int g(void)", "    - a", "    - new"], False),
    ],
)
def test_a_moved_change_is_in_place_under_the_heading_of_its_hunk(
    heading: str, lines: list[str], *, inside: bool
) -> None:
    head = f"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -70,1 +70,2 @@ {heading}\n     - a\n+    - new\n"
    (hunk,) = parse_diff(head).files[0].hunks
    assert in_place(hunk, lines) is inside


def test_a_heading_that_the_patch_itself_changes_is_not_looked_for() -> None:
    text = (
        "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-void first(void)\n+static void first(void)\n {\n"
        "@@ -9,2 +9,2 @@ void first(void)\n-void second(void)\n+static void second(void)\n {\n"
    )
    (file,) = parse_diff(text).files
    lines = ["int before;", "static void first(void)", "{", "}", "static void second(void)", "{"]
    assert all(in_place(hunk, lines, file.lines("-")) for hunk in file.hunks)
    assert not in_place(file.hunks[1], lines)


@pytest.mark.parametrize(("added", "inside"), [(3, True), (2, False)])
def test_many_lines_that_stand_once_are_in_place_under_any_heading(added: int, *, inside: bool) -> None:
    new = [f"#define added_{n}(x) something(x)" for n in range(added)]
    text = "".join(f"+{line}\n" for line in new)
    head = f"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -70 +70,{added + 1} @@ int f(void)\n }}\n{text}"
    (hunk,) = parse_diff(head).files[0].hunks
    lines = ["int f(void)", "{", "}", "int since(void)", "{", "}", *new]
    assert in_place(hunk, lines) is inside
    assert not in_place(hunk, [*lines, "}", *new])


def test_a_hunk_that_leaves_nothing_is_in_place_anywhere() -> None:
    gone = "diff --git a/x b/x\ndeleted file mode 100644\n--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-int a;\n"
    (hunk,) = parse_diff(gone).files[0].hunks
    assert in_place(hunk, ["int b;", ""])


def test_a_deleted_file_among_what_is_in_already(tmp_path: Path) -> None:
    # The changed line stands one further in the tree, and the file that the patch deletes is gone.
    gone = "diff --git a/x b/x\ndeleted file mode 100644\n--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-int a;\n"
    base = "int first;\n" + BASE.replace("int line_050;", "int changed;")
    got = run(tmp_path, series(patch(gone + diff("int line_050;", "int changed;"))), base=base)
    assert got.state is ApplyState.ALREADY_MERGED


def test_fuzz_is_asked_for_and_marked(tmp_path: Path) -> None:
    other = BASE.replace("int line_047;", "int line_047; /* context */")
    assert run(tmp_path / "no", series(patch(ONE)), base=other).state is ApplyState.DOES_NOT_APPLY
    got = run(tmp_path / "yes", series(patch(ONE)), base=other, fuzz=True)
    assert got.state is ApplyState.APPLIED_WITH_FUZZ
    assert "FUZZ" in got.summary


def test_a_missing_earlier_part_is_a_likely_reason(tmp_path: Path) -> None:
    text = diff("int gone;", "int x;")
    one = Series(title="t", patches=(patch(text, "three", 3, 8),), total=8, missing=(1, 2, 4, 5, 6, 7, 8))
    got = run(tmp_path, one)
    assert got.state is ApplyState.DOES_NOT_APPLY
    assert "a likely reason: patches 1, 2 of 8" in got.summary


def test_crlf_files_keep_their_line_ends(tmp_path: Path) -> None:
    got = run(tmp_path, series(patch(ONE)), base=BASE.replace("\n", "\r\n"))
    assert got.state is ApplyState.APPLIED
    text = git_bytes(tmp_path / "tree.git", "cat-file", "blob", f"{got.tip_commit}:{FILE}")
    assert text.count(b"\r\n") == text.count(b"\n")


def test_a_link_in_one_patch_and_a_file_through_it_in_the_next() -> None:
    link = "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+lib\n"
    through = "diff --git a/l/x b/l/x\nnew file mode 100644\n--- /dev/null\n+++ b/l/x\n@@ -0,0 +1 @@\n+x\n"
    files = [parse_diff(text).files for text in (link, through)]
    assert offences([files[0]], {}) == []
    assert offences(files, {}) == ["patch 2: l/x: goes through the symbolic link l"]


@pytest.mark.parametrize(
    "path",
    [
        "../x",
        "a/../../x",
        "/etc/passwd",
        ".git/config",
        "lib/.GIT/x",
        "a/.git\u200c/x",
        "a/git~1/x",
        "a\x1bb",
        "a//b",
        "./a",
    ],
)
def test_hostile_paths_are_refused(path: str) -> None:
    text = f"--- a/lib/x.c\n+++ b/{path}\n@@ -1 +1 @@\n-a\n+b\n"
    assert offences([parse_diff(text).files], {})


@pytest.mark.parametrize("path", ["a/.github/x", ".gitignore", "lib/..x", "a b/c,d.yaml", "Documentation/é.rst"])
def test_honest_paths_are_not(path: str) -> None:
    text = f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-a\n+b\n"
    assert offences([parse_diff(text).files], {}) == []


def test_the_seed_applies_after_its_prerequisites(tmp_path: Path) -> None:
    example = example_dir("build-id-offset")
    seed = intake(str(example / "series.txt")).value
    needed = intake(str(example / "prerequisites")).value
    assert seed is not None
    assert needed is not None
    assert (seed.title, seed.author) == (
        "perf/core: Implement BUILD_ID_OFFSET sample type",
        "Ian Rogers <irogers@google.com>",
    )
    assert (seed.revision, seed.total, seed.missing_ranges) == (2, 8, "1, 2, 4-8")
    repo = tmp_path / "tree.git"
    make_repo(repo, files_for(seed))
    base = choose_base(repo, "small", seed).value
    assert base is not None
    got = apply(repo, base, seed, (), scratch=tmp_path / "s", log=tmp_path / "log").value
    assert got is not None
    assert got.applied
    assert got.patches[0].insertions == 304
    assert must(repo, "log", "-1", "--format=%an <%ae>|%s", got.tip_commit).startswith(
        "Ian Rogers <irogers@google.com>|perf"
    )


def test_what_stands_in_the_tree_in_a_later_form_is_already_merged(tmp_path: Path) -> None:
    seed = intake(str(example_dir("raw-nonlinear") / "series.txt")).value
    assert seed is not None
    repo = tmp_path / "tree.git"
    make_repo(repo, evolved(seed))
    base = choose_base(repo, "small", seed).value
    assert base is not None
    got = apply(repo, base, seed, (), scratch=tmp_path / "s", log=tmp_path / "log").value
    assert got is not None
    assert got.state is ApplyState.ALREADY_MERGED
    assert any("kernel/events/core.c" in line and "__output_custom" in line for line in got.evidence)


def evolved(one: Series) -> dict[str, bytes]:
    # The files after the series, every third added line changed since.
    files = {}
    for file in parse_diff(one.patches[0].diff).files:
        lines = list(file.lines("+"))
        context = [line for hunk in file.hunks for line in hunk.side("+") if line not in lines]
        late = [line if n % 3 else f"{line} /* since */" for n, line in enumerate(lines)]
        files[file.path] = "\n".join([*context, *late, ""]).encode()
    return files


def test_an_unknown_base_is_named(tmp_path: Path) -> None:
    repo = tmp_path / "tree.git"
    make_repo(repo, {FILE: BASE.encode()})
    with pytest.raises(UsageError, match=r"--base nosuch: no such revision in the tree small"):
        choose_base(repo, "small", series(patch(ONE)), rev="nosuch")


def test_a_base_revision_is_never_an_option(tmp_path: Path) -> None:
    repo = tmp_path / "tree.git"
    make_repo(repo, {FILE: BASE.encode()})
    with pytest.raises(UsageError):
        choose_base(repo, "small", series(patch(ONE)), rev="--all")


def test_hunks_without_context_need_the_very_same_file(tmp_path: Path) -> None:
    text = "--- a/lib/a.c\n+++ b/lib/a.c\n@@ -50,0 +51 @@\n+int added;\n"
    assert run(tmp_path / "no", series(patch(text))).state is ApplyState.DOES_NOT_APPLY
    repo = tmp_path / "yes" / "tree.git"
    make_repo(repo, {FILE: BASE.encode()})
    blob = must(repo, "rev-parse", f"HEAD:{FILE}")
    known = f"diff --git a/lib/a.c b/lib/a.c\nindex {blob[:12]}..0123456789ab 100644\n{text}"
    base = choose_base(repo, "small", series(patch(known))).value
    assert base is not None
    got = apply(repo, base, series(patch(known)), (), scratch=tmp_path / "s", log=tmp_path / "log").value
    assert got is not None
    after = git_bytes(repo, "cat-file", "blob", f"{got.tip_commit}:{FILE}").decode()
    assert "int line_050;\nint added;\nint line_051;\n" in after


def test_a_three_way_merge_is_suggested_where_the_blobs_are_known(tmp_path: Path) -> None:
    # The tree has changed a context line since the version that the patch was made for, which is in its history.
    now = BASE.replace("int line_051;", "int line_051; /* since */")
    repo = tmp_path / "tree.git"
    head = make_repo(repo, {FILE: BASE.encode()}, [{FILE: now.encode()}])
    blob = must(repo, "rev-parse", f"HEAD~1:{FILE}")
    far = diff("int line_048;", "int line_048_changed;", at=48)
    text = far.replace("--- a/", f"index {blob[:12]}..0123456789ab 100644\n--- a/", 1)
    info = BaseInfo(tree="small", commit=head, describe="1.0", chosen_by="test")
    outcome = apply(repo, info, series(patch(text)), (), scratch=tmp_path / "s", log=tmp_path / "log")
    assert outcome.value is not None
    assert outcome.value.state is ApplyState.DOES_NOT_APPLY
    assert any("a three-way merge succeeds" in line for line in outcome.value.evidence)
    (log,) = outcome.result.logs
    suggestion = (tmp_path / log.path).read_text()
    assert "+int line_048_changed;" in suggestion
    assert "/* since */" in suggestion


def test_a_three_way_conflict_is_named(tmp_path: Path) -> None:
    now = BASE.replace("int line_050;", "int other;")
    repo = tmp_path / "tree.git"
    head = make_repo(repo, {FILE: BASE.encode()}, [{FILE: now.encode()}])
    blob = must(repo, "rev-parse", f"HEAD~1:{FILE}")
    text = ONE.replace("--- a/", f"index {blob[:12]}..0123456789ab 100644\n--- a/", 1)
    info = BaseInfo(tree="small", commit=head, describe="1.0", chosen_by="test")
    got = apply(repo, info, series(patch(text)), (), scratch=tmp_path / "s", log=tmp_path / "log").value
    assert got is not None
    assert any(f"a three-way merge has conflicts in {FILE}" in line for line in got.evidence)


def test_what_git_refuses_though_each_hunk_has_its_place_is_diagnosed(tmp_path: Path) -> None:
    there = diff("int line_050;", "int x;").replace(
        f"--- a/{FILE}", f"similarity index 90%\nrename from {FILE}\nrename to lib/Kconfig\n--- a/{FILE}"
    )
    moved = there.replace(f"b/{FILE}", "b/lib/Kconfig")
    got = run(tmp_path, series(patch(moved)))
    assert got.state is ApplyState.DOES_NOT_APPLY
    assert [(f.file, "already exists in index" in f.reason) for f in got.failures] == [(FILE, True)]


def creation(path: str, *, mode: str = "100644") -> str:
    head = f"diff --git a/{path} b/{path}\nnew file mode {mode}\n--- /dev/null\n+++ b/{path}\n"
    return f"{head}@@ -0,0 +1 @@\n+Makefile\n\\ No newline at end of file\n"


def test_a_path_below_a_file_is_diagnosed(tmp_path: Path) -> None:
    got = run(tmp_path, series(patch(creation(f"{FILE}/x.c"))))
    assert (got.state, [f.reason for f in got.failures]) == (
        ApplyState.DOES_NOT_APPLY,
        [f"{FILE} is a file in the tree, not a folder"],
    )


@pytest.mark.parametrize("path", [".git:$I30:$INDEX_ALLOCATION/x", "lib/.git::$INDEX_ALLOCATION/x", "git~1:$I30/x"])
def test_other_names_of_the_git_directory_are_hostile(tmp_path: Path, path: str) -> None:
    assert run(tmp_path, series(patch(creation(path)))).state is ApplyState.HOSTILE


@pytest.mark.parametrize("name", [".gitmodules", "lib/.gitattributes", ".GitModules", ".gitmodules:x"])
def test_a_link_in_the_place_of_a_file_that_git_reads_is_hostile(tmp_path: Path, name: str) -> None:
    got = run(tmp_path, series(patch(creation(name, mode="120000"))))
    assert (got.state, "file that git reads" in got.summary) == (ApplyState.HOSTILE, True)


@pytest.mark.parametrize(
    "stamp", ["\t2026-11-20 10:00:00.000000000 +0000", "\tFri Nov 20 10:00:00 2026", " 2026-11-20 10:00:00"]
)
def test_a_time_behind_a_name_is_no_part_of_it(tmp_path: Path, stamp: str) -> None:
    plain = (
        ONE.partition("\n")[2].replace(f"a/{FILE}\n", f"a/{FILE}{stamp}\n").replace(f"b/{FILE}\n", f"b/{FILE}{stamp}\n")
    )
    one = patch(plain)
    assert one.files == (FILE,)
    assert run(tmp_path, series(one)).state is ApplyState.APPLIED
