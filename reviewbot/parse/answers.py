"""Whether a series answers a prerequisite footer of another one.

In: a series and a footer as parse_footers gives it ("patch-id …", "message-id …", "change-id …:vN"). Out: yes or no.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reviewbot.parse.patchid import patch_id

if TYPE_CHECKING:
    from reviewbot.model import Series


def answers(series: Series, need: str) -> bool:
    """Tell whether a series is, or holds, what the footer asks for."""
    kind, _, wanted = need.partition(" ")
    if kind == "message-id":
        return wanted in {series.msgid, *(p.msgid for p in series.patches)}
    if kind == "change-id":
        change, _, version = wanted.partition(":v")
        return series.change_id == change and version in ("", str(series.revision))
    return kind == "patch-id" and any(patch_id(p.diff) == wanted for p in series.patches)
