"""Whether another tree that the user has would be a better base; told, not taken: the tree is the user's choice.

In: the other trees' repositories, and what the series says of its base. Out: one line a tree that fits better.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reviewbot.model import BETTER_BASE
from reviewbot.tools.git import git
from reviewbot.tools.refs import candidates, scored

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def better_trees(
    others: Mapping[str, Path], base_commit: str, blobs: Mapping[str, str], hits: int, sent: int
) -> list[str]:
    """Return a line for each of the trees (name to bare repository) that has base_commit, or more than hits blobs.

    base_commit is empty when the series names none or the tree in use has it. sent is when the mail was sent, in
    seconds since the epoch, 0 when unknown.
    """
    lines = []
    for name, repo in sorted(others.items()):
        if base_commit and _commit(repo, base_commit):
            lines.append(f"{BETTER_BASE}{name}: it has the base-commit; use --tree {name}")
        elif hits < len(blobs) and (head := _commit(repo, "HEAD")):
            best = max(scored(repo, candidates(repo, head, sent), blobs), key=lambda one: one.hits)
            if best.hits > hits:
                share = f"{best.hits} of {len(blobs)} pre-image blobs are in {best.name}, {hits} here"
                lines.append(f"{BETTER_BASE}{name}: {share}; use --tree {name}")
    return lines


def _commit(repo: Path, rev: str) -> str:
    done = git(repo, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{rev}^{{commit}}")
    return done.stdout.strip() if done.ok else ""
