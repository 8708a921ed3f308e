"""Postings to pieces of work: which of them are revisions of one another.

In: Postings. Out: clusters. Two belong together by a change-id, by the title in one thread or from one sender, by
shared patch titles, or because the later one answers the earlier one and carries a higher number.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from reviewbot.parse.posting import Posting, plain, same_person, sender
from reviewbot.parse.union import Union

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence


_MOST_PARENTS = 500
_CHANGE_ID = re.compile(r"^change-id:[ \t]*([\w.+-]{3,200})[ \t]*$", re.MULTILINE)


def clusters(postings: Sequence[Posting], parents: Mapping[str, Sequence[str]]) -> list[list[Posting]]:
    """Return the postings that are revisions of one another, together.

    parents maps a message id to the ids that its References name, for every mail of the threads, replies too.
    """
    groups = Union(len(postings))
    names: dict[Hashable, int] = {}
    for index, posting in enumerate(postings):
        for name in _names(posting):
            if name in names:
                if not _rivals(postings[names[name]], posting):
                    groups.join(names[name], index)
            else:
                names[name] = index
    earlier: dict[int, list[int]] = defaultdict(list)
    for index, posting in enumerate(postings):
        _join_shared(index, postings, earlier[posting.thread], groups)
        earlier[posting.thread].append(index)
    _join_answers(postings, parents, groups)
    return _together(postings, groups)


def _together(postings: Sequence[Posting], groups: Union) -> list[list[Posting]]:
    table: dict[int, list[Posting]] = defaultdict(list)
    for index, posting in enumerate(postings):
        table[groups.root(index)].append(posting)
    return list(table.values())


def _rivals(one: Posting, two: Posting) -> bool:
    # Two people's sendings of one revision: neither replaces the other, whatever their titles say.
    return one.revision == two.revision and not same_person(one.mails[0], two.mails[0])


def _names(posting: Posting) -> Iterable[Hashable]:
    # What two revisions of one piece of work share: a change-id, or the title in one thread or from one sender.
    for mail in posting.mails[:2]:
        if found := _CHANGE_ID.search(mail.patch.message + "\n" + mail.below):
            yield ("change", found[1])
    lead = posting.cover or (posting.ordered()[0] if posting.patches else None)
    if lead is not None:
        title = plain(lead.subject.title)
        yield ("title", sender(lead), title, lead.kind)
        yield ("thread", posting.thread, title)


def _join_shared(index: int, postings: Sequence[Posting], earlier: Sequence[int], groups: Union) -> None:
    posting = postings[index]
    titles = {plain(m.subject.title) for m in posting.patches}
    for other_index in earlier:
        other = postings[other_index]
        if (other.revision, other.resend) == (posting.revision, posting.resend) or not same_person(
            other.mails[0], posting.mails[0]
        ):
            continue
        shared = titles & {plain(m.subject.title) for m in other.patches}
        if shared and (len(shared) * 2 >= min(len(titles), len(other.patches)) or posting.total == other.total):
            groups.join(other_index, index)


def _join_answers(postings: Sequence[Posting], parents: Mapping[str, Sequence[str]], groups: Union) -> None:
    # A higher revision that answers a lower one of the same sender is its revision, whatever its title says now.
    where = {m.patch.msgid: index for index, p in enumerate(postings) for m in p.mails if m.patch.msgid}
    members: dict[int, set[int]] = defaultdict(set)
    for index, posting in enumerate(postings):
        members[groups.root(index)].add(posting.revision)
    for index, posting in enumerate(postings):
        own = members[groups.root(index)]
        if posting.revision == 1 or min(own) < posting.revision:
            continue
        other = _answered(posting, postings, where, parents)
        # Two patches of one revision in a thread (1/2 and 2/2, each sent again alone) are both its revision.
        if other is not None and (posting.total or posting.revision not in members[groups.root(other)]):
            together = own | members[groups.root(other)]
            groups.join(other, index)
            members[groups.root(index)] = together


def _answered(
    posting: Posting,
    postings: Sequence[Posting],
    where: Mapping[str, int],
    parents: Mapping[str, Sequence[str]],
) -> int | None:
    # The nearest older revision among what the mail answers, through replies that lie between.
    lead = posting.mails[0]
    seen: set[str] = set()
    ahead = list(lead.parents)
    while ahead and len(seen) < _MOST_PARENTS:
        parent = ahead.pop()
        if parent in seen:
            continue
        seen.add(parent)
        other = where.get(parent)
        if other is not None and postings[other].revision < posting.revision:
            return other if same_person(postings[other].mails[0], lead) else None
        ahead += parents.get(parent, ())
    return None
