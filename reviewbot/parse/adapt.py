"""A diff as text to the bytes that fit the files it is for: line ends and the encoding of the files decide.

In: the diff, its files, and the files' bytes today. Out: the bytes for git, and a note on each change. A mail loses or
adds carriage returns on its way, and its text may have been converted: what the tree has is right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reviewbot.parse.diff import FileDiff, ParsedDiff


def adapt(diff: ParsedDiff, contents: Mapping[str, bytes]) -> tuple[bytes, tuple[str, ...]]:
    """Return the diff as bytes for these file contents (path to bytes), and notes on what was changed."""
    lines = diff.text.split("\n")
    notes: list[str] = []
    encoded = [line.encode("utf-8", "surrogateescape") for line in lines]
    for file in diff.files:
        data = contents.get(file.old or file.new)
        if data is None or not file.hunks:
            continue
        spots = [h.line + i for h in file.hunks for i in range(len(h.lines))]
        notes += _line_ends(file, data, spots, encoded)
        notes += _encoding(file, data, spots, lines, encoded)
    return b"\n".join(encoded), tuple(dict.fromkeys(notes))


def _line_ends(file: FileDiff, data: bytes, spots: list[int], encoded: list[bytes]) -> list[str]:
    old = [i for i in spots if encoded[i][:1] in (b" ", b"-", b"") and encoded[i] != b""]
    with_cr = sum(1 for i in old if encoded[i].endswith(b"\r"))
    crlf_file = data.count(b"\r\n") * 2 > data.count(b"\n") > 0
    if crlf_file and old and not with_cr:
        for i in spots:
            if encoded[i][:1] in (b" ", b"-", b"+"):
                encoded[i] += b"\r"
        return [f"{file.path} has CRLF line ends that the mail lost: put back"]
    if not crlf_file and with_cr and with_cr == len(old) and b"\r" not in data:
        for i in spots:
            encoded[i] = encoded[i].removesuffix(b"\r")
        return [f"{file.path} has LF line ends, the patch has CRLF: read as LF"]
    return []


def _encoding(file: FileDiff, data: bytes, spots: list[int], lines: list[str], encoded: list[bytes]) -> list[str]:
    # The mail's text became UTF-8 here, but the file is in latin-1: known by its bytes.
    changed = False
    for i in spots:
        text = lines[i]
        if text.isascii() or not text.strip():
            continue
        body = encoded[i][1:].rstrip(b"\r")
        try:
            raw = text.encode("latin-1")
        except UnicodeEncodeError:
            continue
        if text[:1] != "+" and body not in data and raw[1:].rstrip(b"\r") in data:
            changed = True
            encoded[i] = raw
    return [f"{file.path} is not UTF-8: the patch is applied in latin-1"] if changed else []
