"""Every mail under data/mail gets the answer that its INDEX.tsv gives, on a tree that holds what its hunks expect."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from reviewbot.errors import UsageError
from reviewbot.model import ApplyResult, Series, Status
from reviewbot.stages.apply import apply
from reviewbot.stages.base import choose_base
from reviewbot.stages.intake import intake
from reviewbot.tests.mailtree import files_for, make_repo
from reviewbot.tools.git import must

DATA = Path(__file__).parent / "data" / "mail"
# Applied two times, to see that the commits depend on the input alone: text, binary, no author, no date.
TWICE = {"math: comments", "selftests: size: add a binary sample", "untitled diff", "math: rename lcm.c"}
CANARY = Path("/tmp/reviewbot-canary")
with (DATA / "INDEX.tsv").open(encoding="utf-8", newline="") as _file:
    ROWS = list(csv.DictReader(_file, delimiter="\t", quoting=csv.QUOTE_NONE))


def test_the_index_names_every_case() -> None:
    assert sorted(row["file"] for row in ROWS) == sorted(
        p.name for p in DATA.iterdir() if p.name not in ("INDEX.tsv", "b07-subject-zoo.tsv")
    )


def said(series: Series | None, applied: ApplyResult | None, summary: str) -> str:
    parts = [summary]
    if series:
        parts += [series.title, series.author, series.msgid, series.base_commit, *series.notes, *series.prefixes]
        parts += [*series.prerequisites, *(p.subject for p in series.patches), *(p.author for p in series.patches)]
        parts += [p.message for p in series.patches] + [f for p in series.patches for f in p.files]
    if applied:
        parts += [applied.summary, *applied.evidence, *(f.reason + f.difference for f in applied.failures)]
    return "\n".join(parts)


@pytest.mark.parametrize("row", ROWS, ids=[row["file"] for row in ROWS])
def test_case(row: dict[str, str], tmp_path: Path) -> None:
    source = str(DATA / row["file"])
    if row["state"] == "usage error":
        with pytest.raises(UsageError, match=row["says"]) as caught:
            intake(source)
        assert "\n" not in str(caught.value)
        assert row["file"] in str(caught.value)
        return
    got = intake(source)
    series = got.value
    applied = None
    if series is None:
        assert got.result.status is Status.SKIP
        assert row["state"] == "no series"
    else:
        assert (len(series.patches), series.revision) == (int(row["patches"]), int(row["revision"]))
        assert series.missing_ranges == row["missing"]
        files = files_for(series)
        edit_tree(files, row["tree"])
        applied = run_apply(series, files, tmp_path)
        assert applied.state.value == row["state"], applied.summary
    text = said(series, applied, got.result.summary)
    for word in filter(None, row["says"].split("|")):
        assert word.replace("\\n", "\n") in text
    assert not CANARY.exists()


def edit_tree(files: dict[str, bytes], edit: str) -> None:
    # "-path" takes the file away; "path|old|new" replaces text in it.
    if edit.startswith("-"):
        del files[edit[1:]]
    elif edit:
        name, old, new = (word.replace("\\n", "\n").replace("\\r", "\r") for word in edit.split("|"))
        assert old.encode() in files[name]
        files[name] = files[name].replace(old.encode(), new.encode())


def run_apply(series: Series, files: dict[str, bytes], tmp_path: Path) -> ApplyResult:
    repo = tmp_path / "tree.git"
    head = make_repo(repo, files)
    base = choose_base(repo, "small", series).value
    assert base is not None
    assert base.commit == head
    results = []
    for run in ("one", "two") if series.title in TWICE else ("one",):
        outcome = apply(repo, base, series, (), scratch=tmp_path / run, log=tmp_path / f"{run}.log")
        assert outcome.value is not None
        assert outcome.result.status is (Status.PASS if outcome.value.applied else Status.SKIP)
        results.append(outcome.value)
    assert results[0] == results[-1], "the same input gives the same commits"
    if results[0].applied and len(results) > 1:
        assert must(repo, "rev-list", "--count", f"{head}..{results[0].tip_commit}") == str(len(results[0].patches))
        must(repo, "fsck", "--no-dangling")
    return results[0]
