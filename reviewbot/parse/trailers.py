"""Review trailers that came as replies: read, told, and not applied.

In: the mails of a series and the replies of its thread. Out: one line for each trailer, with the patch that it is for.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reviewbot.parse.patch import Mail

_TRAILER = re.compile(
    r"^((?:Reviewed|Acked|Tested|Nacked|Reported|Suggested)-by: [^\n]{3,200})$", re.MULTILINE | re.IGNORECASE
)
_MOST = 100


def trailer_notes(parts: Sequence[Mail], replies: Sequence[Mail]) -> list[str]:
    """Return the trailers that replies give to these very mails; one for the cover letter is for all patches."""
    own = {m.patch.msgid: m for m in parts if m.patch.msgid}
    notes: list[str] = []
    for reply in replies:
        target = own.get(reply.parents[-1]) if reply.parents else None
        if target is None:
            continue
        where = "all patches" if target.kind == "cover" else f"{target.subject.title!r}"
        text = reply.patch.message + "\n" + reply.below
        notes += [f"{m[1].strip()} (for {where}, in a reply; not applied)" for m in _TRAILER.finditer(text)]
    return notes[:_MOST]
