"""A From header to one author, ``Name <address>``; nothing raises, and no name is re-encoded."""

from __future__ import annotations

import re

_ANGLE = re.compile(r"^(?P<name>.*)<\s*(?P<address>[^<>\s@]+@[^<>\s]+)\s*>")
_BARE = re.compile(r"^\s*(?P<address>[^\s<>@]+@[^\s<>@,]+)\s*(?:\((?P<name>[^()]*)\))?\s*$")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def parse_author(value: str) -> str:
    """Return ``Name <address>``, ``Name`` when there is no address, or ""; the name holds no angle brackets."""
    value = _CONTROL.sub("", value).strip()[:500]
    if match := _ANGLE.match(value):
        name = _name(match["name"]) or match["address"].partition("@")[0]
        return f"{name} <{match['address']}>"
    if match := _BARE.match(value):
        name = _name(match["name"] or "") or match["address"].partition("@")[0]
        return f"{name} <{match['address']}>"
    return _name(value)


def split_author(author: str) -> tuple[str, str]:
    """Return name and address of what parse_author gave; the address is empty when there was none."""
    name, angle, rest = author.rpartition(" <")
    return (name, rest.rstrip(">")) if angle else (author, "")


def _name(text: str) -> str:
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] == '"':
        text = text[1:-1].replace('\\"', '"').replace("\\\\", "\\")
    return " ".join(re.sub(r"[<>\"]", "", text).split())
