"""Nothing that a mail can hold raises, leaves the tree, or takes time without bound."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from reviewbot.model import ApplyState, BaseInfo, Patch, Series
from reviewbot.parse.attached import read_mails
from reviewbot.parse.charset import decode, decode_words
from reviewbot.parse.diff import parse_diff
from reviewbot.parse.flowed import undo_flowed
from reviewbot.parse.footers import parse_footers
from reviewbot.parse.hostile import path_offences
from reviewbot.parse.light import light, read_light
from reviewbot.parse.locate import locate
from reviewbot.parse.mail import split_lines, split_messages
from reviewbot.parse.merged import merged_evidence
from reviewbot.parse.names import unquote
from reviewbot.parse.needs import undefined_candidates
from reviewbot.parse.patch import Mail, read_mail
from reviewbot.parse.patchid import patch_id
from reviewbot.parse.series import assemble
from reviewbot.parse.stream import assemblies
from reviewbot.parse.versions import compare_versions
from reviewbot.stages.apply import apply
from reviewbot.stages.intake import intake
from reviewbot.tests.mailtree import files_for, make_repo
from reviewbot.tools.shelf import Shelf

DATA = Path(__file__).parent / "data" / "mail"
FILES = sorted(p for p in DATA.iterdir() if p.name != "INDEX.tsv" and 0 < p.stat().st_size < 8000)
SEEDS = [p.read_bytes() for p in FILES]
LINES = sorted({line for seed in SEEDS for line in seed.split(b"\n") if len(line) < 200})
PIECES = [
    b"\0",
    b"\r",
    b"\n",
    b"\x0c",
    b"\xff",
    b"\xe2\x80\xa8",
    b"=?utf-8?q?",
    b"?=",
    b"--B",
    b"From ",
    b"@@ -1,3 +1,4 @@",
    b"=20",
    b">",
]


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A mail of the corpus with bytes cut, doubled and put in; or lines of all of them at random."""
    if draw(st.booleans()):
        return b"\n".join(draw(st.lists(st.sampled_from(LINES), max_size=60)))
    data = draw(st.sampled_from(SEEDS))
    for _ in range(draw(st.integers(1, 6))):
        at, end = sorted((draw(st.integers(0, len(data))), draw(st.integers(0, len(data)))))
        kind = draw(st.sampled_from(["cut", "double", "put", "swap"]))
        if kind == "cut":
            data = data[:at] + data[min(end, at + 200) :]
        elif kind == "double":
            data = data[:at] + data[at : at + 300] * 2 + data[at:]
        elif kind == "put":
            data = data[:at] + draw(st.sampled_from(PIECES)) + data[at:]
        else:
            data = data[end:] + data[:at]
    return data


@given(mutated())
@settings(max_examples=300, deadline=None)
def test_nothing_raises_on_the_way_to_a_series(data: bytes) -> None:
    mails = [read_mail(raw.data) for raw in split_messages(split_lines(data))]
    for assembly in (assemble(mails), assemble(mails, one_series=True)):
        for series in assembly.series:
            assert series.patches
            assert all("\n" not in text for text in (series.title, series.author, series.msgid, series.date))
            for patch in series.patches:
                files = parse_diff(patch.diff).files
                patch_id(patch.diff)
                undefined_candidates(files)
                merged_evidence(files, {file.path: "int x;\n" for file in files})
            compare_versions(series, series)
    # Each mail is in one place.
    with Shelf() as shelf:
        placed = sum(len(a.skipped) for a in assemblies(mails, shelf))
    assert placed <= len(mails)


@given(mutated())
def test_the_quick_way_through_an_archive_reads_the_same(data: bytes) -> None:
    for raw in split_messages(split_lines(data)):
        for mail in (raw.data, raw.data.replace(b"\nSubject: ", b"\nSubject: Re: ", 1)):
            assert [_said(m) for m in read_light(mail)] == [_said(light(m)) for m in read_mails(mail)]


def test_the_quick_way_reads_the_same_of_every_mail_here() -> None:
    raws = [raw.data for path in FILES for raw in split_messages(split_lines(path.read_bytes()))]
    raws += [raw.replace(b"\nSubject: ", b"\nSubject: Re: ", 1) for raw in raws]
    replies = [mail for raw in raws for mail in read_light(raw) if mail.kind == "reply"]
    assert sum("-by: " in mail.patch.message for mail in replies) > 3
    for raw in raws:
        assert [_said(m) for m in read_light(raw)] == [_said(light(m)) for m in read_mails(raw)]


def _said(mail: Mail) -> Mail:
    # What assembly reads; the quick way decodes nothing else of a reply.
    if mail.kind != "reply":
        return mail
    return replace(mail, sent=0, sender="", patch=Patch(subject=mail.patch.msgid, message=mail.patch.message, diff=""))


