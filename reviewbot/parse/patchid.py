"""The stable patch id of a diff, as `git patch-id --stable` computes it, without starting git for each of many mails.

In: a diff. Out: 40 hex digits, or "" for a diff without files. The id is a sum of one hash a file over the text without
white space, hunk headers and index lines; ``prerequisite-patch-id`` footers hold it. Source: builtin/patch-id.c of git.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from reviewbot.parse.diff import ParsedDiff, parse_diff

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reviewbot.parse.diff import FileDiff

_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_BLANK = re.compile(r"\s+")


def patch_id(diff: str) -> str:
    """Return the stable patch id of a diff, or "" when it has no file."""
    parsed = parse_diff(diff) if diff else ParsedDiff()
    if not parsed.files:
        return ""
    text = parsed.text if "diff --git " in diff else "".join(_as_git(file) for file in parsed.files)
    total = bytearray(20)
    for part in _parts(text):
        _add(total, hashlib.sha1(part.encode("utf-8", "surrogateescape"), usedforsecurity=False).digest())
    return total.hex()


def _parts(text: str) -> Iterator[str]:
    # What is hashed, file by file: a file without hunks is hashed together with the one that follows.
    part: list[str] = []
    binary = hunks = False
    blobs = ["", ""]
    left = [0, 0]
    for line in text.split("\n"):
        inside = left[0] > 0 or left[1] > 0
        if not inside and line.startswith("diff "):
            if hunks:
                yield "".join(part)
                part = []
            binary = hunks = False
        elif line.startswith("\\ ") or binary:
            continue
        elif not inside and line.startswith("index "):
            blobs = line[6:].partition(" ")[0].split("..") if ".." in line else blobs
            continue
        elif not inside and line.startswith(("GIT binary patch", "Binary files")):
            binary = True
            yield "".join([*part, *blobs])
            part = []
            continue
        elif not inside and (found := _HUNK.match(line)):
            left = [int(found[1] or 1), int(found[2] or 1)]
            hunks = True
            continue
        elif inside:
            left[0] -= line[:1] in ("-", " ", "")
            left[1] -= line[:1] in ("+", " ", "")
        part.append(_BLANK.sub("", line))
    yield "".join(part)


def _as_git(file: FileDiff) -> str:
    # A quilt or plain diff as git would show it, so that it has the id of the same change in git's form.
    old, new = file.old or file.new, file.new or file.old
    names = f"--- {'a/' + file.old if file.old else '/dev/null'}\n+++ {'b/' + file.new if file.new else '/dev/null'}\n"
    hunks = "".join("\n".join([hunk.header, *hunk.lines, ""]) for hunk in file.hunks)
    return f"diff --git a/{old} b/{new}\n{names}{hunks}"


def _add(total: bytearray, digest: bytes) -> None:
    # The hashes are added byte by byte, with carry, first byte first.
    carry = 0
    for index in range(20):
        carry += total[index] + digest[index]
        total[index] = carry & 0xFF
        carry >>= 8
