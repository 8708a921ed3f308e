"""Two revisions of a series compared: patch by patch, and with git range-diff where both apply.

In: two Series, a tree when there is one, and the reports of earlier runs. Out: Outcome[VersionDiff].
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reviewbot.model import BaseInfo, Outcome, Report, Series, StageResult, Status, VerdictKind
from reviewbot.parse.versions import PatchChange, addressed, compare_versions, troubles
from reviewbot.tools.applier import Applier, steps_of
from reviewbot.tools.git import git
from reviewbot.tools.patching import make_commits
from reviewbot.tools.refusal import refusal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

STAGE = "diff-versions"
_RANGE_DIFF_S = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionDiff:
    """changes is the comparison patch by patch; range_diff is git's own, empty when one of the two does not apply."""

    changes: tuple[PatchChange, ...]
    range_diff: str = ""


def diff_versions(
    old: Series,
    new: Series,
    *,
    repo: Path | None = None,
    bases: tuple[BaseInfo, BaseInfo] | None = None,
    scratch: Path | None = None,
    reports: tuple[Report, Report] | None = None,
) -> Outcome[VersionDiff]:
    """Compare two revisions. With repo, bases (of old and of new) and scratch, git range-diff is added.

    With reports (of runs of old and of new), the facts say which earlier findings are addressed.
    """
    started = time.monotonic()
    changes = compare_versions(old, new)
    text, why = "", "no tree was given"
    if repo is not None and bases is not None and scratch is not None:
        text, why = _range_diff(repo, (old, new), bases, scratch)
    counts = Counter(change.kind for change in changes)
    words = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
    result = StageResult(
        stage=STAGE,
        status=Status.PASS,
        summary=f"v{old.revision} to v{new.revision}: {words or 'no patches'}",
        duration_s=time.monotonic() - started,
        facts=(
            *((f"{c.old or '-'} → {c.new or '-'}", f"{c.kind}: {c.subject}") for c in changes),
            *((("range-diff", f"left out: {why}"),) if not text else ()),
            *(_findings(*reports) if reports else ()),
        ),
        excerpt=text[:20_000],
    )
    return Outcome(result=result, value=VersionDiff(changes=changes, range_diff=text))


def _findings(old: Report, new: Report) -> Iterator[tuple[str, str]]:
    found = addressed(troubles(old), troubles(new))
    # What was not looked at is not addressed.
    answered = new.run.finished and new.verdict is not VerdictKind.INCONCLUSIVE
    gone = "addressed" if answered else f"not seen again, in a run without an answer ({new.verdict})"
    for word, findings in ((gone, found.gone), ("still there", found.still), ("new finding", found.fresh)):
        yield from ((word, f"{f.title} ({f.file})" if f.file else f.title) for f in findings)


def _range_diff(
    repo: Path,
    both: tuple[Series, Series],
    bases: tuple[BaseInfo, BaseInfo],
    scratch: Path,
) -> tuple[str, str]:
    scratch.mkdir(parents=True, exist_ok=True)
    spans = []
    for series, base in zip(both, bases, strict=True):
        tip = _tip(repo, series, base, scratch)
        if not tip:
            return "", f"v{series.revision} does not apply to {base.describe}"
        spans.append(f"{base.commit}..{tip}")
    done = git(repo, "range-diff", "--no-color", "--no-ext-diff", *spans, timeout_s=_RANGE_DIFF_S)
    return (done.stdout, "") if done.ok else ("", "git range-diff failed")


def _tip(repo: Path, series: Series, base: BaseInfo, scratch: Path) -> str:
    steps = steps_of(series)
    if refusal(repo, base.commit, series, steps):
        return ""
    applier = Applier(repo, base.commit, steps, scratch=scratch)
    for step in steps:
        tried = applier.take(step)
        if not (tried.applied or tried.already):
            return ""
    ids = make_commits(repo, base.commit, applier.commits())
    return ids[-1] if ids else ""
