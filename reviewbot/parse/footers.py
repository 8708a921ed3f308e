"""Footers of a patch or cover letter: base-commit, change-id and prerequisites, each on a line of its own.

In: text. Out: a Footers. Source: git-format-patch(1) (BASE TREE INFORMATION) and b4's documentation (`b4 prep`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

# A commit id, or the name of a release, which a maintainer may have as a tag.
_BASE = re.compile(r"^base-commit:[ \t]*([0-9a-f]{7,64}|v\d{1,2}\.\d{1,3}[\w.-]{0,30}|next-\d{8})[ \t]*$", re.MULTILINE)
_BASE_ODD = re.compile(r"^base-commit:[ \t]*(\S[^\n]{0,80})$", re.MULTILINE)
_CHANGE = re.compile(r"^change-id:[ \t]*([\w.+-]{3,200})[ \t]*$", re.MULTILINE)
_PATCH_ID = re.compile(r"^prerequisite-patch-id:[ \t]*([0-9a-f]{40,64})[ \t]*$", re.MULTILINE)
_MESSAGE_ID = re.compile(r"^prerequisite-message-id:[ \t]*<?([^\s<>]{3,300})>?[ \t]*$", re.MULTILINE)
_CHANGE_ID = re.compile(r"^prerequisite-change-id:[ \t]*([\w.+-]{3,200}(?::v\d{1,4})?)[ \t]*$", re.MULTILINE)
_DEPENDS = re.compile(r"^(?:depends-on|based-on|prerequisite):[ \t]*(\S[^\n]{0,300})$", re.MULTILINE | re.IGNORECASE)
_LINK = re.compile(
    r"https?://(?:lore\.kernel\.org|patch\.msgid\.link|lkml\.kernel\.org)/(?:r/|[\w.-]+/)?([^\s/<>]+@[^\s/<>]+)"
)
_ID = re.compile(r"<([^\s<>]+@[^\s<>]+)>|\b([^\s<>/]+@[^\s<>/,]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Footers:
    """What the footers say. prerequisites are "patch-id HEX", "message-id ID", "change-id ID:vN" or "text WORDS"."""

    base_commit: str = ""
    odd_base: str = ""
    change_id: str = ""
    prerequisites: tuple[str, ...] = ()


def parse_footers(texts: Iterable[str]) -> Footers:
    """Return the footers of the texts (cover letter first, then patch 1); the first base-commit and change-id count."""
    base = odd = change = ""
    needs: list[str] = []
    for text in texts:
        if not base and (found := _BASE.search(text)):
            base = found[1]
        if not odd and (found := _BASE_ODD.search(text)):
            odd = found[1].strip()
        if not change and (found := _CHANGE.search(text)):
            change = found[1]
        needs += [f"patch-id {m[1]}" for m in _PATCH_ID.finditer(text)]
        needs += [f"message-id {m[1]}" for m in _MESSAGE_ID.finditer(text)]
        needs += [f"change-id {m[1]}" for m in _CHANGE_ID.finditer(text)]
        needs += [need for m in _DEPENDS.finditer(text) if (need := _need(m[1].strip()))]
    return Footers(
        base_commit=base,
        odd_base="" if base else odd,
        change_id=change,
        prerequisites=tuple(dict.fromkeys(needs)),
    )


def _need(words: str) -> str:
    if found := _LINK.search(words):
        return f"message-id {found[1]}"
    if found := _ID.search(words):
        return f"message-id {found[1] or found[2]}"
    return f"text {words}"
