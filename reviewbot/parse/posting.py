"""Patch mails to postings: one sending of one revision.

In: the patch and cover mails of any threads. Out: Postings.
Threads are followed through References; mails without ids are one thread of their own (files on disk).
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from reviewbot.parse.address import split_author
from reviewbot.parse.sittings import SAME_SENDING_S, sittings
from reviewbot.parse.union import Union

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from reviewbot.parse.patch import Mail


@dataclass(slots=True, kw_only=True)
class Posting:
    """One sending of one revision; total is 0 when the subjects have no numbers."""

    revision: int
    total: int
    resend: bool
    thread: int
    order: int
    cover: Mail | None = None
    patches: list[Mail] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    keep_order: bool = False

    @property
    def mails(self) -> list[Mail]:
        """Cover letter and patches."""
        return [*([self.cover] if self.cover else []), *self.patches]

    @property
    def sent(self) -> float:
        """When its last mail was sent, in seconds since the epoch."""
        return max((m.sent for m in self.mails), default=0)

    @property
    def rank(self) -> tuple[int, bool, float, int]:
        """What decides among postings of one piece of work; the greatest is reviewed."""
        return (self.revision, self.resend, self.sent, self.order)

    @property
    def contents(self) -> tuple[str, ...]:
        """The diffs, in order: equal for a resend that changes nothing."""
        return tuple(m.patch.diff for m in self.ordered())

    @property
    def complete(self) -> bool:
        """True when every numbered patch is there."""
        return len({m.subject.number for m in self.patches}) >= self.total

    def ordered(self) -> list[Mail]:
        """Return the patches in the order in which they are applied."""
        return list(self.patches) if self.keep_order else sorted(self.patches, key=lambda m: m.subject.number)

    def replies_to_older(self, others: Sequence[Posting]) -> bool:
        """Tell whether it was sent into the thread of an older revision, as some new patches for it or sent again.

        A revision with a cover letter of its own was sent whole: what it lacks was lost on the way.
        """
        own = (self.revision, self.resend)
        return self.cover is None and any(p.thread == self.thread and (p.revision, p.resend) < own for p in others)


def collect(mails: Sequence[Mail], groups: Sequence[int], *, one_series: bool = False) -> list[Posting]:
    """Return the postings that patch and cover mails make up, in the order of their first mail.

    groups has the thread number of each mail (see threads()).
    """
    one_series = one_series and not _sent_again(mails)
    if one_series or (mails and not any(m.patch.msgid for m in mails) and _plain_run(mails)):
        return _single(mails)
    covers = _covers(mails, groups)
    contested = _contested(mails, groups, covers)
    keys = [_key(mail, group, covers) for mail, group in zip(mails, groups, strict=True)]
    keys = [(key, sender(mail)) if key in contested else key for key, mail in zip(keys, mails, strict=True)]
    table: dict[Hashable, Posting] = {}
    for order, (mail, key, sitting) in enumerate(zip(mails, keys, sittings(mails, keys), strict=True)):
        key = (key, sitting)  # noqa: PLW2901
        posting = table.get(key)
        if posting is None:
            posting = Posting(
                revision=mail.subject.revision,
                total=mail.subject.total,
                resend=mail.subject.resend,
                thread=groups[order],
                order=order,
            )
            table[key] = posting
        _add(posting, mail)
    return _joined_unnumbered(_joined_covers(_joined(list(table.values()))))


def _plain_run(mails: Sequence[Mail]) -> bool:
    # Output of `git format-patch -N` or quilt: no numbers, no ids, one order.
    return not any(m.subject.numbered for m in mails)


def _sent_again(mails: Sequence[Mail]) -> bool:
    # A directory with two revisions of one patch (0001-… and v2-0001-…): not one series in this order.
    seen: dict[Hashable, int] = {}
    for mail in mails:
        name = mail.subject.number if mail.subject.numbered or mail.kind == "cover" else plain(mail.subject.title)
        if mail.kind in ("patch", "cover") and seen.setdefault(name, mail.subject.revision) != mail.subject.revision:
            return True
    return False


def _single(mails: Sequence[Mail]) -> list[Posting]:
    if not mails:
        return []
    patches = [m for m in mails if m.kind == "patch"]
    numbers = [m.subject.number for m in patches]
    numbered = all(m.subject.numbered for m in patches) and len(set(numbers)) == len(numbers)
    total = max((m.subject.total for m in patches), default=0) if numbered else 0
    posting = Posting(
        revision=max(m.subject.revision for m in mails),
        total=total,
        resend=False,
        thread=0,
        order=0,
        cover=next((m for m in mails if m.kind == "cover"), None),
        patches=patches,
        keep_order=not numbered,
    )
    return [posting]


def _key(mail: Mail, thread: int, covers: dict[Hashable, set[str]]) -> Hashable:
    subject = mail.subject
    if not subject.numbered:
        return (thread, subject.revision, 0, subject.resend, sender(mail), plain(subject.title))
    key = (thread, subject.revision, subject.total, subject.resend)
    ids = covers.get(key, set())
    if len(ids) < 2:
        return key
    # Two series with the same numbers in one thread: each patch belongs to the cover letter that it answers.
    own = mail.patch.msgid if mail.kind == "cover" else next((p for p in reversed(mail.parents) if p in ids), "")
    return (*key, own)


def _contested(mails: Sequence[Mail], groups: Sequence[int], covers: dict[Hashable, set[str]]) -> set[Hashable]:
    # Postings for which two people sent a patch of the same number: a counter-proposal is no part of the series.
    first: dict[Hashable, Mail] = {}
    found: set[Hashable] = set()
    for mail, group in zip(mails, groups, strict=True):
        if not mail.subject.numbered or mail.kind != "patch":
            continue
        key = _key(mail, group, covers)
        other = first.setdefault((key, mail.subject.number), mail)
        if not same_person(other, mail) and other.patch.diff != mail.patch.diff:
            found.add(key)
    return found


def _covers(mails: Sequence[Mail], numbers: Sequence[int]) -> dict[Hashable, set[str]]:
    found: dict[Hashable, set[str]] = defaultdict(set)
    for mail, thread in zip(mails, numbers, strict=True):
        if mail.kind == "cover":
            key = (thread, mail.subject.revision, mail.subject.total, mail.subject.resend)
            found[key].add(mail.patch.msgid)
    return found


def _add(posting: Posting, mail: Mail) -> None:
    if mail.kind == "cover":
        posting.cover = posting.cover or mail
        return
    same = next((m for m in posting.patches if m.subject.number == mail.subject.number), None)
    if same is None:
        posting.patches.append(mail)
        return
    label = f"{mail.subject.number}/{mail.subject.total}" if mail.subject.numbered else mail.subject.title
    if same.patch.diff == mail.patch.diff:
        posting.notes.append(f"{label} came twice with the same content")
        return
    after = [n + 1 for n, m in enumerate(posting.patches) if _builds_on(mail, m)]
    before = [n for n, m in enumerate(posting.patches) if _builds_on(m, mail)]
    if places := after or before:
        posting.patches.insert(places[0], mail)
        posting.notes.append(f"{label} came twice: one is a change on top of the other, and applied after it")
        return
    newer = max(same, mail, key=lambda m: m.sent)
    posting.patches[posting.patches.index(same)] = newer
    posting.notes.append(f"{label} came twice with different content: the newer one is taken")


def _builds_on(mail: Mail, other: Mail) -> bool:
    # A fix for a patch that stands: it begins with a file as the other one of this number leaves it. Seven letters tell
    # one blob from another.
    if mail.subject.number != other.subject.number:
        return False
    made = {f.new: f.new_blob for f in other.diff.files}
    ids = ((f.old_blob, made.get(f.old, "")) for f in mail.diff.files if f.old)
    return any(min(len(one), len(two)) >= 7 and (one.startswith(two) or two.startswith(one)) for one, two in ids)


def _joined(postings: list[Posting]) -> list[Posting]:
    # Numbered patches that were sent without threading: same sender, revision and total, within an hour.
    loose: dict[Hashable, Posting] = {}
    out: list[Posting] = []
    for posting in postings:
        if not posting.total or posting.complete:
            out.append(posting)
            continue
        lead = posting.mails[0]
        key = (sender(lead), posting.revision, posting.total, posting.resend)
        other = loose.get(key)
        if other and abs(other.mails[-1].sent - lead.sent) <= SAME_SENDING_S and _disjoint(other, posting):
            for mail in posting.mails:
                _add(other, mail)
            continue
        loose[key] = posting
        out.append(posting)
    return out


def _joined_covers(postings: list[Posting]) -> list[Posting]:
    # One sending whose patches carry versions of their own: all answer one cover letter, at once, with other numbers.
    by_cover = {p.cover.patch.msgid: p for p in postings if p.cover and p.cover.patch.msgid and p.total}
    out: list[Posting] = []
    for posting in postings:
        parents = {m.parents[-1] for m in posting.patches if m.parents}
        target = by_cover.get(next(iter(parents))) if len(parents) == 1 and not posting.cover else None
        if target is None or not _one_sending(target, posting):
            out.append(posting)
            continue
        for mail in posting.patches:
            _add(target, mail)
        target.notes.append(f"patches of one sending say v{target.revision} and v{posting.revision}")
        target.revision = max(target.revision, posting.revision)
    return out


def _joined_unnumbered(postings: list[Posting]) -> list[Posting]:
    # A series whose subjects have no numbers: all patches answer one mail, and came at once from one sender.
    siblings: dict[Hashable, Posting] = {}
    out: list[Posting] = []
    for posting in postings:
        lead = posting.mails[0]
        if posting.total or len(posting.mails) > 1 or not lead.parents:
            out.append(posting)
            continue
        key = (sender(lead), posting.revision, posting.resend, lead.parents[-1])
        first = siblings.setdefault(key, posting)
        if first is posting or lead.sent - first.sent > SAME_SENDING_S or not lead.sent:
            siblings[key] = posting
            out.append(posting)
            continue
        first.patches.append(lead)
        first.keep_order = True
        first.notes = ["the patches have no numbers: they are taken in the order in which they were sent"]
    for posting in siblings.values():
        posting.patches.sort(key=lambda m: m.sent)
    return out


def _one_sending(target: Posting, posting: Posting) -> bool:
    near = abs(target.mails[0].sent - posting.mails[0].sent) <= SAME_SENDING_S
    same = target.total == posting.total and sender(target.mails[0]) == sender(posting.mails[0])
    return near and same and target is not posting and _disjoint(target, posting)


def _disjoint(one: Posting, two: Posting) -> bool:
    return not {m.subject.number for m in one.mails} & {m.subject.number for m in two.mails}


def sender(mail: Mail) -> str:
    """Return who sent a mail: the address in lower case, or the name when there is none."""
    name, address = split_author(mail.sender)
    return (address or name).lower()


def same_person(one: Mail, two: Mail) -> bool:
    """Tell whether two mails have one sender: by the address, or by the name."""
    return sender(one) == sender(two) or split_author(one.sender)[0] == split_author(two.sender)[0]


def plain(title: str) -> str:
    """Return a title without what differs between revisions: case and punctuation."""
    return re.sub(r"\W+", " ", title.lower()).strip()


def threads(mails: Sequence[Mail]) -> list[int]:
    """Return a thread number for each mail: the same for mails that References or In-Reply-To connect."""
    groups = Union(len(mails))
    known: dict[str, int] = {}
    local = -1
    for index, mail in enumerate(mails):
        ids = [*mail.parents, *([mail.patch.msgid] if mail.patch.msgid else [])]
        if not ids:
            if local >= 0:
                groups.join(local, index)
            local = index if local < 0 else local
        for one in ids:
            if one in known:
                groups.join(known[one], index)
            else:
                known[one] = index
    return [groups.root(i) for i in range(len(mails))]
