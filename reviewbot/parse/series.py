"""Mails to series: which patches belong together, which revision counts, and what is missing.

In: Mails of any threads, in any order. Out: an Assembly: one Series for each piece of work, and each mail that is no
part of a series with its reason. The highest revision wins, then the newest RESEND; never the date of a revision.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from reviewbot.model import Patch, Series
from reviewbot.parse.footers import parse_footers
from reviewbot.parse.posting import Posting, collect, threads
from reviewbot.parse.revisions import clusters
from reviewbot.parse.trailers import trailer_notes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from reviewbot.parse.patch import Mail

MAX_PATCHES = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A mail that is no part of a series, and why."""

    subject: str
    msgid: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    """What a heap of mails holds; series are in the order of their first mail."""

    series: tuple[Series, ...]
    skipped: tuple[Skipped, ...]


def assemble(mails: Iterable[Mail], *, source: str = "", one_series: bool = False) -> Assembly:
    """Return the series that the mails hold.

    one_series says that the input is one series in the order given, whatever the subjects number (a directory of
    patches).
    """
    heap, skipped = _unique(mails)
    patches = [m for m in heap if m.kind in ("patch", "cover")]
    skipped += [_skip(m, m.reason) for m in heap if m.kind in ("text", "skipped", "reply")]
    numbers = dict(zip(map(id, heap), threads(heap), strict=True))
    postings = collect(patches, [numbers[id(m)] for m in patches], one_series=one_series)
    replies: dict[str, list[Mail]] = defaultdict(list)
    for mail in heap:
        if mail.kind == "reply" and mail.parents:
            replies[mail.parents[-1]].append(mail)
    series: list[Series] = []
    parents = {m.patch.msgid: m.parents for m in heap if m.patch.msgid}
    for cluster in clusters(postings, parents):
        built = _series(cluster, replies, source)
        if built is None:
            skipped += [_skip(m, "cover letter without patches") for p in cluster for m in p.mails]
        else:
            series.append(built)
    return Assembly(series=tuple(series), skipped=tuple(skipped))


def _unique(mails: Iterable[Mail]) -> tuple[list[Mail], list[Skipped]]:
    seen: dict[str, Mail] = {}
    heap: list[Mail] = []
    skipped: list[Skipped] = []
    for mail in mails:
        msgid = mail.patch.msgid
        first = seen.get(msgid) if msgid else None
        if first is not None and (first.subject.title, first.patch.diff) == (mail.subject.title, mail.patch.diff):
            skipped.append(_skip(mail, "duplicate"))
            continue
        seen.setdefault(msgid, mail)
        heap.append(mail)
    return heap, skipped


def _skip(mail: Mail, reason: str) -> Skipped:
    return Skipped(subject=mail.subject.title, msgid=mail.patch.msgid, reason=reason)


def _series(cluster: Sequence[Posting], replies: Mapping[str, Sequence[Mail]], source: str) -> Series | None:
    ranked = sorted((p for p in cluster if p.patches), key=lambda p: p.rank, reverse=True)
    if not ranked:
        return None
    chosen = ranked[0]
    notes = _choice_notes(chosen, ranked)
    parts, filled = _filled(chosen, ranked)
    notes += filled
    if len(parts) > MAX_PATCHES:
        notes.append(f"{len(parts)} patches: only the first {MAX_PATCHES} are read (limit MAX_PATCHES)")
        parts = parts[:MAX_PATCHES]
    total = chosen.total or len(parts)
    notes += [f"{_number(m)} is an extra patch" for m in parts if m.subject.number > chosen.total > 0]
    have = {int(m.subject.number) for m in parts}
    missing = tuple(n for n in range(1, min(total, MAX_PATCHES) + 1) if n not in have) if chosen.total else ()
    if total > MAX_PATCHES:
        notes.append(f"{total} parts are numbered: missing ones are named up to {MAX_PATCHES} (limit MAX_PATCHES)")
    cover = chosen.cover or next((p.cover for p in ranked if p.cover and filled), None)
    built = _built(chosen, parts, cover, replies, notes)
    return replace(built, total=total, missing=missing, source=source)


