"""A public-inbox archive, v2: a git repository an epoch, a commit a mail, the mail in the file ``m``; read as a stream.

In: the path of an epoch, or of an inbox with ``git/N.git``. Out: raw mails, oldest first, a bounded number of bytes in memory
at a time. Source: public-inbox-v2-format(5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reviewbot.errors import UsageError
from reviewbot.tools.git import git, git_bytes
from reviewbot.tools.objects import object_sizes, read_objects

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_BATCH_MAILS = 2000
_BATCH_BYTES = 32 * 1024 * 1024
MAX_MAIL_BYTES = 32 * 1024 * 1024


def epochs(path: Path) -> list[Path]:
    """Return the git repositories of an inbox, oldest epoch first. Raises UsageError when there is none."""
    found = sorted((path / "git").glob("[0-9]*.git"), key=lambda p: int(p.stem)) if (path / "git").is_dir() else []
    found = found or [path]
    for one in found:
        if not one.is_dir() or not git(one, "rev-parse", "--git-dir").ok:
            msg = f"--inbox {path}: no public-inbox git repository"
            raise UsageError(msg)
    return found


def raw_mails(path: Path, *, newest: int = 0) -> Iterator[bytes]:
    """Yield the mails of an inbox, oldest first; with newest, only that many of the last ones.

    A mail above MAX_MAIL_BYTES is left out, and so is one that was taken out of the archive.
    """
    for repo in epochs(path):
        limit = [f"--max-count={newest}"] if newest else []
        listing = git_bytes(repo, "rev-list", "--reverse", *limit, "HEAD")
        commits = listing.decode().split()
        for start in range(0, len(commits), _BATCH_MAILS):
            yield from _batch(repo, commits[start : start + _BATCH_MAILS])


def _batch(repo: Path, commits: Sequence[str]) -> Iterator[bytes]:
    names = [f"{commit}:m" for commit in commits]
    group: list[str] = []
    total = 0
    for name, size in zip(names, object_sizes(repo, names), strict=True):
        if size is None or size > MAX_MAIL_BYTES:
            continue
        if group and total + size > _BATCH_BYTES:
            yield from _read(repo, group)
            group, total = [], 0
        group.append(name)
        total += size
    yield from _read(repo, group)


def _read(repo: Path, names: Sequence[str]) -> Iterator[bytes]:
    for one in read_objects(repo, names):
        if one is not None:
            yield one.data
