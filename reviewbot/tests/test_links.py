"""Symbolic links: what a whole series makes of them is judged, in the patched tree, with every link followed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reviewbot.model import ApplyResult, ApplyState, BaseInfo, Patch, Series
from reviewbot.parse.diff import parse_diff
from reviewbot.parse.links import leaving
from reviewbot.stages.apply import apply
from reviewbot.tests.mailtree import make_repo

if TYPE_CHECKING:
    from pathlib import Path

LINKS = {"lib/link": b"n.txt", "d1/inc": b"../include", "dirlink": b"d1/d2", "up": b"d1"}
FILES = {"lib/n.txt": b"hello", "d1/d2/x": b"x\n", "include/x.h": b"x\n"}


def make(path: str, target: str) -> str:
    head = f"diff --git a/{path} b/{path}\nnew file mode 120000\n--- /dev/null\n+++ b/{path}\n"
    return f"{head}@@ -0,0 +1 @@\n+{target}\n\\ No newline at end of file\n"


def turn(path: str, old: str, new: str) -> str:
    # No index line: nothing in the patch says that the file is a link.
    end = "\\ No newline at end of file\n"
    return f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-{old}\n{end}+{new}\n{end}"


def move(old: str, new: str) -> str:
    return f"diff --git a/{old} b/{new}\nsimilarity index 100%\nrename from {old}\nrename to {new}\n"


def run(tmp_path: Path, *texts: str) -> ApplyResult:
    repo = tmp_path / "tree.git"
    head = make_repo(repo, FILES | LINKS, links=frozenset(LINKS))
    patches = tuple(
        Patch(subject=f"p{n}", message="", diff=text, files=tuple(f.path for f in parse_diff(text).files))
        for n, text in enumerate(texts, 1)
    )
    info = BaseInfo(tree="small", commit=head, describe="1.0", chosen_by="test")
    one = Series(title="t", patches=patches, total=len(patches))
    got = apply(repo, info, one, (), scratch=tmp_path / "s", log=tmp_path / "log").value
    assert got is not None
    return got


@pytest.mark.parametrize(
    "texts",
    [
        (turn("lib/link", "n.txt", "/etc/passwd"),),
        (turn("lib/link", "n.txt", "../../etc"),),
        (turn("lib/link", "n.txt", "../.git/config"),),
        (make("d1/d2/up", "../.."), make("esc", "d1/d2/up/../../etc")),
        (make("esc", "dirlink/../../.."),),
        (move("d1/inc", "inc"), turn("lib/link", "n.txt", "m.txt")),
        (make("a", "d1/../up/../x"), turn("up", "d1", ".")),
        (make("a", "d1/d2/../../../etc"), make("b", "x"), turn("lib/link", "n.txt", "n2.txt")),
        (make("esc", "/etc"), move("esc", "lib/esc")),
    ],
    ids=["absolute", "up", "git", "chain", "through-base", "moved", "turned", "letters", "gone-again"],
)
def test_a_link_that_leads_out_of_the_patched_tree_is_hostile(tmp_path: Path, texts: tuple[str, ...]) -> None:
    got = run(tmp_path, *texts)
    assert got.state is ApplyState.HOSTILE, got.summary
    assert not got.tip_commit


@pytest.mark.parametrize(
    "texts",
    [
        (turn("lib/link", "n.txt", "../include/x.h"),),
        (make("lib/new", "../d1/d2/x"),),
        (make("lib/in", "../dirlink/../include"),),
        (move("d1/inc", "lib/inc"),),
        (make("lib/loop", "loop"),),
        (move("lib/n.txt", "lib/m.txt"),),
    ],
    ids=["turned", "made", "through-base", "moved", "loop", "dangling"],
)
def test_an_honest_link_is_applied(tmp_path: Path, texts: tuple[str, ...]) -> None:
    got = run(tmp_path, *texts)
    assert got.state is ApplyState.APPLIED, got.summary


def test_each_way_out_is_found_and_no_other() -> None:
    out = {"a": "/etc", "b": "a/x", "c/d": "../b", "e": "c/../..", "f": "", "g": "x\0", "h": "k" * 5000}
    inside = {"i/j": "../k", "l": "l", "m": "i/j/n", "o": "nowhere/../x"}
    assert leaving(out | inside).keys() == out.keys()
