"""Whether a series answers a prerequisite footer of another one.

In: a series and a footer as parse_footers gives it ("patch-id …", "message-id …", "change-id …:vN"). Out: yes or no.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reviewbot.parse.patchid import patch_id
from reviewbot.parse.posting import plain

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


def same_work(one: Series, other: Series) -> bool:
    """Tell whether two series are revisions of one piece of work: by change-id, or by author, title and numbers."""
    if one.change_id and one.change_id == other.change_id:
        return True
    return (one.author, plain(one.title), one.total) == (other.author, plain(other.title), other.total)


def before_own(series: Series, other: Series) -> Series:
    """Return other up to the first patch that series has too: a larger series that holds it is needed only so far."""
    ids = {patch_id(p.diff) for p in series.patches}
    msgids = {p.msgid for p in series.patches if p.msgid}
    for index, patch in enumerate(other.patches):
        if patch.msgid in msgids or patch_id(patch.diff) in ids:
            return replace(other, patches=other.patches[:index])
    return other
