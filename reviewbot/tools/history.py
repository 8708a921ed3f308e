"""What a commit's recent history holds: patch ids and the message ids that Link: trailers name.

In: a repository and a commit. Out: a History. Read in one go from `git log`, newest first, at most MAX_COMMITS commits.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from reviewbot.parse.patchid import patch_id
from reviewbot.tools.git import git_bytes

if TYPE_CHECKING:
    from pathlib import Path

MAX_COMMITS = 500
_COMMIT = re.compile(r"^\x01([0-9a-f]{40,64})\n", re.MULTILINE)
_LINK = re.compile(r"https?://[\w.]+/(?:r/|[\w.-]+/)?([^\s/<>]+@[^\s/<>]+)")


@dataclass(slots=True)
class History:
    """Patch id to commit, and message id to commit."""

    by_patch_id: dict[str, str] = field(default_factory=dict)
    by_message_id: dict[str, str] = field(default_factory=dict)

    def commit_for(self, need: str) -> str:
        """Return the commit that answers a footer ("patch-id …", "message-id …"), or an empty string."""
        kind, _, wanted = need.partition(" ")
        table = {"patch-id": self.by_patch_id, "message-id": self.by_message_id}.get(kind, {})
        return table.get(wanted, "")


def recent(repo: Path, commit: str, *, limit: int = MAX_COMMITS) -> History:
    """Return what the last commits of a history hold, without merges and the first commit (a whole tree)."""
    words = [
        "log",
        "-p",
        "--min-parents=1",
        "--max-parents=1",
        f"--max-count={limit}",
        "--full-index",
        "--no-renames",
        "--format=%x01%H%n%B",
    ]
    data = git_bytes(repo, *words, "--no-ext-diff", "--no-textconv", commit, "--", timeout_s=120)
    parts = _COMMIT.split(data.decode("utf-8", "replace"))
    history = History()
    for oid, text in zip(parts[1::2], parts[2::2], strict=True):
        head, mark, diff = text.partition("\ndiff --git ")
        for found in _LINK.findall(head):
            history.by_message_id.setdefault(found, oid)
        # A commit of many megabytes (an import of a whole tree) is nobody's prerequisite.
        if mark and len(diff) < 4_000_000:
            history.by_patch_id.setdefault(patch_id(f"diff --git {diff}"), oid)
    return history
