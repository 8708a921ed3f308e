"""One Message to a Mail: is it a patch, a cover letter, a reply or something else, and its log and diff apart.

In: a Message. Out: a Mail. The log ends where git-mailinfo(1) ends it: at a line ``---``, ``diff -`` or ``Index: ``.
Seeds and other plain text are read as well: a first line ``[PATCH v2 3/8] title``, then an author in brackets.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from reviewbot.model import Patch
from reviewbot.parse.address import parse_author
from reviewbot.parse.characters import odd_characters
from reviewbot.parse.diff import ParsedDiff, parse_diff, starts_diff
from reviewbot.parse.flowed import undo_flowed
from reviewbot.parse.log import cut_log
from reviewbot.parse.mime import Message, parse_message
from reviewbot.parse.subject import Subject, parse_subject

if TYPE_CHECKING:
    from collections.abc import Mapping

# How the note begins that a patch has whose mail was not read to its end.
CUT_NOTE = "the message is larger than"
_IN_BODY = re.compile(r">?(From|Subject|Date):[ \t]*(.*)")
_IN_BODY_START = re.compile(r"\s*>?(?:From|Subject|Date):")
_SCISSORS = re.compile(r"^(?=.*(?:>8|8<|>%|%<))[-\s><8%]*(?:cut here)?[-\s><8%]*(?:cut here)?[-\s]*$", re.IGNORECASE)
# The lines that may be scissors: a search that goes over every mail, so it never steps back.
_SCISSORS_LIKE = re.compile(r"\n[-><8%][-><8% \t\r]*+(?:(?i:cut here)[-><8% \t\r]*+){0,2}+(?=\n|\Z)")
_SEED_AUTHOR = re.compile(r"\[([^\[\]]{1,200})\]\s*")
_SIGNED = re.compile(r"^Signed-off-by:", re.MULTILINE | re.IGNORECASE)
_LIST_HOST = re.compile(
    r"@(?:vger\.kernel\.org|lists\.[\w.-]+|[\w.-]+\.lists\.[\w.-]+|kvack\.org|googlegroups\.com|[\w-]+\.dev)"
)
_LOCAL = re.compile(r"[\w.+-]+\Z")
_MESSAGE_ID = re.compile(r"<([^<>\s]{1,400})>")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """One mail as a step of a thread. kind is "patch", "cover", "reply", "text" or "skipped" (then reason says why).

    below is what stands between the log and the diff, and after the diff: notes, diffstat, footers. parents are the
    message ids of References and In-Reply-To, oldest first. lists are the mailing lists in To and Cc. sender is
    who sent the mail, which need not be the patch's author. sent is seconds
    since the epoch, 0 when unknown.
    """

    kind: str
    subject: Subject
    patch: Patch
    diff: ParsedDiff
    below: str = ""
    parents: tuple[str, ...] = ()
    sent: float = 0
    reason: str = ""
    lists: tuple[str, ...] = ()
    sender: str = ""


def read_mail(raw: bytes, *, oversized: bool = False) -> Mail:
    """Return what the bytes of one message say; never raises."""
    mail = mail_of(parse_message(raw))
    if oversized:
        note = f"{CUT_NOTE} 32 MiB (limit MAX_MESSAGE_BYTES): what is above was not read"
        return replace(mail, patch=replace(mail.patch, notes=(*mail.patch.notes, note)))
    return mail


def mail_of(message: Message) -> Mail:
    """Return what a message says."""
    text, notes = undo_flowed(message.text, flowed=message.flowed, delsp=message.delsp)
    notes = [*message.notes, *notes]
    headers = dict(message.headers)
    if not message.has_headers:
        text = _seed_headers(text, headers, notes)
    text = _with_attachments(text, message, headers, notes)
    text = _after_scissors(text, notes)
    sender = parse_author(headers.get("from", ""))
    text = _in_body(text, headers, notes)
    return replace(_Builder(headers, text, notes).build(), sender=sender)


def _seed_headers(text: str, headers: dict[str, str], notes: list[str]) -> str:
    lines = text.lstrip("\ufeff\n").split("\n")
    if not re.match(r"\[.{0,80}\bPATCH\b", lines[0], re.IGNORECASE):
        return text
    headers["subject"] = lines[0]
    rest = 1
    while rest < len(lines) and not lines[rest].strip():
        rest += 1
    if rest < len(lines) and (author := _SEED_AUTHOR.fullmatch(lines[rest])):
        headers["from"] = author[1]
        rest += 1
    notes.append("plain text without mail headers")
    return "\n".join(lines[rest:])


def _with_attachments(text: str, message: Message, headers: dict[str, str], notes: list[str]) -> str:
    if not message.attachments or _has_diff(text):
        return text
    patches = [one for one in message.attachments if _has_diff(one)]
    if not patches:
        return text
    notes.append("the patch is an attachment" if len(patches) == 1 else f"{len(patches)} patches are attached")
    inner = parse_message(patches[0].encode("utf-8", "surrogatepass"))
    if not inner.has_headers:
        return "\n".join([text, "---", *patches])
    headers |= {name: inner.get(name) for name in ("from", "subject", "date") if inner.get(name)}
    return "\n".join([inner.text, *patches[1:]])


def _has_diff(text: str) -> bool:
    lines = text.split("\n")
    return any(starts_diff(lines, i) for i, line in enumerate(lines) if line.startswith(("diff --", "--- ")))


def _after_scissors(text: str, notes: list[str]) -> str:
    at = _scissors(text)
    if at < 0 or any(line.startswith(("diff --git ", "---")) for line in text[:at].split("\n")):
        return text
    rest = text[at:].partition("\n")[2]
    if not _has_diff(rest):
        return text
    notes.append("the text above the scissors line is left out of the log")
    return rest


def _scissors(text: str) -> int:
    # Where the first line with scissors begins; -1 when there is none.
    for match in _SCISSORS_LIKE.finditer(f"\n{text}"):
        line = match[0][1:]
        if len(line) < 100 and line.count("-") >= 2 and _SCISSORS.match(line):
            return match.start()
    return -1


def _in_body(text: str, headers: dict[str, str], notes: list[str]) -> str:
    # The whole output of git format-patch pasted into a mail: its first line, quoted or not, is no part of the log.
    plain = re.sub(r"\A\s*>?From [0-9a-f]{40,64} Mon Sep 17 00:00:00 2001[ \t]*\n", "", text)
    if not _IN_BODY_START.match(plain):
        return text
    lines = plain.split("\n")
    start = 0
    while start < len(lines) and not lines[start].strip():
        start += 1
    found: dict[str, str] = {}
    index = start
    while index < len(lines) and (match := _IN_BODY.fullmatch(lines[index])):
        found[match[1].lower()] = match[2]
        index += 1
        while index < len(lines) and lines[index][:1] in (" ", "\t") and lines[index].strip():
            found[match[1].lower()] += " " + lines[index].strip()
            index += 1
    if not found or (index < len(lines) and lines[index].strip()):
        return text
    if "from" in found and parse_author(found["from"]) == "":
        return text
    for name, value in found.items():
        if name == "subject" and (old := parse_subject(headers.get("subject", ""))).patch:
            brackets = headers["subject"][: headers["subject"].find(old.title)] if old.title else ""
            value = brackets + value if not value.startswith("[") else value  # noqa: PLW2901
        headers[name] = value
    if "from" in found:
        notes.append("the author comes from the From: line in the body")
    return "\n".join(lines[index + 1 :])


def message_id(headers: Mapping[str, str]) -> str:
    """Return the message id of a mail without its angle brackets, or an empty string."""
    value = headers.get("message-id", "")
    found = _MESSAGE_ID.search(value)
    return found[1] if found else value.strip("<> ")[:400]


def parent_ids(headers: Mapping[str, str]) -> tuple[str, ...]:
    """Return the message ids of References and In-Reply-To, oldest first."""
    both = headers.get("references", "") + " " + headers.get("in-reply-to", "")
    return tuple(dict.fromkeys(_MESSAGE_ID.findall(both)))


class _Builder:
    def __init__(self, headers: dict[str, str], text: str, notes: list[str]) -> None:
        self.headers = headers
        self.text = text
        self.notes = notes
        self.subject = parse_subject(headers.get("subject", ""))

    def build(self) -> Mail:
        log, rest = cut_log(self.text)
        diff = parse_diff(rest) if "\n@@" in rest or "diff --" in rest or "\n--- " in f"\n{rest}" else ParsedDiff()
        kind, reason = self._kind(diff)
        self._check_log(log, rest, diff, kind)
        return Mail(
            kind=kind,
            subject=self.subject,
            patch=self._patch(log, diff),
            diff=diff,
            below=diff.outside if diff.text else rest,
            parents=parent_ids(self.headers),
            sent=_seconds(self.headers.get("date", "")),
            reason=reason,
            lists=self._lists() if kind in ("patch", "cover") else (),
        )

    def _lists(self) -> tuple[str, ...]:
        both = (self.headers.get("to", "") + "," + self.headers.get("cc", ""))[:20_000]
        found = ((match, both[max(0, match.start() - 80) : match.start()]) for match in _LIST_HOST.finditer(both))
        locals_ = ((match, _LOCAL.search(before)) for match, before in found)
        return tuple(dict.fromkeys((local[0] + match[0]).lower() for match, local in locals_ if local))

    def _kind(self, diff: ParsedDiff) -> tuple[str, str]:
        subject = self.subject
        has_diff = bool(diff.files)
        automatic = self.headers.get("auto-submitted", "no").lower().startswith("auto-generated")
        kind, reason = "text", "says PATCH, but holds no diff" if subject.patch else "no patch"
        if subject.excluded or (automatic and not subject.patch):
            kind, reason = "skipped", subject.excluded or "bot mail"
        elif subject.reply:
            kind, reason = "reply", "reply with a diff of its own" if has_diff else "reply"
        elif subject.cover:
            kind, reason = "cover", ""
        elif has_diff or diff.problems:
            kind, reason = ("reply", "forwarded mail") if subject.forward and not subject.patch else ("patch", "")
        return kind, reason

    def _patch(self, log: str, diff: ParsedDiff) -> Patch:
        subject = self.subject
        title = subject.title or ("" if self.headers.get("subject") else "untitled diff")
        return Patch(
            subject=title,
            message=log,
            diff=diff.text,
            author=self._author(),
            date=self.headers.get("date", "").strip(),
            msgid=message_id(self.headers),
            number=int(subject.number),
            total=subject.total,
            notes=tuple(dict.fromkeys(self.notes)),
            files=tuple(dict.fromkeys(f.path for f in diff.files)),
        )

    def _author(self) -> str:
        sender = self.headers.get("from", "")
        if re.search(r"\bvia\b", sender):
            for name in ("x-original-from", "x-original-sender", "reply-to"):
                if author := parse_author(self.headers.get(name, "")):
                    self.notes.append(f"the list rewrote the sender: the author comes from {name}")
                    return author
        return parse_author(sender)

    def _check_log(self, log: str, rest: str, diff: ParsedDiff, kind: str) -> None:
        if kind != "patch" or not diff.files:
            return
        if not self.headers.get("subject"):
            self.notes.append("no subject: an untitled diff")
        if not self.headers.get("from"):
            self.notes.append("no author")
        if not _SIGNED.search(log):
            below = _SIGNED.search(diff.outside)
            self.notes.append("Signed-off-by is below the --- line" if below else "no Signed-off-by")
        self.notes += _diffstat_notes(diff, rest)
        self.notes += odd_characters({"subject": self.subject.title, "log": log, "diff": diff.text})


def _diffstat_notes(diff: ParsedDiff, rest: str) -> list[str]:
    stats = re.findall(r"^ (\d{1,6}) files? changed", diff.outside, re.MULTILINE)
    if not stats:
        return []
    told, found = int(stats[0]), len({f.path for f in diff.files})
    if told >= found:
        return []
    at = rest.find(f" {stats[0]} file")
    inside = ": a diff stands in the commit message" if _has_diff(rest[:at]) else ""
    return [f"the diffstat says {told} file{'s' * (told != 1)}, the diff touches {found}{inside}"]


def _seconds(date: str) -> float:
    try:
        return parsedate_to_datetime(date).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError, OSError):
        return 0
