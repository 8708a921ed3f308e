"""Stage base: which commit the series is tested on, and why.

In: a bare repository, the tree's name, and the series. Out: Outcome[BaseInfo]. Refused with UsageError: a --base
revision that the tree does not have.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from reviewbot.errors import InfraError, UsageError
from reviewbot.model import BaseInfo, Outcome, Series, StageResult, Status
from reviewbot.tools.git import git, must

if TYPE_CHECKING:
    from pathlib import Path

STAGE = "base"
# What the source's HEAD named at the last refresh of the tree; a tarball's tree has HEAD alone.
_TREE_HEAD = "refs/reviewbot/head"


def choose_base(repo: Path, tree: str, series: Series, *, rev: str = "", describe: str = "") -> Outcome[BaseInfo]:
    """Return the commit of repo (trees/NAME.git, its name is tree) that the series is tested on.

    rev is what the user asked for with --base. describe is the tree's own name for its HEAD (a Debian version), used
    where git describe knows nothing. Raises UsageError for an unknown rev.
    """
    started = time.monotonic()
    chosen = _choose(repo, tree, series, rev)
    info = BaseInfo(
        tree=tree,
        commit=chosen[0],
        describe=_describe(repo, chosen[0], describe),
        chosen_by=chosen[1],
        candidates=chosen[2],
        verified=_has_history(repo, chosen[0]),
    )
    result = StageResult(
        stage=STAGE,
        status=Status.PASS,
        summary=f"{tree} {info.describe}: {info.chosen_by}",
        duration_s=time.monotonic() - started,
        facts=(
            ("tree", tree),
            ("commit", info.commit),
            ("version", info.describe),
            *(("candidate", c) for c in info.candidates),
        ),
    )
    return Outcome(result=result, value=info)


def _choose(repo: Path, tree: str, series: Series, rev: str) -> tuple[str, str, tuple[str, ...]]:
    if rev:
        commit = resolve(repo, rev)
        if not commit:
            msg = f"--base {rev}: no such revision in the tree {tree}"
            raise UsageError(msg)
        return commit, f"--base {rev}", ()
    head = resolve(repo, _TREE_HEAD) or resolve(repo, "HEAD")
    if not head:
        msg = f"tree {tree}: the repository has no HEAD commit"
        raise InfraError(msg)
    if series.base_commit:
        commit = resolve(repo, series.base_commit)
        if commit:
            return commit, "base-commit of the series", ()
        lost = f"base-commit {series.base_commit}: unknown in {tree}, tested on {tree} instead"
        return head, f"HEAD of {tree}", (lost,)
    return head, f"HEAD of {tree}", ("no base-commit in the series",)


def resolve(repo: Path, rev: str) -> str:
    """Return the commit id of a revision, or an empty string."""
    done = git(repo, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{rev}^{{commit}}")
    return done.stdout.strip() if done.ok else ""


def _has_history(repo: Path, commit: str) -> bool:
    return bool(must(repo, "rev-list", "--max-count=1", "--parents", commit).partition(" ")[2])


def _describe(repo: Path, commit: str, given: str) -> str:
    if given and commit in (resolve(repo, _TREE_HEAD), resolve(repo, "HEAD")):
        return given
    done = git(repo, "describe", "--tags", "--always", "--abbrev=12", commit, timeout_s=60)
    return done.stdout.strip() or commit[:12]
