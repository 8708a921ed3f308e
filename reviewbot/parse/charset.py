"""Bytes of a mail to text: charsets that lie, do not exist or break off, and RFC 2047 words.

In: bytes and the charset that a header claims. Out: text and, when the claim was not true, one line that says so.
Nothing raises: UTF-8 comes next, and latin-1, which takes every byte, last.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import re

# Only charsets that mails use: Python also knows codecs that are slow on hostile input or are no charsets at all.
_USED = re.compile(
    r"(utf-?(7|8|16(le|be)?)|iso-?8859-?\d+|latin-?\d+|windows-?\d+|cp-?\d+|koi8-?[rut]|gb\d+|gbk|hz|big5(-?hkscs)?|"
    r"euc-?(jp|kr|cn|tw)|shift[-_]?jis|iso-?2022-?(jp|kr)(-\d+)?|ks_?c_?5601.*|tis-?620|mac-?\w+)"
)
_PLAIN = frozenset({"", "us-ascii", "ascii", "ansi_x3.4-1968", "utf-8", "utf8", "unknown-8bit", "8bit", "x-unknown"})
# Senders say gb2312 and mean its supersets.
_WIDER = {"gb2312": "gb18030", "gbk": "gb18030", "gb_2312-80": "gb18030", "iso-8859-1": "windows-1252"}
_ONE_BYTE = re.compile(r"iso-?8859|latin|windows|cp|koi8")
_WIDE = re.compile(r"utf-?16|gb|big5|euc|shift|ks_?c")
_LATIN_WORD = re.compile("[A-Za-z][\u00c0-\u024f]|[\u00c0-\u024f][A-Za-z]")
_WORD = re.compile(r"=\?([^?\s]{1,40})\?([bBqQ])\?([^?]*)\?=")
_GLUE = re.compile(r"(\?=)\s+(?==\?[^?\s]{1,40}\?[bBqQ]\?)")


def decode(data: bytes, charset: str = "") -> tuple[str, str]:
    """Return the text of data, and a note when it is not in the charset that was claimed (else an empty string)."""
    if data.isascii() and not charset.lower().startswith(("iso-2022", "utf-7", "hz", "utf-16", "utf16")):
        return data.decode("ascii"), "" if _known(charset) else f"charset {charset[:40]!r} does not exist"
    name = charset.replace("\0", "").strip().strip("\"'").lower()
    utf8 = _strict(data, "utf-8")
    if name in _PLAIN:
        return (utf8, "") if utf8 is not None else (_by_line(data), "some bytes are not UTF-8: read as latin-1")
    if not _known(name):
        text = utf8 if utf8 is not None else _by_line(data)
        return text, f"charset {name[:40]!r} does not exist: read as {'UTF-8' if utf8 is not None else 'latin-1'}"
    if utf8 is not None and (_ONE_BYTE.match(name) or (_WIDE.match(name) and _likely_utf8(name, utf8))):
        return utf8, f"charset {name} is claimed, but the bytes are UTF-8"
    claimed = _strict(data, _WIDER.get(name, name))
    if claimed is not None:
        return claimed, ""
    return (utf8 if utf8 is not None else _by_line(data)), f"the bytes are not {name}"


def decode_words(value: str) -> str:
    """Return a header's text with its RFC 2047 encoded words decoded; what is no valid word stays as it is.

    Words that follow each other are joined as bytes first, since senders split characters across words.
    """
    if "=?" not in value:
        return value
    out: list[str] = []
    pending: list[tuple[str, bytes]] = []
    last = 0
    joined = _GLUE.sub(r"\1", value)
    for match in _WORD.finditer(joined):
        between = joined[last : match.start()]
        if between:
            out += [_words(pending), between]
            pending = []
        charset = match[1].partition("*")[0].lower()
        data = _word_bytes(match[2].lower(), match[3])
        if pending and pending[-1][0] == charset:
            pending[-1] = (charset, pending[-1][1] + data)
        else:
            pending.append((charset, data))
        last = match.end()
    out += [_words(pending), joined[last:]]
    return "".join(out)


def _words(pending: list[tuple[str, bytes]]) -> str:
    return "".join(decode(data, charset)[0] for charset, data in pending)


def _word_bytes(kind: str, text: str) -> bytes:
    if kind == "q":
        return binascii.a2b_qp(text.replace(" ", "_").encode("utf-8", "replace"), header=True)
    return unbase64(text.encode("utf-8", "replace"))


def unbase64(data: bytes) -> bytes:
    """Return what base64 data holds; characters that do not belong are passed over, a cut-off end is dropped."""
    clean = re.sub(rb"[^A-Za-z0-9+/]", b"", data)
    clean = clean[: len(clean) - 1] if len(clean) % 4 == 1 else clean
    try:
        return base64.b64decode(clean + b"=" * (-len(clean) % 4))
    except (binascii.Error, ValueError):
        return b""


def _likely_utf8(name: str, text: str) -> bool:
    # Text that is UTF-8 by its form, where another charset was claimed. A letter or two of an Asian one may look so.
    if name.startswith("utf"):
        return "\0" not in text
    other = [c for c in text if not c.isascii()]
    return len(other) >= 3 or any(c > "\u07ff" for c in other) or bool(_LATIN_WORD.search(text))


def _known(name: str) -> bool:
    name = name.strip().strip("\"'").lower()
    if name in _PLAIN:
        return True
    if not _USED.fullmatch(name):
        return False
    try:
        codecs.lookup(name)
    except (LookupError, ValueError):
        return False
    return True


def _strict(data: bytes, name: str) -> str | None:
    try:
        text = data.decode(name)
        text.encode("utf-8")
        return text
    except (UnicodeError, LookupError, ValueError):
        return None


def _by_line(data: bytes) -> str:
    # One bad line must not turn the good ones into mojibake.
    lines = (_strict(line, "utf-8") or line.decode("latin-1") for line in data.split(b"\n"))
    return "\n".join(lines)
