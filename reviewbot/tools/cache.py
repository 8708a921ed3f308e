"""The cache directory: trees, work trees, build directories and what was built, outside of any checkout.

The root is $REVIEWBOT_CACHE, else $XDG_CACHE_HOME/reviewbot, else ~/.cache/reviewbot. Everything in it can be
deleted at any time when no review runs; it is made again.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reviewbot.errors import InfraError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def default_root() -> Path:
    """Return the cache root that the environment asks for."""
    if own := os.environ.get("REVIEWBOT_CACHE"):
        return Path(own).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "reviewbot"


@dataclass(frozen=True, slots=True)
class Cache:
    """Paths below one cache root; each accessor makes its directory."""

    root: Path

    def dir(self, *parts: str) -> Path:
        """Return root/parts as a directory that exists."""
        path = self.root.joinpath(*parts)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            msg = f"cache directory {path}: {error.strerror}"
            raise InfraError(msg) from error
        return path

    @property
    def trees(self) -> Path:
        """Bare repositories, one a tree: trees/NAME.git with trees/NAME.json beside it."""
        return self.dir("trees")

    @property
    def sources(self) -> Path:
        """Work trees that we build from, one a tree: their path stays the same, so make and ccache stay warm."""
        return self.dir("sources")

    @property
    def builds(self) -> Path:
        """Persistent O= directories, one a (tree, config, compiler)."""
        return self.dir("builds")

    @property
    def artefacts(self) -> Path:
        """Kernel images and what belongs to them, one directory a (commit, config, compiler)."""
        return self.dir("artefacts")

    def prune(self, name: str, days: float) -> None:
        """Remove the entries of root/name that are older than days; one that is in use is young."""
        limit = time.time() - days * 86400
        for entry in self.dir(name).iterdir():
            with contextlib.suppress(OSError):
                if entry.stat().st_mtime < limit:
                    shutil.rmtree(entry, ignore_errors=True)

    @contextlib.contextmanager
    def lock(self, name: str, *, wait: bool = True, on_wait: Callable[[], None] | None = None) -> Iterator[None]:
        """Hold the lock called name; other processes wait, or get UsageError at once when wait is False.

        on_wait is called once before waiting for another process.
        """
        path = self.dir("locks") / f"{name.replace('/', '-')}.lock"
        with path.open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                if not wait:
                    msg = f"{name} is in use by another reviewbot"
                    raise UsageError(msg) from error
                if on_wait is not None:
                    on_wait()
                fcntl.flock(file, fcntl.LOCK_EX)
            yield
