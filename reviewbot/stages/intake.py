"""Stage intake: what the user named to one Series.

In: a source in any of the forms that tools.sources reads. Out: Outcome[Series]. Refused with UsageError: a source that
cannot be read, is empty, or holds no patch at all.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from reviewbot.errors import UsageError
from reviewbot.model import Outcome, Series, StageResult, Status
from reviewbot.parse.answers import answers
from reviewbot.parse.light import not_read, read_light
from reviewbot.parse.series import Assembly, Skipped, assemble
from reviewbot.parse.stream import assemblies
from reviewbot.tools.inbox import MAX_MAIL_BYTES, epochs, mails_of
from reviewbot.tools.shelf import Shelf
from reviewbot.tools.sources import is_mailbox, raw_messages, read_source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from reviewbot.parse.patch import Mail

STAGE = "intake"
_MOST_POOL = 100
_TOO_LARGE = f"larger than {MAX_MAIL_BYTES >> 20} MiB (limit MAX_MAIL_BYTES)"


def intake(
    source: str,
    *,
    stdin: bytes | None = None,
    repo: Path | None = None,
    inbox: Path | None = None,
    index: Path | None = None,
) -> Outcome[Series]:
    """Read source and return the one series that it holds.

    source is "-" (then stdin is the whole input), a path, ``BASE..HEAD`` in the bare repository repo, a message id (in
    inbox, a public-inbox, when given; else on lore through b4), or a lore or Patchwork URL. index is the file that
    keeps the inbox's index (in the cache by default).

    The result is SKIP, without a value, when the source is mail but no patch series (a pull request, bot mail, a cover
    letter alone). Raises UsageError for a source that cannot be used, and for one that holds several series.
    """
    return read_series(source, stdin=stdin, repo=repo, inbox=inbox, index=index)[0]


def read_series(
    source: str,
    *,
    stdin: bytes | None = None,
    repo: Path | None = None,
    inbox: Path | None = None,
    index: Path | None = None,
) -> tuple[Outcome[Series], tuple[Series, ...]]:
    """Do what intake() does, and return also the other series of the input that the one under review asks for.

    They are the pool of stages.prerequisites.resolve().
    """
    started = time.monotonic()
    found = read_source(source, stdin=stdin, repo=repo, inbox=inbox, index=index)
    assembly = assemble(found.mails, source=source, one_series=found.one_series)
    assembly, pool = _without_needed(_wanted(assembly, source, by_id=found.by_id))
    if found.notes and len(assembly.series) == 1:
        only = assembly.series[0]
        assembly = replace(assembly, series=(replace(only, notes=(*only.notes, *found.notes)),))
    return _outcome(source, assembly, time.monotonic() - started), pool


def archive(inbox: Path, *, newest: int = 0) -> Iterator[Assembly]:
    """Read a whole archive as a stream of series, in bounded memory: a public-inbox, a maildir, or a file of mails.

    newest limits a public-inbox to its last mails.

    An Assembly holds one series, or mails that were skipped, each with its reason; each mail is in one Assembly. Raises
    UsageError when there is no archive.
    """
    with Shelf() as shelf:
        yield from assemblies(_all_mails(inbox, newest), shelf)


def _all_mails(inbox: Path, newest: int) -> Iterator[Mail]:
    if is_mailbox(inbox):
        for raw in raw_messages(inbox):
            yield from read_light(raw.data, oversized=raw.oversized)
        return
    for repo in epochs(inbox):
        for oid, mails in mails_of(repo, read_light, newest=newest):
            yield from (not_read(oid, _TOO_LARGE),) if mails is None else mails


def _without_needed(assembly: Assembly) -> tuple[Assembly, tuple[Series, ...]]:
    # The series that another one of the input asks for are not under review.
    if len(assembly.series) < 2 or len(assembly.series) > _MOST_POOL:
        return assembly, ()
    needs = [(one, need) for one in assembly.series for need in one.prerequisites]
    needed = tuple(s for s in assembly.series if any(one is not s and answers(s, need) for one, need in needs))
    left = tuple(s for s in assembly.series if s not in needed)
    return (replace(assembly, series=left), needed) if len(left) == 1 else (assembly, ())


def _wanted(assembly: Assembly, source: str, *, by_id: bool) -> Assembly:
    # A thread may hold more than one series: the one that was asked for by its id counts. An id that no series holds
    # (a reply's) chooses none.
    if not by_id or len(assembly.series) < 2:
        return assembly
    own = [s for s in assembly.series if any(one and one in source for one in (s.msgid, *(p.msgid for p in s.patches)))]
    return replace(assembly, series=tuple(own or assembly.series))


def _outcome(source: str, assembly: Assembly, duration_s: float) -> Outcome[Series]:
    facts = tuple((f"left out: {s.reason}", s.subject or s.msgid) for s in assembly.skipped[:50])
    if len(assembly.series) > 1:
        shown = "; ".join(s.title for s in assembly.series[:5])
        msg = f"{source}: {len(assembly.series)} different series ({shown}): give one of them"
        raise UsageError(msg)
    if not assembly.series:
        return Outcome(result=_nothing(source, assembly.skipped, facts, duration_s))
    series = assembly.series[0]
    result = StageResult(
        stage=STAGE,
        status=Status.PASS,
        summary=_summary(series),
        duration_s=duration_s,
        facts=(*_facts(series), *facts),
    )
    return Outcome(result=result, value=series)


def _nothing(
    source: str, skipped: tuple[Skipped, ...], facts: tuple[tuple[str, str], ...], duration_s: float
) -> StageResult:
    if all(s.reason == "no patch" for s in skipped):
        msg = f"{source}: no patch in it"
        raise UsageError(msg)
    reasons = ", ".join(dict.fromkeys(s.reason for s in skipped))
    summary = f"no patch series: {reasons}"
    return StageResult(stage=STAGE, status=Status.SKIP, summary=summary, duration_s=duration_s, facts=facts)


def _summary(series: Series) -> str:
    count = len(series.patches)
    words = [f"{count} patch{'es' * (count != 1)}", f"v{series.revision}"]
    if series.missing:
        words.append(f"incomplete: {series.missing_ranges} of {series.total} missing")
    return ", ".join(words)


def _facts(series: Series) -> list[tuple[str, str]]:
    facts = [("title", series.title), ("author", series.author or "none"), ("revision", f"v{series.revision}")]
    facts.append(("patches", f"{len(series.patches)} of {series.total}"))
    optional = (
        ("prefixes", " ".join(series.prefixes)),
        ("base-commit", series.base_commit),
        ("change-id", series.change_id),
        ("prerequisites", ", ".join(series.prerequisites)),
    )
    facts += [(name, value) for name, value in optional if value]
    return facts + [("note", note) for note in series.notes]
