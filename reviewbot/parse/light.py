"""The mails of a whole archive, read at speed and held small: what assembly asks for, and no more.

In: the bytes of one message. Out: its Mails, without the hunks of their parsed diffs, and without what replies say but
their trailers.
Most mails of a list are plain replies without a diff: these are told by their header and a few searches, without the
whole way through MIME and the diff parser.
"""

from __future__ import annotations

import binascii
import re
from dataclasses import replace

from reviewbot.model import Patch
from reviewbot.parse.attached import read_mails
from reviewbot.parse.charset import decode
from reviewbot.parse.diff import ParsedDiff
from reviewbot.parse.log import cut_log
from reviewbot.parse.mime import parameters, parse_header
from reviewbot.parse.patch import Mail, message_id, parent_ids
from reviewbot.parse.subject import Subject, parse_subject
from reviewbot.parse.trailers import trailers

_ENCODINGS = frozenset({"", "7bit", "8bit", "binary", "quoted-printable"})
# Whatever may make more of a reply than a reply: a diff, a scissors line, a header in the body.
_DIFF = re.compile(rb"\n(?:@@|diff -|--- |Index: )")
_SCISSORS = (b">8", b"8<", b"%<", b">%")
_RE = re.compile(rb"\nSubject: re: ", re.IGNORECASE)
_IN_BODY = re.compile(rb"\s*>?(?:From|Subject|Date):")
_NO_DIFF = ParsedDiff()


def read_light(raw: bytes, *, oversized: bool = False) -> tuple[Mail, ...]:
    """Return the mails that one message holds, made small; never raises. oversized tells that the message was cut."""
    reply = _plain_reply(raw)
    return (reply,) if reply else tuple(map(light, read_mails(raw, oversized=oversized)))


def not_read(name: str, reason: str) -> Mail:
    """Return what stands for a mail that was not read; name is what the archive calls it."""
    patch = Patch(subject="", message="", diff="", msgid=name)
    return Mail(kind="skipped", subject=Subject(title=""), patch=patch, diff=_NO_DIFF, reason=reason)


def light(mail: Mail) -> Mail:
    """Return the mail without what assembly does not read."""
    if mail.kind == "cover":
        return mail
    if mail.kind == "patch":
        # The blobs of the files say which patch builds on which.
        files = tuple(replace(file, hunks=()) for file in mail.diff.files)
        return replace(mail, diff=replace(_NO_DIFF, files=files))
    said = "\n".join(trailers(mail.patch.message + "\n" + mail.below)) if mail.kind == "reply" else ""
    return replace(mail, diff=_NO_DIFF, below="", patch=replace(mail.patch, message=said, diff="", notes=(), files=()))


def _plain_reply(raw: bytes) -> Mail | None:
    # A mail that can be nothing but a reply without a diff; None for any other.
    found = parse_header(raw) if _RE.search(raw) else None
    if found is None or "auto-submitted" in found[0]:
        return None
    headers, body = found
    subject = parse_subject(headers.get("subject", ""))
    text = _plain_text(headers, body) if subject.reply and not subject.excluded else None
    if text is None:
        return None
    said = trailers("".join(cut_log(text))) if text else []
    patch = Patch(subject=subject.title, message="\n".join(said), diff="", msgid=message_id(headers))
    return Mail(kind="reply", subject=subject, patch=patch, diff=_NO_DIFF, parents=parent_ids(headers), reason="reply")


def _plain_text(headers: dict[str, str], body: bytes) -> str | None:
    # The text of a mail that has one part and holds no diff.
    kind, options = parameters(headers.get("content-type", "text/plain"))
    encoding = headers.get("content-transfer-encoding", "").strip().lower()
    attached = headers.get("content-disposition", "inline").strip().lower() != "inline"
    if kind not in ("", "text/plain") or encoding not in _ENCODINGS or attached:
        return None
    data = binascii.a2b_qp(body) if encoding == "quoted-printable" else body
    if b"\r" in data or _DIFF.search(b"\n" + data) or _IN_BODY.match(data) or any(m in data for m in _SCISSORS):
        return None
    return decode(data, options.get("charset", ""))[0] if b"-by:" in data.lower() else ""
