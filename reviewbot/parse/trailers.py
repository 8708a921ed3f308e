"""Review trailers that came as replies: read, told, and not applied.

In: the mails of a series and the replies of its thread. Out: one line for each trailer, with the patch that it is for.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reviewbot.parse.patch import Mail

_TRAILER = re.compile(
    r"^((?:Reviewed|Acked|Tested|Nacked|Reported|Suggested)-by: [^\n]{3,200})$", re.MULTILINE | re.IGNORECASE
)
_MOST = 100


def trailers(text: str) -> list[str]:
    """Return the lines of the text that are review trailers."""
    return [match[1].strip() for match in _TRAILER.finditer(text)]


def trailer_notes(parts: Sequence[Mail], replies: Mapping[str, Sequence[Mail]]) -> list[str]:
    """Return the trailers that replies give to these very mails; one for the cover letter is for all patches.

    replies maps a message id to the mails that answer it.
    """
    notes: list[str] = []
    for target in parts:
        where = "all patches" if target.kind == "cover" else f"{target.subject.title!r}"
        for reply in replies.get(target.patch.msgid, ()) if target.patch.msgid else ():
            found = trailers(reply.patch.message + "\n" + reply.below)
            notes += [f"{trailer} (for {where}, in a reply; not applied)" for trailer in found]
    return notes[:_MOST]
