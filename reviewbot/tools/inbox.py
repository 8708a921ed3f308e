"""A public-inbox archive, v2: a git repository an epoch, a commit a mail, the mail in the file ``m``; read as a stream.

In: the path of an epoch, or of an inbox with ``git/N.git``. Out: raw mails, oldest first, a bounded number of bytes in
memory at a time. Source: public-inbox-v2-format(5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reviewbot.errors import UsageError
from reviewbot.tools.git import git, git_bytes
from reviewbot.tools.objects import object_facts, read_objects

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
    """Yield the mails of an inbox, oldest first; with newest, only that many of the last ones of each epoch.

    A mail above MAX_MAIL_BYTES is left out, and so is one that was taken out of the archive.
    """
    for repo in epochs(path):
        for _, data in raw_mails_of(repo, newest=newest):
            yield data


def raw_mails_of(repo: Path, *, newest: int = 0, since: str = "") -> Iterator[tuple[str, bytes]]:
    """Yield object id and bytes of the mails of one epoch; since is a commit id after which to begin."""
    limit = [f"--max-count={newest}"] if newest else []
    span = f"{since}..HEAD" if since and git(repo, "cat-file", "-e", since).ok else "HEAD"
    commits = git_bytes(repo, "rev-list", "--reverse", *limit, span).decode().split()
    for start in range(0, len(commits), _BATCH_MAILS):
        yield from _batch(repo, commits[start : start + _BATCH_MAILS])


def _batch(repo: Path, commits: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    names = [f"{commit}:m" for commit in commits]
    group: list[str] = []
    total = 0
    for fact in object_facts(repo, names):
        if fact is None or fact[1] > MAX_MAIL_BYTES:
            continue
        oid, size = fact
        if group and total + size > _BATCH_BYTES:
            yield from _read(repo, group)
            group, total = [], 0
        group.append(oid)
        total += size
    yield from _read(repo, group)


def _read(repo: Path, oids: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    for one in read_objects(repo, oids):
        if one is not None:
            yield one.oid, one.data
