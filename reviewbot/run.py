"""The one door to other programs.

In: an argv, a time limit and what else the program needs. Out: a Completed with its exit status, times and the
last part of its output. An exit status and a timeout are data; only a program that cannot start raises InfraError.
Refused: a shell, a program without a time limit, an inherited stdin or environment.

On every exit path, an exception included, each process that the program started is ended: TERM, a grace period
(virtme-ng and make clean up on it), then KILL.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import subprocess
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from reviewbot import session
from reviewbot.errors import InfraError
from reviewbot.pipes import Feeder, Pump, Tail, keep, unwritable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

# What a child may see of our environment: enough to find programs, a home, and the way to the network.
_ALLOWED = ("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE")
# Where Debian keeps programs that an ordinary user's PATH does not have.
_SYSTEM_PATH = ":/usr/local/sbin:/usr/sbin:/sbin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """How a program ended.

    exit_status is the exit code, or -N for signal N. stdout and stderr hold the last TAIL_BYTES of each stream, decoded
    as UTF-8 with replacement. timed_out tells that we ended it: "total" (timeout_s passed), "idle" (no output for
    idle_timeout_s), or "" (it ended by itself).
    """

    command: str
    exit_status: int
    stdout: str
    stderr: str
    duration_s: float
    timed_out: str = ""

    @property
    def ok(self) -> bool:
        """True when the program ended by itself with exit status 0."""
        return self.exit_status == 0 and not self.timed_out

    @property
    def output(self) -> str:
        """Both streams, stdout first."""
        return self.stdout + self.stderr


def shown(argv: Sequence[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> str:
    """Return the command as one line that can be pasted into a shell."""
    words = [f"{key}={shlex.quote(value)}" for key, value in (env or {}).items()]
    line = " ".join([*words, shlex.join(argv)])
    return f"cd {shlex.quote(str(cwd))} && {line}" if cwd else line


def find(program: str) -> str | None:
    """Return the path of a program on PATH (sbin included, where Debian keeps some), or None."""
    return shutil.which(program, path=search_path())


def search_path() -> str:
    """Return the PATH that children get: ours, and the system's sbin directories."""
    return os.environ.get("PATH", os.defpath) + _SYSTEM_PATH


def child_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment that a child gets: the allow-listed part of ours, and extra."""
    env = {key: os.environ[key] for key in _ALLOWED if key in os.environ}
    return env | {"LC_ALL": "C.UTF-8", "PATH": search_path()} | dict(extra or {})


def run(
    argv: Sequence[str],
    *,
    timeout_s: float,
    cwd: Path | None = None,
    log: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: Path | Iterable[bytes] | None = None,
    idle_timeout_s: float | None = None,
    on_output: Callable[[bytes], None] | None = None,
) -> Completed:
    """Run a program to its end and return how it went.

    log gets the command line, then both streams as they come (appended). stdin is a file, or an iterable of chunks that
    is fed through a pipe; nothing otherwise. on_output sees each chunk of either stream.

    Raises InfraError when the program cannot start, or when an output file cannot be written (disk full). What the
    stdin iterable or on_output raises ends the program and is raised again.
    """
    mark = uuid.uuid4().hex
    started = time.monotonic()
    command = shown(argv, cwd=cwd, env=env)
    with contextlib.ExitStack() as stack:
        sink = _log_file(log, command, stack)
        child = _start(argv, cwd, child_environment({**(env or {}), session.MARK: mark}), stdin, stack)
        feeder = None if stdin is None or isinstance(stdin, Path) or not child.stdin else Feeder(child.stdin, stdin)
        tails = (Tail(sink), Tail(sink))
        pump = Pump(
            zip((child.stdout, child.stderr), tails, strict=True),
            timeout_s=timeout_s,
            idle_timeout_s=idle_timeout_s,
            on_output=on_output,
        )
        try:
            if feeder:
                feeder.start()
            timed_out = pump.until(lambda: child.poll() is not None, lambda: bool(feeder and feeder.error))
        finally:
            _end(child, mark)
            if feeder:
                feeder.end(session.GRACE_S)
    if feeder and feeder.error:
        raise feeder.error
    return Completed(
        command=command,
        exit_status=child.returncode,
        stdout=tails[0].text(),
        stderr=tails[1].text(),
        duration_s=time.monotonic() - started,
        timed_out=timed_out,
    )


def _log_file(log: Path | None, command: str, stack: contextlib.ExitStack) -> IO[bytes] | None:
    if log is None:
        return None
    try:
        sink = stack.enter_context(log.open("ab", buffering=0))
    except OSError as error:
        raise unwritable(log, error) from error
    keep(sink, f"$ {command}\n".encode())
    return sink


def _start(
    argv: Sequence[str],
    cwd: Path | None,
    env: dict[str, str],
    stdin: Path | Iterable[bytes] | None,
    stack: contextlib.ExitStack,
) -> subprocess.Popen[bytes]:
    feed: int | IO[bytes] = subprocess.DEVNULL
    if isinstance(stdin, Path):
        feed = stack.enter_context(stdin.open("rb"))
    elif stdin is not None:
        feed = subprocess.PIPE
    program = shutil.which(argv[0], path=env["PATH"])
    if program is None:
        msg = f"{argv[0]}: not installed"
        raise InfraError(msg)
    try:
        return subprocess.Popen(
            [program, *argv[1:]],
            cwd=cwd,
            env=env,
            stdin=feed,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        msg = f"{argv[0]}: cannot start: {error.strerror}"
        raise InfraError(msg) from error


def _end(child: subprocess.Popen[bytes], mark: str) -> None:
    try:
        session.end(child.pid, mark, child.poll)
    finally:
        child.wait()
        for stream in (child.stdout, child.stderr):
            if stream is not None:
                stream.close()
