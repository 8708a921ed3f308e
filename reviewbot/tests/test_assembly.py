"""Which patches are one series: not two revisions in one directory, not two people's, not what was lost on the way."""

from __future__ import annotations

from pathlib import Path

import pytest

from reviewbot.errors import UsageError
from reviewbot.parse.attached import read_mails
from reviewbot.parse.light import light
from reviewbot.parse.mail import split_messages
from reviewbot.parse.patch import read_mail
from reviewbot.parse.series import Assembly, assemble
from reviewbot.stages.intake import intake
from reviewbot.tests.test_apply import diff

DATA = Path(__file__).parent / "data" / "mail"
ALEX = "Alex Example <alex@example.com>"
ZED = "Zed Example <zed@example.com>"


def mail(
    subject: str, msgid: str = "", ref: str = "", *, new: str = "", sender: str = ALEX, day: int = 20, minute: int = 0
) -> bytes:
    ids = (f"Message-ID: <{msgid}>\n" if msgid else "") + (f"In-Reply-To: <{ref}>\n" if ref else "")
    body = f"Signed-off-by: {sender}\n---\n{diff('', f'int {new};')}" if new else ""
    date = f"{day} Nov 2026 10:{minute:02}:00 +0000"
    return f"From: {sender}\nDate: {date}\n{ids}Subject: {subject}\n\nlog\n\n{body}-- \n2.54.0\n".encode()


def assembled(*mails: bytes) -> Assembly:
    return assemble([read_mail(one) for one in mails])


def added(assembly: Assembly) -> list[list[str]]:
    return [[p.diff.partition("\n+int ")[2].partition(";")[0] for p in one.patches] for one in assembly.series]


@pytest.mark.parametrize("first", ["", "[PATCH 0/2] cover", "[PATCH v2 0/2] cover"])
def test_a_directory_with_two_revisions_is_the_newer_one(tmp_path: Path, first: str) -> None:
    for prefix, tag in (("", ""), ("v2-", " v2")):
        for n in (1, 2):
            text = mail(f"[PATCH{tag} {n}/2] part {n}", new=f"r{tag[-1:] or 1}_{n}")
            (tmp_path / f"{prefix}000{n}-part.patch").write_bytes(text)
    if first:
        (tmp_path / "0000-cover.patch").write_bytes(mail(first))
    got = intake(str(tmp_path)).value
    assert got is not None
    assert (got.revision, [p.subject for p in got.patches]) == (2, ["part 1", "part 2"])
    assert ["r2_" in p.diff for p in got.patches] == [True, True]
    assert any("older revisions left out: v1" in note for note in got.notes)


def test_a_directory_with_a_patch_that_was_sent_again_alone(tmp_path: Path) -> None:
    for n in (1, 2):
        (tmp_path / f"000{n}-part.patch").write_bytes(mail(f"[PATCH {n}/2] part {n}", new=f"r1_{n}"))
    (tmp_path / "v2-0002-part.patch").write_bytes(mail("[PATCH v2 2/2] part 2", new="r2_2"))
    got = intake(str(tmp_path)).value
    assert got is not None
    assert ["r1_1" in got.patches[0].diff, "r2_2" in got.patches[1].diff, len(got.patches)] == [True, True, 2]
    assert any("partial reroll: v2 lacks 1/2, taken from v1" in note for note in got.notes)


@pytest.mark.parametrize("cover", [True, False])
@pytest.mark.parametrize("titles", [("x", "y"), ("a", "b")])
@pytest.mark.parametrize("turned", [False, True])
def test_a_counter_proposal_does_not_replace_the_series(*, cover: bool, titles: tuple[str, str], turned: bool) -> None:
    own = [mail("[PATCH 0/2] cover", "a0")] if cover else []
    own += [
        mail("[PATCH 1/2] a", "a1", "a0" if cover else "", new="own_1"),
        mail("[PATCH 2/2] b", "a2", "a1", new="own_2"),
    ]
    other = [
        mail(f"[PATCH 1/2] {titles[0]}", "c1", "a1", new="other_1", sender=ZED),
        mail(f"[PATCH 2/2] {titles[1]}", "c2", "c1", new="other_2", sender=ZED),
    ]
    got = assembled(*(other + own if turned else own + other))
    assert sorted(added(got)) == [["other_1", "other_2"], ["own_1", "own_2"]]
    assert {one.author for one in got.series} == {ALEX, ZED}


def test_a_revision_with_a_cover_letter_that_lacks_a_part_is_incomplete() -> None:
    one = [
        mail("[PATCH 0/3] c", "a0"),
        *(mail(f"[PATCH {n}/3] p{n}", f"a{n}", "a0", new=f"one_{n}") for n in (1, 2, 3)),
    ]
    two = [
        mail("[PATCH v2 0/3] c", "b0", "a0"),
        *(mail(f"[PATCH v2 {n}/3] p{n}", f"b{n}", "b0", new=f"two_{n}") for n in (1, 3)),
    ]
    (got,) = assembled(*one, *two).series
    assert (got.revision, got.missing) == (2, (2,))
    assert ["two_" in p.diff for p in got.patches] == [True, True]
    assert not any("partial reroll" in note for note in got.notes)


