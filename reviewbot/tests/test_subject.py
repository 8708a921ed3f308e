"""The subject parser against the forms that the lists have seen (data/mail/b07-subject-zoo.tsv)."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reviewbot.parse.subject import parse_subject

ZOO = Path(__file__).parent / "data" / "mail" / "b07-subject-zoo.tsv"
with ZOO.open(encoding="utf-8", newline="") as _file:
    ROWS = list(csv.DictReader(_file, delimiter="\t", quoting=csv.QUOTE_NONE))
# What the index explains in words beside the tag itself.
TAGS = {
    "7.2 (target release, not stable)": {"7.2"},
    "7.1.y stable": {"7.1.y"},
    "7.0 stable review": {"7.0"},
    "stable autosel": {"AUTOSEL", "7.0-6.18"},
    "bpf-next RESEND": {"bpf-next", "RESEND"},
    "RFC RESEND": {"RFC", "RESEND"},
}


@pytest.mark.parametrize("row", ROWS, ids=[row["subject"][:40] for row in ROWS])
def test_zoo(row: dict[str, str]) -> None:
    got = parse_subject(row["subject"])
    wanted = row["is_patch"]
    if wanted.startswith("no"):
        assert got.excluded
        return
    assert not got.excluded
    assert got.reply == (wanted == "reply")
    assert got.forward == (wanted == "reply/forward")
    assert got.cover == (wanted == "cover")
    assert got.patch == (not wanted.startswith("yes if"))
    assert got.revision == int(row["version"])
    number, total = (got.number, got.total) if got.numbered else (1, 1)
    assert (number, total) == (float(row["n"]), int(row["N"]))
    if row["tree/tag"] not in ("not the kernel",):
        assert set(got.prefixes) == TAGS.get(row["tree/tag"], set(filter(None, [row["tree/tag"]])))
    else:
        assert got.prefixes


@pytest.mark.parametrize(
    ("subject", "title"),
    [
        ("[PATCH v2] drm: handle a[i] and [brackets] in names", "drm: handle a[i] and [brackets] in names"),
        ("[PATCH 0/5] PATCH 0/6] dyndbg: x", "dyndbg: x"),
        ("[PATCH v13] Subject: [PATCH v13] hwmon: x", "hwmon: x"),
        ("Re: AW: [PATCH] pull request handling in x", "pull request handling in x"),
        ("[PATCH 1/2] [media] v4l: x", "v4l: x"),
    ],
)
def test_title(subject: str, title: str) -> None:
    assert parse_subject(subject).title == title


def test_a_title_that_begins_with_pull_is_no_pull_request() -> None:
    assert not parse_subject("[PATCH] pull the lock out of the loop").excluded
    assert parse_subject("[GIT PULL] fixes for 7.3-rc7").excluded == "pull request"


_PIECES = [*"[]v123/, :-.of\u56de\u590d\uff1a\x00\n", "PATCH", "RFC", "Re", "v2", "1/3"]


@given(st.lists(st.sampled_from(_PIECES)).map("".join))
def test_nothing_raises(subject: str) -> None:
    got = parse_subject(subject)
    assert got.total >= 0
    assert "\n" not in got.title


def test_a_version_of_five_digits_is_a_version() -> None:
    assert (parse_subject("[PATCH v10000 1/2] x").revision, parse_subject("[RFCv12345] x").revision) == (10000, 12345)
