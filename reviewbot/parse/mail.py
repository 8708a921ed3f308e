"""A stream of bytes to single raw messages: mboxo, mboxrd, mboxcl2, `git format-patch` output, or no mbox at all.

In: an iterable of lines (bytes, split at LF). Out: one RawMessage at a time, so that an archive of any size is read in
bounded memory. A body line that merely begins with "From " never splits: a separator has a date and a header line after
it. A message above MAX_MESSAGE_BYTES is cut, and says so.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAX_MESSAGE_BYTES = 32 * 1024 * 1024
_ENVELOPE = re.compile(
    rb"From (?P<who>\S+|.{1,200}?)\s{1,8}(?:[A-Z][a-z]{2},? )?\s?(?:[A-Z][a-z]{2} [ \d]?\d|[ \d]?\d [A-Z][a-z]{2})"
    rb"[ ,].{0,40}"
    rb"\d{1,2}:\d\d.{0,40}\r?\n?"
)
_MAX_ENVELOPE = 500
_HASH = re.compile(rb"[0-9a-f]{40}|[0-9a-f]{64}")
_HEADER = re.compile(rb"[!-9;-~]{1,80}[ \t]*:")
# Without an empty line before it, a separator is believed only when a header follows that mails have.
_USUAL = re.compile(
    rb"(?:from|date|subject|to|cc|message-id|received|return-path|delivered-to|mime-version|content-[a-z-]+|reply-to|"
    rb"sender|status|list-[a-z-]+|in-reply-to|references|dkim-signature|x-[a-z-]+|authentication-results|arc-[a-z-]+)"
    rb"[ \t]*:",
    re.IGNORECASE,
)
_BOUNDARY = re.compile(rb"boundary\s*=\s*\"?([^\"\s;]{1,200})", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class RawMessage:
    """The bytes of one message without its envelope line. oversized tells that the rest above the limit was dropped."""

    data: bytes
    oversized: bool = False


def split_lines(data: bytes) -> Iterator[bytes]:
    """Yield the lines of data with their LF; nothing but LF ends a line."""
    at = 0
    while at < len(data):
        end = data.find(b"\n", at) + 1
        end = end or len(data)
        yield data[at:end]
        at = end


def split_messages(lines: Iterable[bytes]) -> Iterator[RawMessage]:
    """Yield the messages of an mbox, or the one message (or several without separators) of any other input."""
    source = _Lookahead(lines)
    first = next((line for line in source if line.strip()), None)
    if first is None:
        return
    if envelope := _envelope(first):
        yield from _split_mbox(source, envelope["who"])
        return
    current = _Current()
    current.add(first)
    for line in source:
        current.add(line)
    for message in current.messages():
        yield from _split_headers(message)


class _Lookahead:
    # Lines one by one, and a look at the one that comes next.
    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines = iter(lines)
        self._next: deque[bytes] = deque()

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        return self._next.popleft() if self._next else next(self._lines)

    def peek(self) -> bytes:
        if not self._next:
            line = next(self._lines, None)
            if line is None:
                return b""
            self._next.append(line)
        return self._next[0]


class _Current:
    # The message that is being collected.
    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.size = 0
        self.oversized = False
        self.boundary = b""
        self.body_at = -1
        self.length = -1
        # Separators inside a body that Content-Length says goes on: true only if the length is.
        self.doubtful: list[int] = []

    def add(self, line: bytes) -> None:
        self.size += len(line)
        if self.size > MAX_MESSAGE_BYTES:
            self.oversized = True
            return
        self.lines.append(line)
        if self.body_at < 0:
            self._header(line)
        elif self.boundary and line.startswith(b"--" + self.boundary + b"--"):
            self.boundary = b""

    def _header(self, line: bytes) -> None:
        if not line.strip():
            self.body_at = self.size
        elif found := _BOUNDARY.search(line):
            self.boundary = found[1]
        elif line[:15].lower() == b"content-length:":
            digits = line[15:].strip()
            self.length = int(digits) if digits.isdigit() and len(digits) < 10 else -1

    @property
    def in_counted_body(self) -> bool:
        return self.length > 0 and self.body_at >= 0 and self.size < self.body_at + self.length

    def messages(self, *, unescape: bool = False) -> Iterator[RawMessage]:
        """Yield the message; several when its Content-Length was a lie."""
        true = self.body_at >= 0 and 0 <= self.size - self.body_at - self.length <= 2
        cuts = [] if true or self.oversized else self.doubtful
        for start, end in zip([0, *(cut + 1 for cut in cuts)], [*cuts, len(self.lines)], strict=True):
            lines = self.lines[start:end]
            lines = [_unescaped(line) for line in lines] if unescape else lines
            yield RawMessage(data=b"".join(lines), oversized=self.oversized)


def _unescaped(line: bytes) -> bytes:
    return line[1:] if line[:1] == b">" and line.lstrip(b">").startswith(b"From ") else line


def _split_mbox(source: _Lookahead, who: bytes) -> Iterator[RawMessage]:
    # `git format-patch` output has commit ids in its separators and escapes nothing; inside any other mbox such a line
    # is part of a mail that quotes or attaches a patch.
    by_hash = bool(_HASH.fullmatch(who))
    current = _Current()
    previous = b"\n"
    for line in source:
        if line.startswith(b"From ") and _separates(line, source.peek(), previous, current, by_hash=by_hash):
            if not current.in_counted_body:
                yield from current.messages(unescape=not by_hash)
                current = _Current()
            else:
                current.doubtful.append(len(current.lines))
                current.add(line)
        else:
            current.add(line)
        previous = line
    if current.lines:
        yield from current.messages(unescape=not by_hash)


def _envelope(line: bytes) -> re.Match[bytes] | None:
    return _ENVELOPE.fullmatch(line) if len(line) <= _MAX_ENVELOPE else None


def _separates(line: bytes, following: bytes, previous: bytes, current: _Current, *, by_hash: bool) -> bool:
    found = _envelope(line)
    if not found or not (_HEADER.match(following) or following.startswith(b">From ")):
        return False
    if not _HASH.fullmatch(found["who"]):
        return not previous.strip() or following.startswith(b">From ") or bool(_USUAL.match(following))
    if by_hash:
        return not previous.strip() or not current.boundary
    # A file that someone put together from mails and patch files: only after a complete patch.
    tail = [entry.rstrip() for entry in current.lines[-4:] if entry.strip()]
    return not current.boundary and len(tail) > 1 and tail[-2] in (b"--", b"-- ")


def _split_headers(message: RawMessage) -> Iterator[RawMessage]:
    # Messages that were concatenated without separators: a second full header block starts the next one.
    head = message.data[:65536]
    if b"\nMessage-I" not in head and b"\nMessage-i" not in head:
        yield message
        return
    lines = list(split_lines(message.data))
    starts = [0, *_second_headers(lines)]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        yield RawMessage(data=b"".join(lines[start:end]), oversized=message.oversized)


def _second_headers(lines: list[bytes]) -> Iterator[int]:
    boundary = b""
    index = 0
    while index < len(lines):
        line = lines[index]
        if found := _BOUNDARY.search(line):
            boundary = boundary or found[1]
        if boundary and line.startswith(b"--" + boundary + b"--"):
            boundary = b""
        if not boundary and index and _HEADER.match(line) and not _HEADER.match(lines[index - 1]):
            end, names = _header_block(lines, index)
            if {b"from", b"subject", b"message-id"} <= names:
                yield index
            index = end
        index += 1


def _header_block(lines: list[bytes], start: int) -> tuple[int, set[bytes]]:
    names: set[bytes] = set()
    index = start
    while index < len(lines) and index < start + 200:
        line = lines[index]
        if line[:1] not in b" \t":
            if not _HEADER.match(line):
                break
            names.add(line.partition(b":")[0].strip().lower())
        elif not line.strip():
            break
        index += 1
    return index, names
