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
from reviewbot.parse.answers import answers, before_own, same_work
from reviewbot.parse.series import assemble
from reviewbot.tools.history import History, recent
from reviewbot.tools.inboxindex import InboxIndex, opened

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

STAGE = "prerequisites"
# Footers that are looked up for one series, those of its prerequisites included.
MAX_NEEDS = 1000


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
    inbox is a public-inbox archive. What a found one needs itself is looked up as well; neither the series itself nor
    another revision of it is ever its prerequisite. Those that base has already, by patch id or by the Link: of a
    commit, need nothing.
    """
    started = time.monotonic()
    search = _Search(repo, base, series, given, pool=pool, inbox=inbox, index=index)
    for need in series.prerequisites:
        search.meet(need)
    value = Prerequisites(series=tuple(search.found), unmet=tuple(search.unmet))
    result = StageResult(
        stage=STAGE,
        status=Status.WARN if value.unmet else Status.PASS,
        summary=_summary(value, len(search.asked)),
        duration_s=time.monotonic() - started,
        facts=tuple(search.facts),
        required=False,
    )
    return Outcome(result=result, value=value)


class _Search:
    # What was found so far, in the order in which it is applied: what a prerequisite needs itself comes before it.
    def __init__(
        self,
        repo: Path,
        base: BaseInfo,
        series: Series,
        given: Sequence[Series],
        *,
        pool: Sequence[Series],
        inbox: Path | None,
        index: Path | None,
    ) -> None:
        self.repo, self.base, self.series = repo, base, series
        self.pool, self.inbox, self.index = pool, inbox, index
        self.found: list[Series] = list(given)
        self.facts: list[tuple[str, str]] = [("given", one.title) for one in given]
        self.unmet: list[str] = []
        self.asked: set[str] = set()
        self.history: History | None = None

    def meet(self, need: str) -> None:
        if need in self.asked:
            return
        if len(self.asked) >= MAX_NEEDS:
            self.unmet.append(need)
            self.facts.append((need, f"not looked up: more than {MAX_NEEDS} (limit MAX_NEEDS)"))
            return
        self.asked.add(need)
        if answers(self.series, need):
            self.facts.append((need, "the series itself"))
        elif any(answers(one, need) for one in self.found):
            self.facts.append((need, "among those given"))
        elif match := next((one for one in self.pool if answers(one, need)), None):
            self._take(need, match, "in the input")
        elif need.startswith("text "):
            self.facts.append((need, "named in words only: not looked up"))
        else:
            self._far(need)

    def _far(self, need: str) -> None:
        self.history = self.history or recent(self.repo, self.base.commit)
        if commit := self.history.commit_for(need):
            self.facts.append((need, f"in {self.base.tree} already: {commit[:12]}"))
        elif self.inbox is not None and (match := _in_inbox(self.inbox, self.index, need)):
            self._take(need, match, "in the inbox")
        else:
            self.unmet.append(need)
            self.facts.append((need, "not found"))

    def _take(self, need: str, match: Series, where: str) -> None:
        if same_work(self.series, match):
            self.facts.append((need, f"{where}: {match.title}: a revision of the series itself, not applied before it"))
            return
        for inner in match.prerequisites:
            self.meet(inner)
        kept = before_own(self.series, match)
        if kept.patches and match not in self.found:
            self.found.append(kept)
        cut = len(match.patches) - len(kept.patches)
        self.facts.append(
            (need, f"{where}: {match.title}" + (f", without its last {cut} patches: the series" * bool(cut)))
        )


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
