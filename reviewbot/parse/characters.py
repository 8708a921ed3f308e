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
_CONTROLS = bytes([*range(9), 11, *range(14, 32), 127])


def odd_characters(texts: Mapping[str, str]) -> list[str]:
    """Return what a reader of the texts (by name) should know of their characters."""
    notes = []
    for name, text in texts.items():
        data = text.encode("utf-8", "surrogatepass")
        if len(data.translate(None, _CONTROLS)) < len(data):
            notes.append(f"control characters in the {name}")
        if not text.isascii() and _BIDI.search(text):
            notes.append(f"characters that change the writing direction in the {name}")
        if not text.isascii() and _HIDDEN.search(text):
            notes.append(f"invisible characters in the {name}")
    return notes
