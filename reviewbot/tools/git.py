"""Typed calls of the git program.

Every call runs with hooks, attributes files of the user, signing, autocrlf and the user's identity switched off, so
that the same input gives the same commits on every machine (git-config(1)).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reviewbot.errors import InfraError
from reviewbot.run import Completed, run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

IDENTITY = ("reviewbot", "reviewbot@localhost")
_CONFIG = {
    "core.hooksPath": "/dev/null",
    "core.attributesFile": "/dev/null",
    "core.autocrlf": "false",
    "core.quotePath": "false",
    "core.fsmonitor": "false",
    "commit.gpgSign": "false",
    "am.threeWay": "false",
    "advice.mergeConflict": "false",
    "submodule.recurse": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "safe.directory": "*",
    "protocol.ext.allow": "never",
    "user.name": IDENTITY[0],
    "user.email": IDENTITY[1],
}
_ENV = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_TERMINAL_PROMPT": "0"}


def git(
    repo: Path | None,
    *args: str,
    timeout_s: float = 300,
    log: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: Path | Iterable[bytes] | None = None,
    on_output: Callable[[bytes], None] | None = None,
) -> Completed:
    """Run git in repo (a work tree or a bare repository) and return how it ended; a failure is data."""
    options = [word for key, value in _CONFIG.items() for word in ("-c", f"{key}={value}")]
    where = ["-C", str(repo)] if repo is not None else []
    return run(
        ["git", *where, *options, *args],
        timeout_s=timeout_s,
        log=log,
        env={**_ENV, **(env or {})},
        stdin=stdin,
        on_output=on_output,
    )


def must(repo: Path | None, *args: str, timeout_s: float = 300, env: Mapping[str, str] | None = None) -> str:
    """Run git where only a broken machine or repository can make it fail; return stdout without the last newline.

    Raises InfraError with git's own first error line.
    """
    done = git(repo, *args, timeout_s=timeout_s, env=env)
    if not done.ok:
        first = (done.stderr.strip().splitlines() or [f"exit status {done.exit_status}"])[0]
        msg = f"git {args[0]}: {first}"
        raise InfraError(msg)
    return done.stdout.rstrip("\n")


def git_bytes(
    repo: Path | None,
    *args: str,
    timeout_s: float = 300,
    env: Mapping[str, str] | None = None,
    stdin: Path | Iterable[bytes] | None = None,
) -> bytes:
    """Run git where only a broken machine or repository can make it fail; return all of its output, unbounded.

    Raises InfraError with git's own first error line.
    """
    chunks: list[bytes] = []
    done = git(repo, *args, timeout_s=timeout_s, env=env, stdin=stdin, on_output=chunks.append)
    if not done.ok:
        first = (done.stderr.strip().splitlines() or [f"exit status {done.exit_status}"])[0]
        msg = f"git {args[0]}: {first}"
        raise InfraError(msg)
    return b"".join(chunks)
