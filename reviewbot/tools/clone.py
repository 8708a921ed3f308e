"""Bare clones of git repositories, and their refresh.

In: a URL (https, ssh, git, file) or a path. A local repository is only read: its objects are hard-linked where the file
system allows it, else copied. Refused: a partial clone (its objects are elsewhere), a repository without a commit.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from reviewbot.errors import InfraError, ReviewbotError, UsageError
from reviewbot.tools.git import git, must

if TYPE_CHECKING:
    from collections.abc import Callable

    from reviewbot.run import Completed

    Progress = Callable[[str], None]

_HEAD = "refs/reviewbot/head"
# Remote-tracking branches too: a maintainer's clone often has linux-next or stable only there.
_REFSPECS = (
    "+refs/heads/*:refs/heads/*",
    "+refs/remotes/*:refs/remotes/*",
    "+refs/tags/*:refs/tags/*",
    f"+HEAD:{_HEAD}",
)
_TIMEOUT_S = 4 * 3600.0
_URL = re.compile(r"(https?|ssh|git|file)://.+|[A-Za-z0-9._-]+@[A-Za-z0-9.-]+:.+")
# The source may belong to another user. Only a configuration file reaches the git that reads it (safe.directory in
# git-config(1)).
_ENV = {"GIT_CONFIG_GLOBAL": str(Path(__file__).with_name("safe.gitconfig"))}


def clone(source: str | Path, repo: Path, on_progress: Progress | None = None) -> str:
    """Clone source to the new bare repository repo; return it as records keep it (absolute path, URL without password).

    Raises UsageError when source is no repository, is a partial clone, or has no commit, InfraError when the disk or
    the network fails on the way.
    """
    origin = _origin(str(source))
    _check(origin)
    done = git(
        None,
        "clone", "--bare", "--progress", "--", origin, str(repo),
        env=_ENV, timeout_s=_TIMEOUT_S, on_output=_relay(on_progress),
    )  # fmt: skip
    if not done.ok:
        msg = f"clone of {_shown(origin)}: {_why(done)}"
        raise InfraError(msg)
    fetch(repo, on_progress)
    return _shown(origin)


def fetch(repo: Path, on_progress: Progress | None = None) -> None:
    """Fetch every branch, remote-tracking branch and tag of the repository that repo was cloned from.

    Nothing is pruned: a base that an earlier review used stays. Raises InfraError when the source cannot be read.
    """
    done = git(
        repo,
        "fetch", "--force", "--progress", "--no-write-fetch-head", "origin", *_REFSPECS,
        env=_ENV, timeout_s=_TIMEOUT_S, on_output=_relay(on_progress),
    )  # fmt: skip
    if not done.ok:
        msg = f"fetch of {_shown(must(repo, 'config', 'remote.origin.url'))}: {_why(done)}"
        raise InfraError(msg)


def head(repo: Path) -> str:
    """Return the commit id that the source's HEAD named at the last fetch."""
    return must(repo, "rev-parse", "--verify", f"{_HEAD}^{{commit}}")


def describe(repo: Path) -> str:
    """Return ``git describe`` of that commit (an abbreviated id when no tag leads to it)."""
    return must(repo, "describe", "--tags", "--always", _HEAD)


def _origin(source: str) -> str:
    if _URL.fullmatch(source):
        return source
    path = Path(source).expanduser().absolute()
    if not path.exists():
        msg = f"{source}: neither a directory nor a git URL (https, ssh, git or file)"
        raise UsageError(msg)
    return str(path)


def _check(origin: str) -> None:
    shown = _shown(origin)
    done = git(None, "ls-remote", "--", origin, "HEAD", env=_ENV, timeout_s=120)
    if not done.ok:
        why = _why(done)
        local = not _URL.fullmatch(origin) or "not found" in why or "does not " in why
        kind: type[ReviewbotError] = UsageError if local else InfraError
        msg = f"{shown}: no git repository that can be read ({why})"
        raise kind(msg)
    if not done.stdout.strip():
        msg = f"{shown}: has no commit"
        raise UsageError(msg)
    if not _URL.fullmatch(origin) and git(Path(origin), "config", "--get-regexp", r"^remote\..*\.promisor$").ok:
        msg = f"{shown}: a partial clone lacks objects; give the URL that it was cloned from"
        raise UsageError(msg)


def _shown(origin: str) -> str:
    return re.sub(r"^(\w+://[^/@:]*):[^/@]*@", r"\1@", origin)


def _why(done: Completed) -> str:
    lines = done.stderr.strip().splitlines()
    fatal = [line for line in lines if line.startswith(("fatal:", "error:"))]
    if done.timed_out:
        return f"no end after {done.duration_s:.0f} s"
    return (fatal or lines or [f"exit status {done.exit_status}"])[0]


def _relay(on_progress: Progress | None) -> Callable[[bytes], None] | None:
    # git redraws one line with carriage returns; each chunk's last whole state is news enough.
    if on_progress is None:
        return None
    say = on_progress

    def relay(data: bytes) -> None:
        states = [state.strip() for state in re.split(r"[\r\n]", data.decode("utf-8", "replace")) if state.strip()]
        if states:
            say(states[-1])

    return relay
