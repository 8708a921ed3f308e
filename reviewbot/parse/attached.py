"""A mail with several attached patch mails to one Mail each.

In: the bytes of one message. Out: its Mails: one, or as many as patches are attached that have headers of their own
(output of `git format-patch`), all in the thread of the mail that carried them.
"""

from __future__ import annotations

from dataclasses import replace

from reviewbot.parse.mime import parse_message
from reviewbot.parse.patch import Mail, mail_of, read_mail


def read_mails(raw: bytes, *, oversized: bool = False) -> tuple[Mail, ...]:
    """Return the mails that one message holds; never raises. oversized tells that the message was cut."""
    outer = read_mail(raw, oversized=oversized)
    if outer.kind != "patch" or oversized or len(outer.diff.files) < 2 or b"multipart/" not in raw.lower():
        return (outer,)
    attached = parse_message(raw).attachments
    inner = [parse_message(text.encode("utf-8", "surrogatepass")) for text in attached]
    mails = [mail_of(one) for one in inner if one.has_headers and one.get("subject")]
    mails = [one for one in mails if one.kind == "patch"]
    if len(mails) < 2:
        return (outer,)
    parents = (*outer.parents, outer.patch.msgid) if outer.patch.msgid else outer.parents
    note = f"one of {len(mails)} patches that are attached to one mail"
    return tuple(
        replace(
            one,
            parents=parents,
            lists=outer.lists,
            sender=outer.sender,
            sent=one.sent or outer.sent,
            patch=replace(one.patch, msgid=one.patch.msgid or outer.patch.msgid, notes=(*one.patch.notes, note)),
        )
        for one in mails
    )
