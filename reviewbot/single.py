"""Steps of a review that a user may want alone: read a series, generate its selftests, compare two revisions.

In: a Request, or sources as the user named them. Out: what the stage gives; nothing is built, booted or reported.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from reviewbot.errors import UsageError
from reviewbot.model import ApplyState
from reviewbot.stages.apply import apply
from reviewbot.stages.base import choose_base
from reviewbot.stages.intake import intake, read_series
from reviewbot.stages.versions import diff_versions
from reviewbot.tools.scope import write_selftests
from reviewbot.tools.specs import read_specs
from reviewbot.tools.tree import Tree, get_tree

if TYPE_CHECKING:
    from pathlib import Path

    from reviewbot.model import ApplyResult, Outcome, Report, Series, StageResult
    from reviewbot.request import Request
    from reviewbot.tools.cache import Cache


def read_request(request: Request, tree: Tree) -> tuple[Outcome[Series], tuple[Series, ...]]:
    """Run the intake on what the request names; return also the series in it that the one under review asks for."""
    return read_series(request.source, stdin=request.stdin, repo=tree.repo, inbox=request.inbox)


def read_prerequisite(path: str) -> Series:
    """Return the series in a file of --prereq, or UsageError."""
    outcome = intake(path)
    if outcome.value is None:
        msg = f"{path}: {outcome.result.summary}"
        raise UsageError(msg)
    return outcome.value


def applied_series(request: Request, cache: Cache, scratch: Path) -> tuple[Tree, Series, ApplyResult]:
    """Return the tree, the series and the commits where it stands.

    A series that the tree has already stands on base, which is then its tip too. Raises UsageError when it does not
    apply.
    """
    tree = get_tree(cache, request.tree)
    outcome, _ = read_request(request, tree)
    if outcome.value is None:
        msg = f"{request.source}: {outcome.result.summary}"
        raise UsageError(msg)
    series, prerequisites = outcome.value, [read_prerequisite(path) for path in request.prerequisites]
    base = choose_base(tree.repo, tree.name, series, rev=request.base, describe=tree.describe).value
    if base is None:
        msg = f"--tree {tree.name}: has no commit to apply to"
        raise UsageError(msg)
    done = apply(tree.repo, base, series, prerequisites, scratch=scratch, log=scratch / "apply.log")
    applied = done.value
    if applied is not None and applied.state is ApplyState.ALREADY_MERGED:
        applied = replace(applied, base_commit=base.commit, prerequisite_commit=base.commit, tip_commit=base.commit)
    if applied is None or not applied.tip_commit:
        msg = f"{request.source}: {done.result.summary}"
        raise UsageError(msg)
    return tree, series, applied


def generate_selftests(request: Request, cache: Cache) -> tuple[str, ...]:
    """Write the kselftest directory for the request's series into request.out; return the names of its programs.

    Raises UsageError when the series does not apply, or has nothing to do with perf sample types.
    """
    if request.out is None:
        msg = "no directory to write the selftests into"
        raise UsageError(msg)
    tree, series, applied = applied_series(request, cache, cache.dir("scratch", f"generate-{os.getpid()}"))
    return write_selftests(
        tree.repo, applied, series, request.out, specs=read_specs(request.specs), every=request.every
    )


def compare_revisions(
    old: str,
    new: str,
    cache: Cache,
    *,
    tree: str = "",
    base: str = "",
    reports: tuple[Report, Report] | None = None,
) -> StageResult:
    """Compare two revisions of a series, given as sources; with a tree, git range-diff is part of the answer.

    With the reports of a run of each, the answer says which findings are addressed. Raises UsageError for a source
    that holds no series.
    """
    both = [read_prerequisite(source) for source in (old, new)]
    if not tree:
        return diff_versions(*both, reports=reports).result
    known = get_tree(cache, tree)
    bases = [choose_base(known.repo, known.name, s, rev=base, describe=known.describe).value for s in both]
    if bases[0] is None or bases[1] is None:
        return diff_versions(*both, reports=reports).result
    scratch = cache.dir("scratch", f"versions-{os.getpid()}")
    return diff_versions(*both, repo=known.repo, bases=(bases[0], bases[1]), scratch=scratch, reports=reports).result
