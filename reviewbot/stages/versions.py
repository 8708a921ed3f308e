"""Two revisions of a series compared: patch by patch, and with git range-diff where both apply.

In: two Series, and a tree when there is one. Out: Outcome[VersionDiff].
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reviewbot.model import BaseInfo, Outcome, Series, StageResult, Status
from reviewbot.parse.versions import PatchChange, compare_versions
from reviewbot.tools.applier import Applier, steps_of
from reviewbot.tools.git import git
from reviewbot.tools.patching import make_commits
from reviewbot.tools.refusal import refusal

if TYPE_CHECKING:
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
) -> Outcome[VersionDiff]:
    """Compare two revisions. With repo, bases (of old and of new) and scratch, git range-diff is added."""
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
        ),
        excerpt=text[:20_000],
    )
    return Outcome(result=result, value=VersionDiff(changes=changes, range_diff=text))


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
