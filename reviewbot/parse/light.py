"""The mails of a whole archive, read at speed and held small: what assembly asks for, and no more.

In: the bytes of one message. Out: its Mails, whose parsed diffs are dropped, and of replies all but their trailers.
Most mails of a list are plain replies without a diff: these are told by their header and a few searches, and their text
is not decoded.
"""

from __future__ import annotations

import re
from dataclasses import replace

from reviewbot.model import Patch
from reviewbot.parse.attached import read_mails
from reviewbot.parse.diff import ParsedDiff
from reviewbot.parse.mime import parameters, parse_header
from reviewbot.parse.patch import Mail, message_id, parent_ids
from reviewbot.parse.subject import parse_subject
from reviewbot.parse.trailers import trailers

_PLAIN_ENCODINGS = frozenset({"", "7bit", "8bit", "binary"})
# Whatever may make more of a reply than a reply: a diff, a trailer, a scissors line, a header in the body.
_TELLING = re.compile(
    rb"\n(?:@@|diff -|--- |Index: |(?:reviewed|acked|tested|nacked|reported|suggested)-by: )", re.IGNORECASE
)
_MARKS = (b"diff --", b">8", b"8<", b"%<", b">%")
_IN_BODY = re.compile(rb"\s*>?(?:From|Subject|Date):")
_NO_DIFF = ParsedDiff()


def read_light(raw: bytes) -> tuple[Mail, ...]:
    """Return the mails that one message holds, made small; never raises."""
    reply = _plain_reply(raw)
    return (reply,) if reply else tuple(map(light, read_mails(raw)))


def light(mail: Mail) -> Mail:
    """Return the mail without what assembly does not read."""
    if mail.kind == "cover":
        return mail
    if mail.kind == "patch":
        return replace(mail, diff=_NO_DIFF)
    said = "\n".join(trailers(mail.patch.message + "\n" + mail.below)) if mail.kind == "reply" else ""
    return replace(mail, diff=_NO_DIFF, below="", patch=replace(mail.patch, message=said, diff="", notes=(), files=()))


def _plain_reply(raw: bytes) -> Mail | None:
    # A mail that can be nothing but a reply without a diff and without a trailer; None for any other.
    found = parse_header(raw)
    if found is None:
        return None
    headers, body = found
    if _TELLING.search(b"\n" + body) or any(mark in body for mark in _MARKS) or _IN_BODY.match(body):
        return None
    kind, options = parameters(headers.get("content-type", "text/plain"))
    encoding = headers.get("content-transfer-encoding", "").strip().lower()
    plain = kind in ("", "text/plain") and encoding in _PLAIN_ENCODINGS and "format" not in options
    if not plain or headers.keys() & {"auto-submitted", "content-disposition"}:
        return None
    subject = parse_subject(headers.get("subject", ""))
    if not subject.reply or subject.excluded:
        return None
    patch = Patch(subject=subject.title, message="", diff="", msgid=message_id(headers))
    return Mail(
        kind="reply", subject=subject, patch=patch, diff=_NO_DIFF, parents=parent_ids(headers), reason="reply"
    )
