"""The tests on a tree as it is: what is said about its runs, and what cannot be asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reviewbot.errors import UsageError
from reviewbot.findings.compare import Observed
from reviewbot.model import Status
from reviewbot.plain import PlainReport, PlainRun, render_plain, run_plain
from reviewbot.tests.minitree import make_repo
from reviewbot.tools.cache import Cache
from reviewbot.tools.tree import add_git
from reviewbot.tools.vng import Ending

if TYPE_CHECKING:
    from pathlib import Path

PASS, SKIP = Observed(status=Status.PASS), Observed(status=Status.SKIP, reason="needs hardware branch stack")
FAIL = Observed(status=Status.FAIL, reason="RAW\x1b[31m is short")
LOST = Observed(status=Status.ERROR, reason="planned and never reported")


def a_run(ending: Ending = Ending.FINISHED, **cases: Observed) -> PlainRun:
    return PlainRun(cases={f"raw/{name}": seen for name, seen in cases.items()}, ending=ending, duration_s=20.4)


def test_a_case_that_fails_now_and_then_is_counted() -> None:
    report = PlainReport(release="6.1.1", runs=(a_run(a=PASS, b=FAIL, c=SKIP), a_run(a=LOST, b=FAIL, c=SKIP)))
    assert report.finished
    assert report.bad == {"raw/a", "raw/b"}
    assert render_plain(report).splitlines() == [
        "6.1.1: 2 runs",
        "  run 1: finished after 20 s; 3 cases: 1 pass, 1 fail, 1 skipped",
        "  run 2: finished after 20 s; 3 cases: 0 pass, 2 fail, 1 skipped",
        "  raw/a: fails in 1 of 2: planned and never reported",
        "  raw/b: fails in 2 of 2: RAW\\x1b[31m is short",
    ]


def test_a_guest_that_went_down_is_no_finished_run() -> None:
    report = PlainReport(release="6.1.1", runs=(a_run(a=PASS), a_run(Ending.PANIC, a=PASS)))
    assert not report.finished
    assert "run 2: panic after" in render_plain(report)


def test_a_revision_that_is_not_there_is_refused(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    add_git(cache, "mini", make_repo(tmp_path / "repo"))
    for rev in ("v9", "--all", ""):
        tree = "mini" if rev else "other"
        with pytest.raises(UsageError, match=r"no such commit|other"):
            run_plain(tree, cache, tmp_path / "out", rev=rev, note=lambda _text: None)
    assert not (tmp_path / "out").exists()