def _choice_notes(chosen: Posting, ranked: Sequence[Posting]) -> list[str]:
    notes = []
    older = sorted({p.revision for p in ranked if p.revision != chosen.revision})
    if older:
        notes.append(f"v{chosen.revision} is reviewed; older revisions left out: {', '.join(f'v{n}' for n in older)}")
    same = [p for p in ranked[1:] if p.revision == chosen.revision]
    if same and chosen.resend and not chosen.complete:
        notes.append(f"sent {len(same) + 1} times, the last time in part: that part is taken from the RESEND")
    elif same and chosen.resend:
        equal = all(p.contents == chosen.contents for p in same)
        notes.append(
            f"sent {len(same) + 1} times: the RESEND is reviewed; "
            f"the contents are {'the same' if equal else 'different'}"
        )
    elif same:
        notes.append(f"v{chosen.revision} was sent {len(same) + 1} times: the newest is reviewed")
    return notes


def _filled(chosen: Posting, ranked: Sequence[Posting]) -> tuple[list[Mail], list[str]]:
    # A partial reroll: only some patches were sent again; the others come from the revision before.
    parts = {m.subject.number for m in chosen.patches}
    if not chosen.total or len(parts) >= chosen.total or not chosen.replies_to_older(ranked):
        return chosen.ordered(), []
    notes = []
    filled = list(chosen.patches)
    for older in ranked:
        if older.total != chosen.total or older is chosen:
            continue
        taken = [m for m in older.patches if m.subject.number not in parts]
        parts |= {m.subject.number for m in taken}
        filled += taken
        if taken:
            numbers = ", ".join(
                f"{m.subject.number}/{chosen.total}" for m in sorted(taken, key=lambda m: m.subject.number)
            )
            same = older.revision == chosen.revision
            notes.append(
                f"{numbers} of v{chosen.revision} came in another mail"
                if same
                else f"partial reroll: v{chosen.revision} lacks {numbers}, taken from v{older.revision}"
            )
    return sorted(filled, key=lambda m: m.subject.number), notes


def _built(
    chosen: Posting,
    parts: Sequence[Mail],
    cover: Mail | None,
    replies: Mapping[str, Sequence[Mail]],
    notes: list[str],
) -> Series:
    first = parts[0]
    texts = [text for m in ([cover] if cover else []) for text in (m.patch.message, m.below)]
    texts += [first.patch.message, first.below]
    footers = parse_footers(texts)
    if footers.odd_base:
        notes.append(f"base-commit: {footers.odd_base} is no commit id")
    lead = cover or first
    notes += [f"cover letter: {note}" for note in (cover.patch.notes if cover else ())]
    notes += _part_notes(parts)
    notes += [f"{m.subject.title!r} is inserted as {_number(m)}" for m in parts if m.subject.number % 1]
    notes += chosen.notes
    notes += trailer_notes([*([cover] if cover else []), *parts], replies)
    if cover is not None and cover.diff.files:
        notes.append("the cover letter holds a diff, which is not applied")
    return Series(
        title=lead.subject.title or first.patch.subject,
        patches=tuple(m.patch for m in parts),
        cover=_without_diff(cover) if cover else None,
        revision=chosen.revision,
        prefixes=tuple(dict.fromkeys(p for m in (lead, *parts) for p in m.subject.prefixes)),
        msgid=lead.patch.msgid,
        author=lead.patch.author,
        date=lead.patch.date,
        base_commit=footers.base_commit,
        change_id=footers.change_id,
        prerequisites=footers.prerequisites,
        lists=tuple(dict.fromkeys(one for m in (lead, *parts) for one in m.lists)),
        notes=tuple(dict.fromkeys(notes)),
    )


def _without_diff(cover: Mail) -> Patch:
    return replace(cover.patch, diff="", files=())


def _number(mail: Mail) -> str:
    return f"{mail.subject.number}/{mail.subject.total}"


def _part_notes(parts: Sequence[Mail]) -> list[str]:
    # Each note once, with the patches it holds for.
    where: dict[str, list[int]] = defaultdict(list)
    for index, mail in enumerate(parts, 1):
        for note in mail.patch.notes:
            where[note].append(index)
    out = []
    for note, numbers in where.items():
        if len(parts) == 1 or len(numbers) == len(parts):
            out.append(note)
        else:
            shown = ", ".join(map(str, numbers[:10])) + (", …" if len(numbers) > 10 else "")
            out.append(f"patch {shown}: {note}")
    return out
