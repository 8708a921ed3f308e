"""The choice of a base: each rule wins where it should, and what lost is named with its reason."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from reviewbot.errors import UsageError
from reviewbot.model import BaseInfo, Patch, Series
from reviewbot.parse.diff import parse_diff
from reviewbot.parse.maintainers import parse_maintainers, trees_for
from reviewbot.stages.base import choose_base
from reviewbot.stages.intake import intake
from reviewbot.tools.branches import load
from reviewbot.tools.git import git_bytes, must

if TYPE_CHECKING:
    from pathlib import Path

FILE = "lib/a.c"
MAINTAINERS = """List of maintainers

A LIBRARY
M:\tA Person <a@example.com>
T:\tgit git://git.example.org/pub/special.git for-next
F:\tlib/
X:\tlib/not*.c

THE REST
T:\tgit git://git.example.org/torvalds/linux.git
F:\t*
F:\t*/
"""


def text(*changed: int, more: str = "") -> bytes:
    lines = [f"int line_{n:03}{'_new' if n in changed else ''};\n" for n in range(1, 61)]
    return ("".join(lines) + more).encode()


class Repo:
    """A history of versions: v1 (day 1), v2 (day 10), v3 (day 20), and a branch special/for-next from v2."""

    def __init__(self, path: Path) -> None:
        self.path = path
        must(None, "init", "-q", "--bare", "--initial-branch=main", str(path))
        stream = b"feature done\n" + self._commit("main", 1, {FILE: text(), "MAINTAINERS": MAINTAINERS.encode()}, "v1")
        stream += self._commit("main", 10, {FILE: text(5)}, "v2")
        stream += b"reset refs/remotes/special/for-next\nfrom refs/heads/main\n\n"
        stream += self._commit("main", 20, {FILE: text(5, 30, 31, 32)}, "v3")
        stream += self._commit("remotes/special/for-next", 12, {FILE: text(5, 50)}, "")
        git_bytes(path, "fast-import", "--quiet", "--done", stdin=[stream + b"done\n"])

    def _commit(self, branch: str, day: int, files: dict[str, bytes], tag: str) -> bytes:
        when = b"A <a@example.com> %d +0000" % (1_700_000_000 + 86_400 * day)
        ref = f"refs/{branch if '/' in branch else f'heads/{branch}'}".encode()
        out = b"commit %s\ncommitter %s\ndata 1\nx\n" % (ref, when)
        for name, data in files.items():
            out += b"M 100644 inline %s\ndata %d\n%s\n" % (name.encode(), len(data), data)
        if tag:
            out += b"tag %s\nfrom %s\ntagger %s\ndata 1\nt\n" % (tag.encode(), ref, when)
        return out

    def blob(self, rev: str) -> str:
        return must(self.path, "rev-parse", f"{rev}:{FILE}")

    def id(self, rev: str) -> str:
        return must(self.path, "rev-parse", f"{rev}^{{commit}}")


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return Repo(tmp_path / "tree.git")


def series(repo: Repo, *, blob: str = "", day: int = 15, line: int = 31, **more: object) -> Series:
    index = f"index {blob[:12]}..123456789abc 100644\n" if blob else ""
    context = "".join(f" int line_{n:03};\n" for n in (line - 1,))
    after = "".join(f" int line_{n:03};\n" for n in (line + 1,))
    diff = (
        f"diff --git a/{FILE} b/{FILE}\n{index}--- a/{FILE}\n+++ b/{FILE}\n@@ -{line - 1},3 +{line - 1},3 @@\n"
        f"{context}-int line_{line:03};\n+int changed;\n{after}"
    )
    date = f"{15 + day % 15:02} Nov 2023 00:00:00 +0000" if day < 15 else "29 Nov 2023 12:00:00 +0000"
    patch = Patch(subject="lib: change", message="", diff=diff, files=tuple(f.path for f in parse_diff(diff).files))
    return Series(title="lib: change", patches=(patch,), total=1, date=date, **more)  # type: ignore[arg-type]


def choose(repo: Repo, one: Series, **more: object) -> BaseInfo:
    got = choose_base(repo.path, "small", one, **more).value  # type: ignore[arg-type]
    assert got is not None
    return got


def test_the_user_decides(repo: Repo) -> None:
    got = choose(repo, series(repo, base_commit=repo.id("v2")), rev="v1")
    assert (got.commit, got.chosen_by) == (repo.id("v1"), "--base v1")


def test_base_commit_comes_before_anything_else(repo: Repo) -> None:
    got = choose(repo, series(repo, blob=repo.blob("v3"), base_commit=repo.id("v2")))
    assert (got.commit, got.chosen_by) == (repo.id("v2"), "base-commit of the series")


def test_an_unknown_base_commit_is_said(repo: Repo) -> None:
    got = choose(repo, series(repo, blob=repo.blob("v2"), base_commit="0123456789abcdef0123456789abcdef01234567"))
    assert got.commit == repo.id("v2")
    assert got.candidates[0].startswith("base-commit 0123456789abcdef0123456789abcdef01234567: unknown")


def test_the_blobs_find_the_version(repo: Repo) -> None:
    for rev in ("v1", "v2", "v3"):
        got = choose(repo, series(repo, blob=repo.blob(rev), line=45))
        assert got.commit == repo.id(rev)
        assert "all 1 pre-image blobs" in got.chosen_by
    assert any(
        line == "HEAD: 0 of 1 pre-image blobs" for line in choose(repo, series(repo, blob=repo.blob("v1"))).candidates
    )


def test_where_all_blobs_are_but_it_does_not_apply_is_not_the_base(repo: Repo) -> None:
    # Line 31 has changed in v3, whatever the index line says.
    got = choose(repo, series(repo, blob=repo.blob("v3"), line=31))
    assert got.commit != repo.id("v3")
    assert "the series applies" in got.chosen_by
    assert any("1 of 1 pre-image blobs" in line and "patch failed" in line for line in got.candidates)


def test_many_versions_with_the_same_files_are_tried_once(repo: Repo) -> None:
    # Forty versions nearer to the mail's date have what v3 has: the series is for v1 and v2.
    stream = b"".join(
        repo._commit("main", 20 + n, {f"other/{n}": b"x\n"}, f"v3.{n}").replace(
            b"data 1\nx\n", b"data 1\nx\nfrom refs/heads/main^0\n" if n == 1 else b"data 1\nx\n", 1
        )
        for n in range(1, 41)
    )
    git_bytes(repo.path, "fast-import", "--quiet", "--done", stdin=[b"feature done\n" + stream + b"done\n"])
    must(repo.path, "update-ref", "-d", "refs/remotes/special/for-next")
    one = series(repo, line=31)
    got = choose(repo, replace(one, date="01 Jan 2024 00:00:00 +0000"))
    assert got.commit == repo.id("v2")
    assert any("and 40 with the same files" in line for line in got.candidates)


@pytest.mark.parametrize("path", ["../a.c", "./a.c", "lib/../../a.c", ":a.c"])
def test_a_path_that_leaves_the_tree_does_not_stop_the_choice(repo: Repo, path: str) -> None:
    one = series(repo, blob=repo.blob("v1"))
    patch = replace(one.patches[0], diff=one.patches[0].diff.replace(FILE, path), files=(path,))
    assert choose(repo, replace(one, patches=(patch,))).commit == repo.id("HEAD")


def test_without_blobs_the_series_is_tried(repo: Repo) -> None:
    # The branch that MAINTAINERS names has changed line 50; the newest tag before the mail has not.
    got = choose(repo, series(repo, line=50))
    assert (got.commit, "newest tag before the mail" in got.chosen_by) == (repo.id("v2"), True)
    assert any("MAINTAINERS T: special" in line and "patch failed" in line for line in got.candidates)
    assert "no pre-image blobs: the patches have no index lines" in got.candidates


def test_a_subject_tag_names_a_branch(repo: Repo, tmp_path: Path) -> None:
    own = tmp_path / "branches.toml"
    own.write_text('[tags]\n"spec" = ["special/for-next"]\n')
    got = choose(repo, series(repo, prefixes=("spec",)), config=own)
    assert got.commit == repo.id("special/for-next")
    assert "subject tag spec" in got.chosen_by


def test_a_list_names_a_branch(repo: Repo, tmp_path: Path) -> None:
    own = tmp_path / "branches.toml"
    own.write_text('[lists]\n"special@lists.example.org" = ["special"]\n')
    got = choose(repo, series(repo, lists=("special@lists.example.org",)), config=own)
    assert "list special@lists.example.org" in got.chosen_by


def test_maintainers_name_a_branch(repo: Repo) -> None:
    got = choose(repo, series(repo))
    assert (got.commit, "MAINTAINERS T: special" in got.chosen_by) == (repo.id("special/for-next"), True)


def test_when_nothing_fits_the_best_is_taken_and_said(repo: Repo) -> None:
    one = series(repo, line=31)
    broken = one.patches[0].diff.replace("-int line_031;", "-int nowhere;")
    got = choose(
        repo, Series(title="t", patches=(Patch(subject="s", message="", diff=broken, files=(FILE,)),), total=1)
    )
    assert "applies to none of those tried" in got.chosen_by
    assert got.commit == repo.id("v3")
    assert len(got.candidates) >= 3


def test_a_version_that_has_the_series_already_is_better_than_one_that_it_does_not_fit(repo: Repo) -> None:
    one = series(repo, line=31)
    diff = (
        one.patches[0]
        .diff.replace("-int line_031;", "-int line_031_old;")
        .replace("+int changed;", "+int line_031_new;")
    )
    diff = diff.replace(" int line_030;", " int line_030_new;").replace(" int line_032;", " int line_032_new;")
    got = choose(repo, Series(title="t", patches=(Patch(subject="s", message="", diff=diff, files=(FILE,)),), total=1))
    assert (got.commit, "is in it already" in got.chosen_by) == (repo.id("v3"), True)


def test_a_series_that_changes_one_line_twice_is_known_where_it_is_in(repo: Repo) -> None:
    # Neither patch alone can be taken back from v2, the first one's line is not there.
    first, second = (
        series(repo, line=5).patches[0].diff.replace("-int line_005;", f"-{old}").replace("+int changed;", f"+{new}")
        for old, new in (("int line_005_old;", "int line_005_mid;"), ("int line_005_mid;", "int line_005_new;"))
    )
    patches = tuple(Patch(subject="s", message="", diff=diff, files=(FILE,)) for diff in (first, second))
    got = choose(repo, Series(title="t", patches=patches, total=2, date="25 Nov 2023 00:00:00 +0000"))
    assert "is in it already" in got.chosen_by
    assert got.commit != repo.id("v1")


def test_prerequisites_choose_the_branch_that_holds_them(repo: Repo) -> None:
    needed = intake("v2..special/for-next", repo=repo.path).value
    assert needed is not None
    ids = git_bytes(None, "patch-id", "--stable", stdin=[needed.patches[0].diff.encode()]).decode().split()
    got = choose(repo, series(repo, prerequisites=(f"patch-id {ids[0]}",)))
    assert (got.commit, got.chosen_by) == (repo.id("special/for-next"), "special/for-next holds the prerequisites")


def test_a_tree_without_history_has_one_candidate(tmp_path: Path) -> None:
    path = tmp_path / "one.git"
    must(None, "init", "-q", "--bare", "--initial-branch=main", str(path))
    data = text()
    stream = b"commit refs/heads/main\ncommitter A <a@example.com> 1 +0000\ndata 1\nx\nM 100644 inline lib/a.c\n"
    git_bytes(path, "fast-import", "--quiet", stdin=[stream + b"data %d\n%s\n" % (len(data), data)])
    one = Series(title="t", patches=(Patch(subject="s", message="", diff="", files=()),), total=1)
    got = choose_base(path, "tar", one, describe="7.2.9").value
    assert got is not None
    assert (got.describe, got.verified) == ("7.2.9", False)
    assert "its only commit with a name" in got.chosen_by


def test_maintainers_patterns() -> None:
    sections = parse_maintainers(MAINTAINERS)
    special, rest = (
        ("git://git.example.org/pub/special.git", "for-next"),
        ("git://git.example.org/torvalds/linux.git", ""),
    )
    assert trees_for(sections, ["lib/a.c"]) == [special, rest]
    assert trees_for(sections, ["lib/notes.c"]) == [rest]
    assert trees_for(sections, ["lib/math/a.c"]) == [special, rest]


def test_our_branch_file_is_sound_and_a_broken_one_is_named(tmp_path: Path) -> None:
    ours = load(tmp_path / "none.toml")
    assert ours.named(["net-next"], [])[0] == ("net-next/main", "subject tag net-next")
    broken = tmp_path / "b.toml"
    broken.write_text("[tags]\nx = 1\n")
    with pytest.raises(UsageError, match=r"b\.toml: \[tags\] must map"):
        load(broken)


def test_given_prerequisites_are_part_of_the_try(repo: Repo) -> None:
    needed = intake("v2..special/for-next", repo=repo.path).value
    assert needed is not None
    one = series(repo, line=50)
    diff = one.patches[0].diff.replace("-int line_050;", "-int line_050_new;")
    second = Series(title="t", patches=(Patch(subject="s", message="", diff=diff, files=(FILE,)),), total=1)
    alone, both = choose(repo, second), choose(repo, second, prerequisites=(needed,))
    assert alone.commit == repo.id("special/for-next")
    assert "the series applies" in both.chosen_by
    assert not any("v1" in line and "patch failed" in line for line in both.candidates)


def test_a_tag_as_base_commit_is_looked_up(repo: Repo, tmp_path: Path) -> None:
    for name, note in (("v2.1", "the tag v2.1"), ("v9.9-rc1", "")):
        must(repo.path, "tag", "-f", "v2.1", repo.id("v2"))
        file = tmp_path / "x.patch"
        body = series(repo).patches[0].diff
        file.write_text(
            f"Subject: [PATCH] x\nFrom: A <a@example.com>\n\nlog\n---\n{body}-- \n2.54\nbase-commit: {name}\n"
        )
        one = intake(str(file)).value
        assert one is not None
        got = choose(repo, one)
        if note:
            assert (got.commit, note in got.chosen_by) == (repo.id("v2"), True)
        else:
            assert got.candidates[0] == "base-commit v9.9-rc1: unknown, tested on small instead"


def test_a_better_base_in_another_tree_is_named_first(repo: Repo, tmp_path: Path) -> None:
    one = series(repo, blob=repo.blob("v3"), line=31)
    poor = tmp_path / "poor.git"
    must(None, "clone", "-q", "--bare", "--no-tags", "--single-branch", "--branch=v1", f"file://{repo.path}", str(poor))
    others = {"rich": repo.path}
    got = choose_base(poor, "poor", one, others=others).value
    assert got is not None
    share = "1 of 1 pre-image blobs are in HEAD, 0 here"
    assert got.candidates[0] == f"a better base is in tree rich: {share}; use --tree rich"
    named = series(repo, base_commit=repo.id("v3"))
    got = choose_base(poor, "poor", named, others=others).value
    assert got is not None
    assert got.candidates[0] == "a better base is in tree rich: it has the base-commit; use --tree rich"
    for fine in (choose(repo, one, others={"poor": poor}), choose(repo, named, others={"poor": poor})):
        assert not any("better base" in line for line in fine.candidates)
    assert not any("better base" in line for line in choose(repo, one, rev="v1", others=others).candidates)
