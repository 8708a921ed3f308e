"""One raw mail to a Message: headers decoded, the text in one piece, patches that came as attachments.

In: the bytes of one message, without an envelope line. Out: a Message whose text has LF line ends. Accepted: anything;
what is odd becomes a note. MIME is decoded here once, and nowhere else.
"""

from __future__ import annotations

import binascii
import re
from dataclasses import dataclass, field

from reviewbot.parse.charset import decode, decode_words, unbase64

# What anybody here reads; a mail has thirty others that are not worth their decoding.
_READ = frozenset(
    (
        "from",
        "subject",
        "date",
        "message-id",
        "references",
        "in-reply-to",
        "reply-to",
        "x-original-from",
        "x-original-sender",
        "auto-submitted",
        "to",
        "cc",
        "content-type",
        "content-disposition",
        "content-transfer-encoding",
    )
)
# Both go over every header of an archive: each begins with a fixed character, which is searched quickly.
_FIELD = re.compile(
    rb"\n(?=[acdfimrstx])("
    + b"|".join(name.encode() for name in sorted(_READ))
    + rb")[ \t]*:([^\n]*(?:\n[ \t][^\n]*)*)",
    re.IGNORECASE,
)
_ODD_LINE = re.compile(rb"\n(?![!-9;-~]{1,80}[ \t]*:|[ \t]+\S|\Z)")
_HEADER = re.compile(rb"([!-9;-~]{1,80})[ \t]*:[ \t]*(.*)")
_PARAMETER = re.compile(r';\s*([\w*-]+)\s*=\s*("(?:[^"\\]|\\.)*"|[^;\s]*)')
_MAX_DEPTH = 8
_MAX_PARTS = 200
_MAX_VALUE = 65536
# A block of header lines is a mail's only if it holds one of these: "math: gcd: say so" starts a bare description.
_TELLING = frozenset({"from", "subject", "message-id", "date"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One leaf of the MIME tree, its transfer encoding undone; body is bytes in charset."""

    kind: str
    charset: str
    name: str
    attached: bool
    body: bytes
    flowed: bool = False
    delsp: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One mail. headers has lower-case names; text is the first text part; attachments are patches in files.

    has_headers is False for plain text (a bare diff), whose text is the whole input.
    """

    headers: dict[str, str]
    text: str
    attachments: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    has_headers: bool = True
    flowed: bool = False
    delsp: bool = False

    def get(self, name: str) -> str:
        """Return the decoded value of a header, or an empty string."""
        return self.headers.get(name, "")


@dataclass(slots=True)
class _Walk:
    parts: list[Part] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def parse_message(raw: bytes) -> Message:
    """Return the message that raw holds; the first of doubled headers counts."""
    if b"\r\n" in raw[:4096] and _all_crlf(raw):
        raw = raw.replace(b"\r\n", b"\n")
    fields, body = split_headers(raw)
    if not _TELLING & fields.keys():
        text, note = decode(raw)
        return Message(headers={}, text=_lf(text), notes=(note,) if note else (), has_headers=False)
    walk = _Walk()
    _walk(fields, body, walk, 0)
    headers = {name: _header_text(value) for name, value in fields.items() if name in _READ}
    return _assemble(headers, walk)


def split_headers(raw: bytes) -> tuple[dict[str, bytes], bytes]:
    """Return the header fields (lower-case names, unfolded values without NUL) and the body of a message.

    The first of fields with one name counts.
    """
    end = raw.find(b"\n\n")
    if end > 0 and (found := _plain_fields(raw[: end + 1])) is not None:
        return found, raw[end + 2 :]
    return _odd_fields(raw)


def parse_header(raw: bytes) -> tuple[dict[str, str], bytes] | None:
    """Return the decoded header and the body of a message whose header block is in order; None for any other."""
    end = raw.find(b"\n\n")
    fields = _plain_fields(raw[: end + 1]) if end > 0 else None
    if fields is None or b"\r\n" in raw[:4096]:
        return None
    return {name: _header_text(value) for name, value in fields.items()}, raw[end + 2 :]


def _plain_fields(block: bytes) -> dict[str, bytes] | None:
    # The quick way, for a header block in which every line is in order; None for any other.
    lines = b"\n" + block
    if b"\r" in block or block[:1] in b" \t" or _ODD_LINE.search(lines):
        return None
    fields: dict[str, bytes] = {}
    for match in _FIELD.finditer(lines):
        key = match[1].decode("ascii").lower()
        if key not in fields:
            fields[key] = b" ".join(match[2][:_MAX_VALUE].replace(b"\0", b"").split())
    return fields


def _odd_fields(raw: bytes) -> tuple[dict[str, bytes], bytes]:
    fields: dict[str, bytes] = {}
    name = ""
    at = 0
    while at < len(raw):
        end = raw.find(b"\n", at)
        end = len(raw) if end < 0 else end
        line = raw[at:end].rstrip(b"\r").replace(b"\0", b"")
        if not line.strip():
            return fields, raw[end + 1 :]
        if line[:1] in b" \t" and name:
            if len(fields[name]) < _MAX_VALUE:
                fields[name] += b" " + line.strip()
        elif match := _HEADER.fullmatch(line):
            key = match[1].decode("ascii").lower()
            name = key if key not in fields else f"{key}#"
            fields[name] = match[2].strip()
        elif not line.startswith((b">From ", b"From ")):
            return fields, raw[at:]
        at = end + 1
    return fields, b""


def parameters(value: str) -> tuple[str, dict[str, str]]:
    """Split a Content-Type like value into its lower-case main value and its parameters."""
    main = value.partition(";")[0].strip().lower()
    found = {m[1].lower().rstrip("*"): m[2].strip('"') for m in _PARAMETER.finditer(value)}
    return main, found


def _all_crlf(raw: bytes) -> bool:
    # A message that a desktop program saved. A patch to a file with CRLF lines has them in some lines only.
    return raw.count(b"\n") - raw.count(b"\r\n") <= 1


def _header_text(value: bytes) -> str:
    if value.isascii() and b"=?" not in value and b"\0" not in value:
        return " ".join(value.decode("ascii").replace("\r", "").split("\n"))
    text = decode_words(decode(value)[0])
    return " ".join(text.split("\n")).replace("\r", "").replace("\0", "")


def _lf(text: str) -> str:
    return text.replace("\0", "")


def _walk(fields: dict[str, bytes], body: bytes, walk: _Walk, depth: int) -> None:
    kind, options = parameters(_header_text(fields.get("content-type", b"text/plain")))
    disposition, extra = parameters(_header_text(fields.get("content-disposition", b"")))
    boundary = options.get("boundary", "")
    if kind.startswith("multipart/") and boundary and depth < _MAX_DEPTH:
        for part in _split_parts(body, boundary.encode("utf-8", "replace")):
            if len(walk.parts) >= _MAX_PARTS:
                walk.notes.append(f"more than {_MAX_PARTS} MIME parts: the rest is not read")
                return
            inner, inner_body = split_headers(part)
            _walk(inner, inner_body, walk, depth + 1)
        return
    encoding = _header_text(fields.get("content-transfer-encoding", b"")).strip().lower()
    walk.parts.append(
        Part(
            kind=kind or "text/plain",
            charset=options.get("charset", "").replace("\0", ""),
            name=decode_words(extra.get("filename", options.get("name", ""))),
            attached=disposition == "attachment",
            body=_untransfer(body, encoding, walk.notes),
            flowed=options.get("format", "").lower() == "flowed",
            delsp=options.get("delsp", "").lower() == "yes",
        )
    )


def _split_parts(body: bytes, boundary: bytes) -> list[bytes]:
    # The last newline before a boundary belongs to the boundary (RFC 2046, 5.1.1).
    delimiter = re.compile(rb"(?:^|\n)--" + re.escape(boundary) + rb"(--)?[ \t\r]*(?=\n|$)")
    parts: list[bytes] = []
    start = -1
    for match in delimiter.finditer(body):
        if start >= 0:
            parts.append(body[start : match.start() + 1])
        start = match.end() + 1
        if match[1]:
            return parts
    if start >= 0:
        parts.append(body[start:])
    return parts


def _untransfer(body: bytes, encoding: str, notes: list[str]) -> bytes:
    if encoding == "quoted-printable":
        return binascii.a2b_qp(body)
    if encoding == "base64":
        head = body.lstrip()[:400]
        if head and re.search(rb"[^A-Za-z0-9+/=\s]", head):
            notes.append("base64 is claimed, but the body is plain text")
            return body
        return unbase64(body)
    return body


def _assemble(headers: dict[str, str], walk: _Walk) -> Message:
    notes = list(walk.notes)
    texts = [p for p in walk.parts if p.kind.startswith("text/") and p.kind != "text/html" and not _is_file(p)]
    files = [p for p in walk.parts if _is_file(p)]
    if not texts:
        texts = [p for p in walk.parts if p.kind == "text/html"][:1]
        if texts:
            notes.append("the mail has an HTML part only")
    decoded = [_part_text(p, notes) for p in texts]
    attached = tuple(_part_text(p, notes) for p in sorted(files, key=lambda p: p.name))
    first = texts[0] if texts else None
    return Message(
        headers=headers,
        text="\n".join(decoded),
        attachments=attached,
        notes=tuple(dict.fromkeys(notes)),
        flowed=bool(first and first.flowed),
        delsp=bool(first and first.delsp),
    )


def _is_file(part: Part) -> bool:
    # A patch in a file of its own: by type, or by name whatever its type says.
    if part.kind in ("text/x-patch", "text/x-diff", "application/x-patch"):
        return True
    patchy = part.name.lower().endswith((".patch", ".diff"))
    return patchy or (part.attached and part.kind == "text/plain")


def _part_text(part: Part, notes: list[str]) -> str:
    body = part.body
    if b"\r\n" in body and _all_crlf(body):
        body = body.replace(b"\r\n", b"\n")
        notes.append("the body has CRLF line ends: read as LF")
    text, note = decode(body, part.charset)
    if note:
        notes.append(note)
    return _lf(text.removeprefix("\ufeff"))
