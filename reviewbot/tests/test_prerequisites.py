"""Prerequisites: found where they are, named when they are not, and blocking only what does not apply without them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reviewbot.model import ApplyState, BaseInfo, Series, Status
from reviewbot.parse.diff import parse_diff
from reviewbot.parse.footers import parse_footers
from reviewbot.parse.needs import undefined_candidates
from reviewbot.parse.patchid import patch_id
from reviewbot.resources import example_dir
from reviewbot.stages.apply import apply
from reviewbot.stages.intake import intake, read_series
from reviewbot.stages.prerequisites import resolve
from reviewbot.tests.mailtree import make_repo
from reviewbot.tests.test_sources import make_inbox
from reviewbot.tools.git import git_bytes
from reviewbot.tools.history import recent

if TYPE_CHECKING:
    from reviewbot.stages.prerequisites import Prerequisites

DATA = Path(__file__).parent / "data" / "mail"
FILE = "lib/a.c"
LINES = [f"int line_{n:03};\n" for n in range(1, 41)]


def mail(subject: str, msgid: str, old: str, new: str, *, below: str = "") -> bytes:
    at = LINES.index(f"int {old};\n") if f"int {old};\n" in LINES else 19
    around = LINES[at - 2 : at], LINES[at + 1 : at + 3]
    before, after = ("".join(f" {line}" for line in part) for part in around)
    diff = f"--- a/{FILE}\n+++ b/{FILE}\n@@ -{at - 1},5 +{at - 1},5 @@\n{before}-int {old};\n+int {new};\n{after}"
    head = (
        f"From: A <a@example.com>\nSubject: {subject}\nMessage-ID: <{msgid}>\nDate: Fri, 20 Nov 2026 10:00:00 +0000\n"
    )
    log = "log\n\nSigned-off-by: A <a@example.com>\n---\n"
    return f"From mboxrd@z Thu Jan  1 00:00:00 1970\n{head}\n{log}{below}\n{diff}-- \n2.54.0\n\n".encode()


def read(*mails: bytes) -> Series:
    got = intake("-", stdin=b"".join(mails)).value
    assert got is not None
    return got


FIRST = mail(
    "[PATCH] lib: first", "first@x", "line_020", "line_020_first", below="change-id: 20261101-first-0123456789ab\n"
)
NEEDS_FIRST = ("line_020_first", "line_020_second")


def second(footer: str) -> Series:
    return read(mail("[PATCH] lib: second", "second@x", *NEEDS_FIRST, below=footer))


@pytest.fixture
def base(tmp_path: Path) -> tuple[Path, BaseInfo]:
    repo = tmp_path / "tree.git"
    commit = make_repo(repo, {FILE: "".join(LINES).encode()}, [{"lib/b.c": b"x\n"}])
    return repo, BaseInfo(tree="small", commit=commit, describe="1", chosen_by="test")


def run(
    base: tuple[Path, BaseInfo], one: Series, tmp_path: Path, **more: object
) -> tuple[Prerequisites, ApplyState, str]:
    repo, info = base
    found = resolve(repo, info, one, **more)  # type: ignore[arg-type]
    assert found.value is not None
    assert found.result.status is (Status.WARN if found.value.unmet else Status.PASS)
    got = apply(
        repo, info, one, found.value.series, scratch=tmp_path / "s", log=tmp_path / "log", unmet=found.value.unmet
    ).value
    assert got is not None
    return found.value, got.state, got.summary


FOOTERS = {
    "message-id": "prerequisite-message-id: <first@x>\n",
    "patch-id": f"prerequisite-patch-id: {patch_id(read(FIRST).patches[0].diff)}\n",
    "change-id": "prerequisite-change-id: 20261101-first-0123456789ab:v1\n",
    "prose": "Depends-on: https://lore.kernel.org/all/first@x/\n",
}


@pytest.mark.parametrize("kind", FOOTERS)
def test_found_in_the_input(base: tuple[Path, BaseInfo], tmp_path: Path, kind: str) -> None:
    found, state, _ = run(base, second(FOOTERS[kind]), tmp_path, pool=[read(FIRST)])
    assert (len(found.series), found.unmet, state) == (1, (), ApplyState.APPLIED)


@pytest.mark.parametrize("kind", FOOTERS)
def test_one_input_holds_both(kind: str) -> None:
    both = FIRST + mail("[PATCH] lib: second", "second@x", *NEEDS_FIRST, below=FOOTERS[kind])
    outcome, pool = read_series("-", stdin=both)
    assert outcome.value is not None
    assert (outcome.value.title, [s.title for s in pool]) == ("lib: second", ["lib: first"])


@pytest.mark.parametrize("kind", FOOTERS)
def test_found_in_an_inbox(base: tuple[Path, BaseInfo], tmp_path: Path, kind: str) -> None:
    inbox = make_inbox(tmp_path / "in.git", FIRST + (DATA / "a05-charset-y.mbox").read_bytes())
    found, state, _ = run(base, second(FOOTERS[kind]), tmp_path, inbox=inbox, index=tmp_path / "i.sqlite")
    assert (len(found.series), found.unmet, state) == (1, (), ApplyState.APPLIED)


@pytest.mark.parametrize("kind", FOOTERS)
def test_one_that_nobody_has_blocks_and_is_named(base: tuple[Path, BaseInfo], tmp_path: Path, kind: str) -> None:
    one = second(FOOTERS[kind])
    found, state, summary = run(base, one, tmp_path)
    assert (found.series, found.unmet, state) == ((), one.prerequisites, ApplyState.BLOCKED)
    assert one.prerequisites[0] in summary


def test_in_base_already(tmp_path: Path) -> None:
    repo = tmp_path / "tree.git"
    after = "".join(LINES).replace("line_020;", "line_020_first;").encode()
    commit = make_repo(repo, {FILE: "".join(LINES).encode()}, [{FILE: after}])
    info = BaseInfo(tree="small", commit=commit, describe="1", chosen_by="test")
    diff = git_bytes(repo, "diff", "HEAD~1", "HEAD")
    wanted = git_bytes(None, "patch-id", "--stable", stdin=[diff]).decode().split()[0]
    found, state, _ = run((repo, info), second(f"prerequisite-patch-id: {wanted}\n"), tmp_path)
    assert (found.series, found.unmet, state) == ((), (), ApplyState.APPLIED)


def test_a_missing_one_does_not_stop_what_applies_without_it(base: tuple[Path, BaseInfo], tmp_path: Path) -> None:
    one = read(mail("[PATCH] lib: other", "o@x", "line_010", "line_010_other", below=FOOTERS["message-id"]))
    found, state, summary = run(base, one, tmp_path)
    assert (found.unmet, state) == (("message-id first@x",), ApplyState.APPLIED)
    assert "1 prerequisites not found" in summary


def test_the_users_own_count(base: tuple[Path, BaseInfo], tmp_path: Path) -> None:
    found, state, _ = run(base, second(FOOTERS["message-id"]), tmp_path, given=[read(FIRST)])
    assert (len(found.series), state) == (1, ApplyState.APPLIED)


@pytest.mark.parametrize(
    "name", ["a01-plain.patch", "c07-rename-edit.patch", "c13-git-binary.mbox", "c15-create-delete-noeol-symlink.mbox"]
)
def test_patch_ids_are_those_of_git(name: str) -> None:
    one = intake(str(DATA / name)).value
    assert one is not None
    for patch in one.patches:
        theirs = git_bytes(None, "patch-id", "--stable", stdin=[patch.diff.encode()]).decode().split()
        assert patch_id(patch.diff) == theirs[0]


def test_footers_are_whole_lines() -> None:
    text = " base-commit: 1111111111111111\nbase-commit: v7.2-rc1\nsee base-commit: 2222222222222222\nchange-id: a b\n"
    got = parse_footers([text])
    assert (got.base_commit, got.odd_base, got.change_id, got.prerequisites) == ("v7.2-rc1", "", "", ())


def test_the_seed_needs_its_two_sample_types() -> None:
    seed = intake(str(example_dir("build-id-offset") / "series.txt")).value
    assert seed is not None
    names = undefined_candidates(parse_diff(seed.patches[0].diff).files)
    assert {"PERF_SAMPLE_BUILD_ID_OFFSET", "PERF_SAMPLE_CALLCHAIN_BUILD_ID_OFFSET"} <= set(names)
    assert not {"perf_resolve_build_id_offsets", "orig_misc", "nr_bids_out", "sample_bid"} & set(names)


def test_needs_are_told_when_a_part_is_missing(base: tuple[Path, BaseInfo], tmp_path: Path) -> None:
    one = read(mail("[PATCH 2/2] lib: use it", "u@x", "line_010", "line_010 = BRAND_NEW_FLAG"))
    repo, info = base
    got = apply(repo, info, replace(one, missing=(1,)), (), scratch=tmp_path / "s", log=tmp_path / "log").value
    assert got is not None
    assert any(line.startswith("needs BRAND_NEW_FLAG") for line in got.evidence)


SELF = "change-id: 20261101-own-0123456789ab\nprerequisite-change-id: 20261101-own-0123456789ab\n"


def one_patch(below: str, subject: str = "[PATCH] lib: w", msgid: str = "w@x") -> bytes:
    return mail(subject, msgid, "line_020", "line_020_w", below=below)


@pytest.mark.parametrize(
    ("own", "others"),
    [
        (one_patch(SELF), ()),
        (one_patch("prerequisite-message-id: <w@x>\n"), ()),
        (one_patch("prerequisite-message-id: <w1@x>\n", "[PATCH v2] lib: w"), (one_patch("", msgid="w1@x"),)),
        (
            one_patch("prerequisite-message-id: <big2@x>\n"),
            (
                mail("[PATCH 1/3] lib: p", "big1@x", "line_010", "line_010_p"),
                one_patch("", "[PATCH 2/3] lib: w", "big2@x").replace(b"\n\nlog", b"\nReferences: <big1@x>\n\nlog"),
                mail("[PATCH 3/3] lib: q", "big3@x", "line_030", "line_030_q").replace(
                    b"\n\nlog", b"\nReferences: <big1@x>\n\nlog"
                ),
            ),
        ),
    ],
    ids=["change-id", "message-id", "older-revision", "larger-series"],
)
def test_a_series_is_never_its_own_prerequisite(
    base: tuple[Path, BaseInfo], tmp_path: Path, own: bytes, others: tuple[bytes, ...]
) -> None:
    inbox = make_inbox(tmp_path / "in.git", b"".join((own, *others)))
    found, state, summary = run(base, read(own), tmp_path, inbox=inbox, index=tmp_path / "i.sqlite")
    assert state is ApplyState.APPLIED, summary
    assert [p.subject for one in found.series for p in one.patches] == (["lib: p"] if len(others) == 3 else [])


def test_given_prerequisites_that_make_the_same_change_are_told(base: tuple[Path, BaseInfo], tmp_path: Path) -> None:
    other = read(one_patch("", "[PATCH] lib: the same by another name", "o@x"))
    _, state, summary = run(base, read(one_patch("")), tmp_path, given=[other])
    assert state is ApplyState.DOES_NOT_APPLY
    assert "the prerequisites make the same changes" in summary


def test_what_a_prerequisite_needs_comes_before_it(base: tuple[Path, BaseInfo], tmp_path: Path) -> None:
    middle = mail("[PATCH] lib: second", "second@x", *NEEDS_FIRST, below=FOOTERS["message-id"])
    last = mail(
        "[PATCH] lib: third", "third@x", "line_020", "line_020_third", below="prerequisite-message-id: <second@x>\n"
    )
    last = last.replace(b"-int line_020;", b"-int line_020_second;")
    inbox = make_inbox(tmp_path / "in.git", FIRST + middle)
    found, state, summary = run(base, read(last), tmp_path, inbox=inbox, index=tmp_path / "i.sqlite")
    assert [one.title for one in found.series] == ["lib: first", "lib: second"]
    assert state is ApplyState.APPLIED, summary
    (tmp_path / "less").mkdir()
    inbox = make_inbox(tmp_path / "less" / "in.git", middle)
    found, state, _ = run(base, read(last), tmp_path / "less", inbox=inbox, index=tmp_path / "less" / "i.sqlite")
    assert (found.unmet, len(found.series)) == (("message-id first@x",), 1)
    assert state is not ApplyState.APPLIED


def test_two_that_need_each_other_end(base: tuple[Path, BaseInfo], tmp_path: Path) -> None:
    one = mail("[PATCH] lib: c", "c@x", "line_010", "line_010_c", below="prerequisite-message-id: <w@x>\n")
    own = one_patch("prerequisite-message-id: <c@x>\n")
    found, state, _ = run(base, read(own), tmp_path, pool=[read(one)])
    assert ([s.title for s in found.series], state) == (["lib: c"], ApplyState.APPLIED)


def test_the_import_of_a_release_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = tmp_path / "tree.git"
    many = {f"lib/{n}.c": b"x\n" for n in range(4)}
    head = make_repo(repo, {FILE: b"x\n"}, [{"lib/b.c": b"x\n"}, many, {"lib/c.c": b"x\n"}])
    assert len(recent(repo, head).by_patch_id) == 3
    monkeypatch.setattr("reviewbot.tools.history.MAX_FILES", 3)
    assert sorted(recent(repo, head).by_patch_id.values()) == sorted(
        git_bytes(repo, "rev-parse", "HEAD", "HEAD~2").decode().split()
    )
