"""Input that was made to take long takes no longer than other input of its size."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from reviewbot.parse.diagnose import MAX_FAILURES, diagnose
from reviewbot.parse.diff import parse_diff
from reviewbot.parse.mail import split_lines, split_messages
from reviewbot.parse.merged import introduced_names

if TYPE_CHECKING:
    from collections.abc import Iterator

HEAD = "--- a/lib/n.c\n+++ b/lib/n.c\n"
# Each took between 5 and 48 seconds once; now hundredths, on a busy machine tenths.
SECONDS = 2.0


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    start = time.process_time()
    yield
    assert time.process_time() - start < SECONDS


@pytest.mark.parametrize("line", ["/*" * 20_000, '"\\' * 20_000, "/* " * 20_000, '"' * 40_001, "//" * 20_000])
def test_one_line_of_comments_or_strings(line: str) -> None:
    introduced_names(parse_diff(f"{HEAD}@@ -1 +1,2 @@\n x\n+{line}\n").files)


def test_names_outside_of_comments_and_strings_are_found() -> None:
    line = 'a_name = "no_string" /* no_comment */ + b_name; /* no_end'
    names = introduced_names(parse_diff(f"{HEAD}@@ -1 +1,2 @@\n x\n+{line}\n").files)
    assert names == {"a_name", "b_name"}


def test_a_hunk_of_equal_lines() -> None:
    body = " the only one\n" + " same\n" * 3000 + "-other\n" + " same\n" * 3000
    files = parse_diff(f"{HEAD}@@ -1,6002 +1,6001 @@\n{body}").files
    (failure,) = diagnose("x", files, {"lib/n.c": "the only one\n" + "same\n" * 9000})
    assert failure.nearest_line == 1


def test_many_hunks_that_fail() -> None:
    body = "".join(f"@@ -{n * 9 + 1},3 +{n * 9 + 1},2 @@\n a {n}\n-gone {n}\n b {n}\n" for n in range(1000))
    text = "".join(f"a {n}\nnow {n}\nb {n}\n" + "x\n" * 6 for n in range(1000))
    assert len(diagnose("x", parse_diff(HEAD + body).files, {"lib/n.c": text})) == MAX_FAILURES


@pytest.mark.parametrize("line", [b"From " + b" " * 200_000, b"From a" + b"\t" * 200_000, b"From " + b"a " * 100_000])
def test_a_line_that_begins_as_an_envelope(line: bytes) -> None:
    mbox = b"From a@example.com Thu Jan  1 00:00:00 1970\nFrom: a\n\n" + line + b"\nFrom: a\n\nx\n"
    assert len(list(split_messages(split_lines(mbox)))) == 1
    assert len(list(split_messages(split_lines(line + b"\nFrom: a\n\nx\n")))) == 1
