"""The one door to other programs.

In: an argv, a time limit and what else the program needs. Out: a Completed with its exit status, times and the
last part of its output. An exit status and a timeout are data; only a program that cannot start raises InfraError.
Refused: a shell, a program without a time limit, an inherited stdin or environment.

On every exit path, an exception included, each process that the program started is ended: TERM, a grace period
(virtme-ng and make clean up on it), then KILL.
"""

from __future__ import annotations

import contextlib
import errno
import os
import selectors
import shlex
import shutil
import signal
import subprocess
import threading
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from reviewbot.errors import InfraError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

TAIL_BYTES = 256 * 1024
GRACE_S = 10.0
_MARK = "REVIEWBOT_RUN"
# What a child may see of our environment: enough to find programs, a home, and the way to the network.
_ALLOWED = ("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE")


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


class _Tail:
    # The last TAIL_BYTES of a stream, and its way into the log file.
    def __init__(self, log: IO[bytes] | None) -> None:
        self._log = log
        self._parts = bytearray()

    def add(self, data: bytes) -> None:
        self._parts += data
        if len(self._parts) > 2 * TAIL_BYTES:
            del self._parts[:-TAIL_BYTES]
        if self._log is not None:
            self._log.write(data)
            self._log.flush()

    def text(self) -> str:
        return bytes(self._parts[-TAIL_BYTES:]).decode("utf-8", "replace")


def shown(argv: Sequence[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> str:
    """Return the command as one line that can be pasted into a shell."""
    words = [f"{key}={shlex.quote(value)}" for key, value in (env or {}).items()]
    line = " ".join([*words, shlex.join(argv)])
    return f"cd {shlex.quote(str(cwd))} && {line}" if cwd else line


def find(program: str) -> str | None:
    """Return the path of a program on PATH (sbin included, where Debian keeps some), or None."""
    return shutil.which(program, path=_search_path())


def _search_path() -> str:
    return os.environ.get("PATH", os.defpath) + ":/usr/local/sbin:/usr/sbin:/sbin"


def child_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment that a child gets: the allow-listed part of ours, and extra."""
    env = {key: os.environ[key] for key in _ALLOWED if key in os.environ}
    return env | {"LC_ALL": "C.UTF-8", "PATH": _search_path()} | dict(extra or {})


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

    Raises InfraError when the program cannot start, or when an output file cannot be written (disk full).
    """
    mark = uuid.uuid4().hex
    started = time.monotonic()
    command = shown(argv, cwd=cwd, env=env)
    with contextlib.ExitStack() as stack:
        sink = stack.enter_context(log.open("ab")) if log else None
        child = _start(argv, cwd, child_environment({**(env or {}), _MARK: mark}), stdin, stack)
        try:
            if sink:
                sink.write(f"$ {command}\n".encode())
            tails = (_Tail(sink), _Tail(sink))
            if stdin is not None and not isinstance(stdin, Path):
                threading.Thread(target=_feed, args=(child, stdin), daemon=True).start()
            timed_out = _pump(child, tails, started, timeout_s, idle_timeout_s, on_output)
        except OSError as error:
            msg = f"{argv[0]}: cannot keep its output: {error.strerror or error}"
            raise InfraError(msg) from error
        finally:
            _end(child, mark)
    return Completed(
        command=command,
        exit_status=child.returncode,
        stdout=tails[0].text(),
        stderr=tails[1].text(),
        duration_s=time.monotonic() - started,
        timed_out=timed_out,
    )


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


def _feed(child: subprocess.Popen[bytes], chunks: Iterable[bytes]) -> None:
    pipe = child.stdin
    if pipe is None:
        return
    with contextlib.suppress(BrokenPipeError), pipe:
        for chunk in chunks:
            pipe.write(chunk)


def _pump(
    child: subprocess.Popen[bytes],
    tails: tuple[_Tail, _Tail],
    started: float,
    timeout_s: float,
    idle_timeout_s: float | None,
    on_output: Callable[[bytes], None] | None,
) -> str:
    # Read both streams until both are closed and the child has ended; return which limit passed, or "".
    last = started
    with selectors.DefaultSelector() as selector:
        for stream, tail in zip((child.stdout, child.stderr), tails, strict=True):
            if stream is not None:
                os.set_blocking(stream.fileno(), False)
                selector.register(stream, selectors.EVENT_READ, tail)
        while True:
            for key, _ in selector.select(timeout=0.25 if selector.get_map() else 0) if selector.get_map() else ():
                data = _read(key.fd)
                if data == b"":
                    selector.unregister(key.fileobj)
                elif data:
                    last = time.monotonic()
                    key.data.add(data)
                    if on_output:
                        on_output(data)
            if child.poll() is not None and not _more(selector):
                return ""
            now = time.monotonic()
            if now - started > timeout_s:
                return "total"
            if idle_timeout_s is not None and now - last > idle_timeout_s:
                return "idle"
            if not selector.get_map():
                time.sleep(0.02)


def _more(selector: selectors.BaseSelector) -> bool:
    # A daemon that the program left behind may hold the pipe open for ever: only what is there now counts.
    return bool(selector.get_map()) and bool(selector.select(timeout=0))


def _read(fd: int) -> bytes | None:
    try:
        return os.read(fd, 65536)
    except OSError as error:
        if error.errno == errno.EAGAIN:
            return None
        raise


def _end(child: subprocess.Popen[bytes], mark: str) -> None:
    # End everything that carries our mark or belongs to the child's session, then reap the child.
    deadline = time.monotonic() + GRACE_S
    signalled: set[int] = set()
    while alive := _alive(child, mark):
        sign = signal.SIGTERM if time.monotonic() < deadline else signal.SIGKILL
        for pid in alive:
            if sign == signal.SIGKILL or pid not in signalled:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, sign)
                signalled.add(pid)
        time.sleep(0.02)
        child.poll()
    child.wait()
    for stream in (child.stdin, child.stdout, child.stderr):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()


def _alive(child: subprocess.Popen[bytes], mark: str) -> list[int]:
    needle = f"{_MARK}={mark}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            stat = (entry / "stat").read_bytes().rsplit(b")", 1)[1].split()
            if stat[0] in (b"Z", b"X"):
                continue
            if int(stat[3]) == child.pid or needle in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except (OSError, IndexError):
            continue
    return found
