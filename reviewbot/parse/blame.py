"""Which commit a line came from, as ``git blame --porcelain`` tells.

In: its output. Out: line numbers of the file, 1-based, to full commit ids. Accepted is what git-blame(1) describes
under THE PORCELAIN FORMAT; anything else is left out.
"""

from __future__ import annotations

import re

_ENTRY = re.compile(r"^(?P<commit>[0-9a-f]{40,64}) \d+ (?P<line>\d+)(?: \d+)?$", re.MULTILINE)


def parse_blame(text: str) -> dict[int, str]:
    """Return the commit of each line."""
    return {int(match["line"]): match["commit"] for match in _ENTRY.finditer(text)}
