"""Stage prerequisites: what the series says that it needs, found or named as missing.

In: the series, base, and where to look: series given by the user, the other series of the input, an inbox, base itself.
Out: Outcome[Prerequisites]: the series to apply before, in the order of the footers, and the ids that nothing has. A
missing one does not stop anything here: when the series then does not apply, the state is "blocked on prerequisite".
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reviewbot.model import BaseInfo, Outcome, Series, StageResult, Status
from reviewbot.parse.answers import answers
from reviewbot.parse.series import assemble
from reviewbot.tools.history import History, recent
from reviewbot.tools.inboxindex import InboxIndex, opened

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

STAGE = "prerequisites"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prerequisites:
    """series are applied before the series under review; unmet are footers ("patch-id …") that nothing answers."""

    series: tuple[Series, ...] = ()
    unmet: tuple[str, ...] = ()


def resolve(
    repo: Path,
    base: BaseInfo,
    series: Series,
    given: Sequence[Series] = (),
    *,
    pool: Sequence[Series] = (),
    inbox: Path | None = None,
    index: Path | None = None,
) -> Outcome[Prerequisites]:
    """Find the prerequisites of series.

    given come from the user (--prereq): all are applied, asked for or not. pool are other series of the same input.
    inbox is a public-inbox archive. Those that base has already, by patch id or by the Link: of a commit, need nothing.
    """
    started = time.monotonic()
    found: list[Series] = list(given)
    facts: list[tuple[str, str]] = [("given", one.title) for one in given]
    unmet: list[str] = []
    history: History | None = None
    for need in series.prerequisites:
        if any(answers(one, need) for one in found):
            facts.append((need, "among those given"))
        elif match := next((one for one in pool if answers(one, need)), None):
            found.append(match)
            facts.append((need, f"in the input: {match.title}"))
        elif need.startswith("text "):
            facts.append((need, "named in words only: not looked up"))
        else:
            history = history or recent(repo, base.commit)
            if commit := history.commit_for(need):
                facts.append((need, f"in {base.tree} already: {commit[:12]}"))
            elif inbox is not None and (match := _in_inbox(inbox, index, need)):
                found.append(match)
                facts.append((need, f"in the inbox: {match.title}"))
            else:
                unmet.append(need)
                facts.append((need, "not found"))
    value = Prerequisites(series=tuple(found), unmet=tuple(unmet))
    result = StageResult(
        stage=STAGE,
        status=Status.WARN if unmet else Status.PASS,
        summary=_summary(value, len(series.prerequisites)),
        duration_s=time.monotonic() - started,
        facts=tuple(facts),
        required=False,
    )
    return Outcome(result=result, value=value)


def _in_inbox(inbox: Path, index: Path | None, need: str) -> Series | None:
    kind, _, wanted = need.partition(" ")
    with opened(inbox, index) as table:
        for one in _candidates(table, kind, wanted):
            if answers(one, need):
                return one
    return None


def _candidates(table: InboxIndex, kind: str, wanted: str) -> Sequence[Series]:
    if kind == "patch-id":
        # Just these patches: the rest of their series was not asked for.
        return assemble(table.by_patch_id(wanted)[-1:]).series
    ids = [wanted] if kind == "message-id" else table.by_change_id(re.sub(r":v\d+$", "", wanted))
    mails = table.thread(ids) if ids else []
    version = re.search(r":v(\d+)$", wanted)
    if kind == "change-id" and version:
        mails = [m for m in mails if m.subject.revision == int(version[1])]
    if kind == "message-id":
        own = next((m for m in mails if m.patch.msgid == wanted), None)
        mails = [m for m in mails if own is None or m.subject.revision == own.subject.revision]
    return assemble(mails).series


def _summary(value: Prerequisites, asked: int) -> str:
    if value.unmet:
        return f"{len(value.unmet)} of {asked} prerequisites not found: {', '.join(value.unmet[:3])}"
    if not asked and not value.series:
        return "none asked for"
    return f"{len(value.series)} series to apply before, {asked} asked for"