@given(mutated())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_nothing_raises_in_apply(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    mails = [read_mail(raw.data) for raw in split_messages(split_lines(data))]
    for series in assemble(mails).series[:1]:
        where = tmp_path_factory.mktemp("apply")
        state = run_apply(series, where)
        assert isinstance(state, ApplyState)
        assert not Path("/tmp/reviewbot-canary").exists()


def run_apply(series: Series, where: Path) -> ApplyState:
    try:
        files = {
            name: text for name, text in files_for(series).items() if not path_offences(name) and name.isprintable()
        }
        head = make_repo(where / "r.git", {n: t for n, t in files.items() if "lib/math" in n and '"' not in n})
    except Exception:
        pytest.fail("the test's own tree")
    base = BaseInfo(tree="small", commit=head, describe="1", chosen_by="test")
    got = apply(where / "r.git", base, series, (), scratch=where / "s", log=where / "log").value
    assert got is not None
    return got.state


@given(st.binary(max_size=3000))
def test_any_bytes_are_a_mail(data: bytes) -> None:
    for raw in split_messages(split_lines(data)):
        read_mail(raw.data)


@given(
    st.binary(max_size=200),
    st.text(max_size=40) | st.sampled_from(["utf-7", "utf-16", "gb18030", "iso-2022-jp", "big5", "hz"]),
)
@example(b"+2AA-", "utf-7")
def test_any_charset_decodes(data: bytes, charset: str) -> None:
    text, note = decode(data, charset)
    assert text.encode("utf-8").decode("utf-8") == text
    assert "\n" not in note


@given(st.text(max_size=200))
def test_any_header_any_path_any_footer(text: str) -> None:
    decode_words(text)
    unquote(text)
    path_offences(text)
    parse_footers([text])
    undo_flowed(text, flowed=True, delsp=True)


@given(
    st.lists(st.sampled_from(["..", ".git", "lib", "", ".", "a", ".GIT ", "x\n"]), min_size=1, max_size=5).map("/".join)
)
def test_a_path_without_offence_stays_in_the_tree(path: str) -> None:
    if not path_offences(path):
        assert (Path("/tree") / path).resolve().is_relative_to("/tree")
        assert ".git" not in path.lower()


def quickly(limit_s: float, call: object, *args: object, **more: object) -> object:
    started = time.process_time()
    result = call(*args, **more)  # type: ignore[operator]
    assert time.process_time() - started < limit_s
    return result


def test_hostile_sizes_take_bounded_time() -> None:
    quickly(3, read_mail, b"Subject: " + b"[" * 200_000 + b"\nFrom: a@b\n\n" + b"x")
    quickly(3, read_mail, b"Subject: " + b"=?utf-8?q?a?= " * 50_000 + b"\nFrom: a@b\n\n")
    quickly(3, read_mail, b"From: a@b\nSubject: x\n" + b" folded\n" * 200_000 + b"\nbody")
    quickly(
        3, read_mail, b"From: a@b\nSubject: x\nContent-Type: multipart/mixed; boundary=B\n\n" + b"--B\n\n" * 100_000
    )
    nest = b"".join(b"Content-Type: multipart/mixed; boundary=B%d\n\n--B%d\n" % (n, n) for n in range(2000))
    quickly(3, read_mail, b"From: a@b\nSubject: x\n" + nest)
    quickly(3, parse_diff, "--- a/x\n+++ b/x\n@@ -1,999999999 +1,999999999 @@\n" + "+x\n" * 100_000)
    quickly(3, undefined_candidates, parse_diff("--- a/x.c\n+++ b/x.c\n@@ -0,0 +1,1 @@\n+" + "a " * 300_000).files)
    quickly(3, parse_footers, ["prerequisite-message-id: " + "<" * 100_000, "depends-on: " + "a@" * 100_000])


def test_locating_in_a_large_file_is_quick() -> None:
    lines = [f"\tcall_{n % 700}(a, {n % 90});" if n % 3 else "}" for n in range(60_000)]
    old = (
        "".join(f" {line}\n" for line in lines[40_000:40_010])
        + "-int gone;\n"
        + "".join(f" {x}\n" for x in lines[40_010:40_020])
    )
    hunk = parse_diff(f"--- a/x\n+++ b/x\n@@ -40001,21 +1,20 @@\n{old}").files[0].hunks[0]
    place = quickly(2, locate, hunk, lines)
    assert place.line == 40_001  # type: ignore[attr-defined]


def test_ten_thousand_empty_threads_are_quick() -> None:
    head = "From: A <a@example.com>\nSubject: [PATCH {n}/9999] x {n}\nMessage-ID: <{n}@x>\nIn-Reply-To: <0@x>\n\n"
    diff = "--- a/f{n}\n+++ b/f{n}\n@@ -1 +1 @@\n-a\n+b\n"
    mails = [read_mail((head + diff).format(n=n).encode()) for n in range(1, 3000)]
    (series,) = quickly(5, assemble, mails).series  # type: ignore[attr-defined]
    assert len(series.patches) == 1000
    assert any("limit MAX_PATCHES" in note for note in series.notes)


@pytest.mark.parametrize("name", ["e01-path-traversal.mbox", "x01-absolute-path.mbox", "x04-rename-out.patch"])
def test_hostile_mail_leaves_no_canary(name: str, tmp_path: Path) -> None:
    series = intake(str(DATA / name)).value
    assert series is not None
    assert run_apply(series, tmp_path) is ApplyState.HOSTILE
    assert not Path("/tmp/reviewbot-canary").exists()