def test_a_file_name_is_no_message_id(tmp_path: Path) -> None:
    folder = tmp_path / "u@h"
    folder.mkdir()
    file = folder / "two.mbox"
    start = b"From mboxrd@z Thu Jan  1 00:00:00 1970\n"
    file.write_bytes(
        b"\n".join(start + one for one in (mail("[PATCH] a", "a@x", new="a"), mail("[PATCH] b", "b@x", new="b")))
    )
    with pytest.raises(UsageError, match="2 different series"):
        intake(str(file))


def test_patches_attached_to_one_mail_are_patches_of_their_own(tmp_path: Path) -> None:
    head = b"From: A <a@example.com>\nSubject: [PATCH] both\nMessage-ID: <o@x>\nMIME-Version: 1.0\n"
    head += b"Content-Type: multipart/mixed; boundary=cut\n\n--cut\nContent-Type: text/plain\n\nhello\n"
    parts = [mail(f"[PATCH {n}/2] part {n}", new=f"part_{n}") for n in (1, 2)]
    body = b"".join(b"--cut\nContent-Type: text/x-patch; name=p.patch\n\n" + one + b"\n" for one in parts)
    file = tmp_path / "both.eml"
    file.write_bytes(head + body + b"--cut--\n")
    got = intake(str(file)).value
    assert got is not None
    assert ([p.subject for p in got.patches], got.missing, got.total) == (["part 1", "part 2"], (), 2)
    assert ["part_1" in got.patches[0].diff, "part_2" in got.patches[0].diff] == [True, False]


def sending(name: str, titles: tuple[str, str], ref: str = "", *, day: int = 20, minute: int = 0) -> list[bytes]:
    """Two patches, the second in answer to the first, as git send-email sends them."""
    first = mail(f"[PATCH 1/2] {titles[0]}", f"{name}1@x", ref, new=f"{name}1", day=day, minute=minute)
    return [first, mail(f"[PATCH 2/2] {titles[1]}", f"{name}2@x", f"{name}1@x", new=f"{name}2", day=day, minute=minute)]


@pytest.mark.parametrize("minute", [0, 5])
def test_two_sets_of_the_same_numbers_in_one_thread_are_two_series(minute: int) -> None:
    one, two = sending("a", ("x", "y"), "root@x"), sending("b", ("p", "q"), "root@x", minute=minute)
    for order in ([*one, *two], [*two, *one], [one[0], two[0], one[1], two[1]], [one[0], two[0], two[1], one[1]]):
        assert sorted(added(assembled(*order))) == [["a1", "a2"], ["b1", "b2"]]


def test_one_set_sent_twice_is_the_newer_set() -> None:
    one, two = sending("a", ("x", "y"), "root@x"), sending("b", ("x", "y"), "root@x", day=22)
    for order in ([*one, *two], [one[0], two[0], one[1], two[1]], [*two, *one]):
        got = assembled(*order)
        assert added(got) == [["b1", "b2"]]
        assert "v1 was sent 2 times: the newest is reviewed" in got.series[0].notes


def test_a_set_sent_again_in_answer_to_the_first_does_not_mix_with_it() -> None:
    one = sending("a", ("x", "y"))
    two = [
        mail("[PATCH 1/2] x", "b1@x", "a1@x", new="b1", day=22),
        mail("[PATCH 2/2] y", "b2@x", "a1@x", new="b2", day=22, minute=1),
    ]
    assert added(assembled(*one, *two)) == [["b1", "b2"]]


def test_a_single_patch_sent_again_replaces_the_first() -> None:
    one = sending("a", ("x", "y"))
    got = assembled(*one, mail("[PATCH 2/2] y", "b2@x", "a2@x", new="b2", day=22))
    assert added(got) == [["a1", "b2"]]


@pytest.mark.parametrize("file", sorted(DATA.glob("*.mbox")), ids=lambda file: file.stem)
def test_an_archive_is_assembled_from_small_mails_as_from_whole_ones(file: Path) -> None:
    with file.open("rb") as lines:
        mails = [mail for raw in split_messages(iter(lines)) for mail in read_mails(raw.data)]
    assert assemble([light(mail) for mail in mails]) == assemble(mails)


@pytest.mark.parametrize("ref", ["a2@x", "a1@x"])
def test_a_resend_of_one_part_is_filled_from_what_was_sent_before(ref: str) -> None:
    got = assembled(*sending("a", ("x", "y")), mail("[PATCH RESEND 2/2] y", "r@x", ref, new="r2", day=22))
    assert added(got) == [["a1", "r2"]]
    assert "sent 2 times, the last time in part: that part is taken from the RESEND" in got.series[0].notes
    assert "1/2 of v1 came in another mail" in got.series[0].notes


def test_a_whole_resend_with_a_lost_part_is_not_filled_from_another_thread() -> None:
    again = mail("[PATCH RESEND 2/2] y", "r@x", new="r2", day=22)
    assert [(one.missing, len(one.patches)) for one in assembled(again).series] == [((1,), 1)]
