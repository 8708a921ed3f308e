"""One set of numbers sent twice by one person in one thread: two sets, which must not mix.

In: numbered mails and the posting that the subject alone puts each into. Out: for each mail the set inside its posting.
A single patch that was sent again is no set: it replaces the first.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from reviewbot.parse.patch import Mail

# How long one sending may take.
SAME_SENDING_S = 3600


def sittings(mails: Sequence[Mail], keys: Sequence[Hashable]) -> list[int]:
    """Return a set number for each mail: 0 where its posting (keys) has no number twice, or only one."""
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for index, mail in enumerate(mails):
        if mail.subject.numbered:
            groups[keys[index]].append(index)
    found = [0] * len(mails)
    for members in groups.values():
        times = Counter(mails[i].subject.number for i in members if mails[i].kind == "patch")
        if sum(1 for count in times.values() if count > 1) > 1:
            for index, lead in _leads(mails, members).items():
                found[index] = lead + 1
    return found


def _leads(mails: Sequence[Mail], members: Sequence[int]) -> dict[int, int]:
    # The first mail of the sending that each one belongs to: what it answers, if that was sent with it.
    ids = {mails[i].patch.msgid: i for i in members if mails[i].patch.msgid}
    leads: dict[int, int] = {}
    for index in sorted(members, key=lambda i: (mails[i].sent, i)):
        answered = (ids[p] for p in reversed(mails[index].parents) if p in ids and ids[p] != index)
        near = (i for i in answered if i in leads and mails[index].sent - mails[i].sent <= SAME_SENDING_S)
        first = next(near, index)
        leads[index] = leads.get(first, index)
    return _together(mails, leads)


def _together(mails: Sequence[Mail], leads: dict[int, int]) -> dict[int, int]:
    # Mails that answer nothing of their own sending: with the set before, if it lacks their number.
    sets: dict[int, set[float]] = {}
    out: dict[int, int] = {}
    for index, lead in leads.items():
        number = mails[index].subject.number
        alone = lead == index and sets
        last = next(reversed(sets), lead)
        if alone and number not in sets[last] and mails[index].sent - mails[last].sent <= SAME_SENDING_S:
            lead = last  # noqa: PLW2901
        lead = out.get(lead, lead)  # noqa: PLW2901
        out[index] = lead
        sets.setdefault(lead, set()).add(number)
    return out
