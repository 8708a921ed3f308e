"""Characters that make text look like something else: terminal escapes, and controls of the writing direction.

In: named texts. Out: one line for each kind that is there. They are told, never removed: the texts stay as they came.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_BIDI = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_HIDDEN = re.compile("[\u200b-\u200d\u2060\ufeff\u00ad]")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f]")


def odd_characters(texts: Mapping[str, str]) -> list[str]:
    """Return what a reader of the texts (by name) should know of their characters."""
    notes = []
    for name, text in texts.items():
        if text.isascii() and text.isprintable():
            continue
        if _CONTROL.search(text):
            notes.append(f"control characters in the {name}")
        if not text.isascii() and _BIDI.search(text):
            notes.append(f"characters that change the writing direction in the {name}")
        if not text.isascii() and _HIDDEN.search(text):
            notes.append(f"invisible characters in the {name}")
    return notes
