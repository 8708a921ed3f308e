"""End every process that one call of run.run started, the ones that left its session included.

In: the process id of the session's leader, and the mark that run put into its environment. A process belongs to the
call when its session is the leader's, when its environment holds the mark, or when its parent belongs to the call.
A daemon that clears its environment, makes its own session and outlives its parent is not found.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MARK = "REVIEWBOT_RUN"
GRACE_S = 10.0


def end(leader: int, mark: str, reap: Callable[[], object]) -> None:
    """End the processes of a call: TERM, up to GRACE_S seconds to clean up, then KILL until none is left.

    reap is called between the rounds, to collect the leader. A KeyboardInterrupt ends the grace period, and is raised
    again when no process is left.
    """
    deadline = time.monotonic() + GRACE_S
    interrupted: KeyboardInterrupt | None = None
    signalled: set[int] = set()
    while True:
        try:
            alive = members(leader, mark)
            if not alive:
                break
            _signal(alive, signalled, kill=time.monotonic() >= deadline)
            time.sleep(0.02)
            reap()
        except KeyboardInterrupt as error:
            interrupted, deadline = error, 0.0
    if interrupted:
        raise interrupted


def members(leader: int, mark: str) -> list[int]:
    """Return the ids of the living processes of a call, in no particular order."""
    needle = f"{MARK}={mark}".encode()
    parents: dict[int, int] = {}
    found: set[int] = set()
    for pid, parent, session in _processes():
        parents[pid] = parent
        if session == leader or needle in _environment(pid):
            found.add(pid)
    grown = True
    while grown:
        children = {pid for pid, parent in parents.items() if parent in found} - found
        found |= children
        grown = bool(children)
    return list(found)


def _signal(alive: list[int], signalled: set[int], *, kill: bool) -> None:
    for pid in alive:
        if kill or pid not in signalled:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL if kill else signal.SIGTERM)
            signalled.add(pid)


def _processes() -> Iterator[tuple[int, int, int]]:
    # (pid, parent, session) of each process that is not a zombie; /proc/PID/stat as in proc_pid_stat(5).
    for entry in os.listdir("/proc"):  # noqa: PTH208 scanned at the end of each call: a Path a process is too slow
        if entry.isdigit():
            with contextlib.suppress(OSError, IndexError):
                stat = Path("/proc", entry, "stat").read_bytes().rsplit(b")", 1)[1].split()
                if stat[0] not in (b"Z", b"X"):
                    yield int(entry), int(stat[1]), int(stat[3])


def _environment(pid: int) -> bytes:
    try:
        return Path("/proc", str(pid), "environ").read_bytes()
    except OSError:
        return b""
