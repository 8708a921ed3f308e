"""Diffs that git takes with a part lost: a damaged header or a line too many makes a patch malformed, with its line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reviewbot.model import ApplyState
from reviewbot.parse.diff import parse_diff
from reviewbot.parse.patch import read_mail
from reviewbot.tests.test_apply import ONE, diff, patch, run, series

if TYPE_CHECKING:
    from pathlib import Path

HUNK = "".join(diff("int line_080;", "int line_080_changed;", at=80).splitlines(keepends=True)[4:])
OTHER = f"--- a/lib/b.c\n+++ b/lib/b.c\n@@ -77,7 +77,7 @@\n{HUNK}"


@pytest.mark.parametrize(
    "header",
    [
        "@@ -77,7 +77,7 @",
        "@@ -77,7 +77,7@@",
        " @@ -77,7 +77,7 @@",
        "\t@@ -77,7 +77,7 @@ int f(void)",
        "@@ -77,7 +77,7\n@@ int f(void)",
        "@@ -1000000000,7 +1000000001,7 @@",
        "@@@ -77,7 +77,7 @@",
        "@@ -77,7 +77,7 @@\n@@ -77,7 +77,7 @@",
    ],
)
def test_a_damaged_hunk_header_is_told_with_its_line(tmp_path: Path, header: str) -> None:
    got = run(tmp_path, series(patch(f"{ONE}{header}\n{HUNK}")))
    assert got.state is ApplyState.MALFORMED, got.summary
    lines = ONE.count("\n")
    assert f"malformed at line {lines + 1}" in got.summary or f"malformed at line {lines + 2}" in got.summary


@pytest.mark.parametrize(
    "surplus",
    [
        "+int more;\n",
        "-int line_054;\n+int other;\n",
        " int line_054;\n+int more;\n",
        "\n+\tint more;\n",
        "\n\n-int x;\n",
    ],
)
def test_lines_above_the_count_of_the_header_are_not_lost(tmp_path: Path, surplus: str) -> None:
    got = run(tmp_path, series(patch(ONE + surplus)))
    assert got.state is ApplyState.MALFORMED, got.summary
    at = ONE.count("\n") + 1 + next(i for i, line in enumerate(surplus.split("\n")) if line[:1] in ("+", "-"))
    assert f"malformed at line {at} " in got.summary


@pytest.mark.parametrize(
    "header",
    ["--- a/lib/b.c\n+++b/lib/b.c\n@@ -77,7 +77,7 @@", "--- a/lib/b.c\n+++\nb/lib/b.c\n@@ -77,7 +77,7 @@"],
)
def test_a_second_file_with_a_damaged_header_is_not_lost(tmp_path: Path, header: str) -> None:
    got = run(tmp_path, series(patch(f"{ONE}{header}\n{HUNK}")))
    assert got.state is ApplyState.MALFORMED, got.summary


@pytest.mark.parametrize(
    "after",
    [
        "-- \n2.39.0\n",
        "--\n2.39.0\n",
        "\n-- \n2.39.0\n\n",
        "\nbase-commit: 0123456789012345678901234567890123456789\n-- \n2.39\n",
        " int line_054;\n-- \n2.39\n",
        "\n- an item\n- and one more\n",
        "---\nnotes\n",
        "\n_______________________________________________\nlist mailing list\n",
        "-----BEGIN PGP SIGNATURE-----\n",
        "\n@someone: hello\n",
    ],
)
def test_what_mail_programs_and_people_write_below_is_no_part_of_a_diff(after: str) -> None:
    assert parse_diff(ONE + after).problems == ()


def test_a_second_file_follows_at_once() -> None:
    assert parse_diff(ONE + OTHER).problems == ()
    assert len(parse_diff(ONE + OTHER).files) == 2


def test_a_patch_whose_mail_was_not_read_to_its_end_is_incomplete(tmp_path: Path) -> None:
    raw = f"From: A <a@example.com>\nSubject: [PATCH] x\n\nlog\n---\n{ONE}".encode()
    got = run(tmp_path, series(read_mail(raw, oversized=True).patch))
    assert got.state is ApplyState.INCOMPLETE
    assert "MAX_MESSAGE_BYTES" in got.summary
    assert run(tmp_path / "whole", series(read_mail(raw).patch)).state is ApplyState.APPLIED
