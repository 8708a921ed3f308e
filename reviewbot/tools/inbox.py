"""A public-inbox archive, v2: a git repository an epoch, a commit a mail, the mail in the file ``m``; read as a stream.

In: the path of an epoch, or of an inbox with ``git/N.git``, and what to make of a mail. Out: what was made of each
mail, oldest first, on every core, a bounded number of bytes in memory at a time.
Source: public-inbox-v2-format(5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from reviewbot.errors import UsageError
from reviewbot.tools.git import git, git_bytes
from reviewbot.tools.objects import object_facts, read_objects
from reviewbot.workers import cores, in_order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

_BATCH_MAILS = 500
_BATCH_BYTES = 8 * 1024 * 1024
MAX_MAIL_BYTES = 32 * 1024 * 1024

Made = TypeVar("Made")


def epochs(path: Path) -> list[Path]:
    """Return the git repositories of an inbox, oldest epoch first. Raises UsageError when there is none."""
    found = sorted((path / "git").glob("[0-9]*.git"), key=lambda p: int(p.stem)) if (path / "git").is_dir() else []
    found = found or [path]
    for one in found:
        if not one.is_dir() or not git(one, "rev-parse", "--git-dir").ok:
            msg = f"--inbox {path}: no public-inbox git repository"
            raise UsageError(msg)
    return found


def mails_of(
    repo: Path, make: Callable[[bytes], Made], *, newest: int = 0, since: str = ""
) -> Iterator[tuple[str, Made | None]]:
    """Yield the object id of each mail of one epoch, oldest first, and what make makes of its bytes.

    None stands for a mail above MAX_MAIL_BYTES, which is not read; one that was taken out of the archive is not there.
    With newest, only that many of the last ones; since is a commit id after which to begin. make runs in processes
    of its own: what it makes must be something that can be pickled.
    """
    limit = [f"--max-count={newest}"] if newest else []
    span = f"{since}..HEAD" if since and git(repo, "cat-file", "-e", since).ok else "HEAD"
    commits = git_bytes(repo, "rev-list", "--reverse", *limit, span).split()

    def read(start: int) -> list[tuple[str, Made | None]]:
        batch = [f"{commit.decode()}:m" for commit in commits[start : start + _BATCH_MAILS]]
        return [(oid, None if data is None else make(data)) for oid, data in _raw(repo, batch)]

    starts = range(0, len(commits), _BATCH_MAILS)
    for part in in_order(read, starts, processes=min(cores(), len(starts))):
        yield from part


def _raw(repo: Path, names: Sequence[str]) -> Iterator[tuple[str, bytes | None]]:
    group: list[str] = []
    total = 0
    for fact in object_facts(repo, names):
        if fact is None:
            continue
        oid, size = fact
        if size > MAX_MAIL_BYTES:
            yield oid, None
            continue
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
