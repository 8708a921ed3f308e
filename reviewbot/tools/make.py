"""Typed calls of the kernel's make: configure, build, install headers.

Every call sets what makes a build reproducible (Documentation/kbuild/reproducible-builds.rst) and, where ccache is
installed, compiles through it in depend mode (its default mode preprocesses each file twice).
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reviewbot.errors import InfraError
from reviewbot.run import Completed, find, run, shown

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# CCACHE_DEPEND is not set, and what was kept with it is not taken: without the preprocessor ccache does not see the
# .incbin of piggy.S, and gives the kernel of another commit whose compressed image has the same size.
_CCACHE_NAMESPACE = "preprocessed"
_REPRODUCIBLE = ("KBUILD_BUILD_TIMESTAMP=@0", "KBUILD_BUILD_USER=reviewbot", "KBUILD_BUILD_HOST=reviewbot")
BUILD_TIMEOUT_S = 4 * 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiler:
    """The C compiler and linker of a build; key is a short hash of both versions, for cache paths."""

    path: str
    version: str
    linker: str
    ccache: str

    @property
    def key(self) -> str:
        """Eight hex digits that change when another compiler or linker would give another kernel."""
        return hashlib.sha256(f"{self.version}\n{self.linker}".encode()).hexdigest()[:8]


def compiler() -> Compiler:
    """Return the machine's gcc and ld. Raises InfraError when there is none."""
    path = find("gcc")
    if path is None:
        msg = "gcc: not installed"
        raise InfraError(msg)
    first = [run([name, "--version"], timeout_s=30).stdout.split("\n", 1)[0] for name in (path, "ld")]
    return Compiler(path="gcc", version=first[0], linker=first[1], ccache=find("ccache") or "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Make:
    """A source directory, the O= directory that it is built into, and the compiler.

    cc_flags follow the compiler in CC and extra are make variables, both of a build profile. log gets the
    commands and their output.
    """

    source: Path
    build: Path
    compiler: Compiler
    ccache_dir: Path
    log: Path
    extra: tuple[str, ...] = ()
    cc_flags: str = ""

    def __call__(
        self, *targets: str, timeout_s: float = BUILD_TIMEOUT_S, on_output: Callable[[bytes], None] | None = None
    ) -> Completed:
        """Run make for the targets with one job a CPU; a failing build is data."""
        return run(self._argv(targets), timeout_s=timeout_s, log=self.log, env=self._env(), on_output=on_output)

    def command(self, *targets: str) -> str:
        """Return the call for the targets as a line that can be pasted."""
        return shown(self._argv(targets), env=self._env())

    def _argv(self, targets: tuple[str, ...]) -> list[str]:
        words = ("ccache" if self.compiler.ccache else "", self.compiler.path, self.cc_flags)
        cc = "CC=" + " ".join(w for w in words if w)
        where = ["make", f"-j{jobs()}", "-C", str(self.source), f"O={self.build}"]
        return [*where, *_REPRODUCIBLE, cc, *self.extra, *targets]

    def _env(self) -> dict[str, str]:
        if not self.compiler.ccache:
            return {}
        return {"CCACHE_NAMESPACE": _CCACHE_NAMESPACE, "CCACHE_DIR": str(self.ccache_dir), "CCACHE_MAXSIZE": "5G"}


def jobs() -> int:
    """Return how many CPUs this process may use."""
    return len(os.sched_getaffinity(0)) or 1
