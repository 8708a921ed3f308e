"""Headers and lines that say what is not true: charsets, numbers of parts, lines that look like a separator."""

from __future__ import annotations

import pytest

from reviewbot.parse.charset import decode
from reviewbot.parse.mail import split_lines, split_messages
from reviewbot.parse.patch import read_mail
from reviewbot.parse.series import assemble
from reviewbot.tests.test_apply import ONE

LATIN, ASIAN = "José Núñez wrote", "\u5f20\u4e09 wrote \u201cthis\u201d"


@pytest.mark.parametrize("charset", ["gb2312", "gbk", "gb18030", "big5", "euc-kr", "euc-jp", "shift_jis", "iso-8859-1"])
@pytest.mark.parametrize("text", [LATIN, ASIAN, "Jos\u00e9"])
def test_utf8_under_another_name(charset: str, text: str) -> None:
    got, note = decode(text.encode(), charset)
    assert got == text
    assert note


@pytest.mark.parametrize(
    ("charset", "text"),
    [
        ("gb2312", "\u5f20\u4e09\uff1a\u4f60\u597d"),
        ("gb2312", "\u8054\u901a"),
        ("big5", "\u4f60\u597d"),
        ("euc-kr", "\uc548\ub155"),
        ("shift_jis", "\u3053\u3093"),
        ("utf-16", "plain"),
        ("utf-16", "caf\u00e9"),
    ],
)
def test_honest_names_are_believed(charset: str, text: str) -> None:
    assert decode(text.encode(charset), charset) == (text, "")


@pytest.mark.parametrize("log", ["even", "odd"])
def test_ascii_under_the_name_of_utf16_keeps_its_patch(log: str) -> None:
    head = "From: A <a@example.com>\nSubject: [PATCH] x\nContent-Type: text/plain; charset=utf-16\n"
    mail = read_mail(f"{head}\n{log}\n---\n{ONE}".encode())
    assert [f.path for f in mail.diff.files] == ["lib/a.c"]
    assert any("utf-16" in note for note in mail.patch.notes)


START = b"From mboxrd@z Thu Jan  1 00:00:00 1970\nFrom: A <a@example.com>\nSubject: x\n\n"


@pytest.mark.parametrize(
    ("between", "count"),
    [
        (b"text\nFrom me Mon Nov 23 10:00:00 2026\nnote: it was late\n", 1),
        (b"text\nFrom me@x Mon Nov 23 10:00:00 2026\nFrom: B <b@example.com>\n\ny\n", 2),
        (b"text\n\nFrom me@x Mon Nov 23 10:00:00 2026\nXyz: B\n\ny\n", 2),
    ],
)
def test_a_separator_follows_an_empty_line_or_has_a_usual_header(between: bytes, count: int) -> None:
    assert len(list(split_messages(split_lines(START + between)))) == count


def test_parts_above_the_limit_are_told() -> None:
    raw = f"From: A <a@example.com>\nSubject: [PATCH 1/99999] x\n\nlog\n---\n{ONE}".encode()
    (got,) = assemble([read_mail(raw)]).series
    assert any("limit MAX_PATCHES" in note for note in got.notes)
