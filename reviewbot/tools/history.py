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
    from collections.abc import Iterator
    from pathlib import Path

MAX_COMMITS = 500
MAX_FILES = 1000
_MOST_BYTES = 4_000_000
# A line of --raw, after the message.
_FILE = re.compile(r"^:[0-7]{6} [0-7]{6} ", re.MULTILINE)
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
    """Return what the last commits of a history hold, without merges and the first commit (a whole tree).

    A commit that changes more than MAX_FILES files (the import of a release) has no patch id here: it is nobody's
    prerequisite, and its diff can be larger than the memory.
    """
    history = History()
    small = []
    walk = ["--min-parents=1", "--max-parents=1", f"--max-count={limit}", "--raw", commit, "--"]
    for oid, text in _commits(repo, walk):
        for found in _LINK.findall(_FILE.split(text, maxsplit=1)[0]):
            history.by_message_id.setdefault(found, oid)
        if len(_FILE.findall(text)) <= MAX_FILES:
            small.append(oid)
    if small:
        ids = "".join(f"{oid}\n" for oid in small).encode()
        for oid, text in _commits(repo, ["-p", "--full-index", "--no-walk=unsorted", "--stdin", "--"], ids):
            _, mark, diff = text.partition("\ndiff --git ")
            if mark and len(diff) < _MOST_BYTES:
                history.by_patch_id.setdefault(patch_id(f"diff --git {diff}"), oid)
    return history


def _commits(repo: Path, words: list[str], stdin: bytes = b"") -> Iterator[tuple[str, str]]:
    form = ["--no-renames", "--no-ext-diff", "--no-textconv", "--format=%x01%H%n%B"]
    data = git_bytes(repo, "log", *form, *words, stdin=[stdin] if stdin else None, timeout_s=120)
    parts = _COMMIT.split(data.decode("utf-8", "replace"))
    return zip(parts[1::2], parts[2::2], strict=True)
