"""The pipes of a running program: feed its stdin, keep the end of its output, watch its time limits.

Used by run.run alone, which owns the program. Everything here works on open pipes; nothing starts or ends a program.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import selectors
import threading
import time
from typing import IO, TYPE_CHECKING

from reviewbot.errors import InfraError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

TAIL_BYTES = 256 * 1024
# The most that an unprivileged process may ask for: feeder and program work at the same time, not in turns.
_PIPE_BYTES = 1 << 20
# How long output is still read after the program itself has ended.
_DRAIN_S = 2.0


class Tail:
    """The last TAIL_BYTES of a stream, and its way into the log file."""

    def __init__(self, log: IO[bytes] | None) -> None:
        self._log = log
        self._parts = bytearray()

    def add(self, data: bytes) -> None:
        """Append data to the log and to the tail; raises InfraError when the log cannot be written."""
        self._parts += data
        if len(self._parts) > 2 * TAIL_BYTES:
            del self._parts[:-TAIL_BYTES]
        if self._log is not None:
            keep(self._log, data)

    def text(self) -> str:
        """Return the tail, decoded as UTF-8 with replacement."""
        return bytes(self._parts[-TAIL_BYTES:]).decode("utf-8", "replace")


def keep(log: IO[bytes], data: bytes) -> None:
    """Write all of data to an unbuffered log: a full disk shows itself here (InfraError) and not at its close."""
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[log.write(rest) :]
    except OSError as error:
        raise unwritable(log.name, error) from error


def unwritable(log: object, error: OSError) -> InfraError:
    """Return the InfraError for a log file that cannot be opened or written."""
    return InfraError(f"{log}: cannot keep the output of a program: {error.strerror or error}")


class Feeder(threading.Thread):
    """Writes chunks to a program's stdin from a thread of its own.

    What the iterable raises is kept in error, and the pipe then stays open: an end of file would tell the program that
    its input is whole.
    """

    def __init__(self, pipe: IO[bytes], chunks: Iterable[bytes]) -> None:
        super().__init__(daemon=True)
        self._pipe = pipe
        self._chunks = chunks
        self.error: BaseException | None = None

    def run(self) -> None:
        """Write every chunk, then close the pipe."""
        try:
            with contextlib.suppress(OSError):  # not every kernel and user may widen a pipe
                fcntl.fcntl(self._pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
            for chunk in self._chunks:
                self._write(chunk)
            self._pipe.close()
        except BrokenPipeError:
            pass  # the program has ended or wants no more; its exit status tells
        except BaseException as error:
            self.error = error

    def _write(self, chunk: bytes) -> None:
        rest = memoryview(chunk)
        while rest:
            rest = rest[os.write(self._pipe.fileno(), rest) :]

    def end(self, timeout_s: float) -> None:
        """Wait for the thread once the program has ended, then close the pipe.

        A feeder that hangs in its iterable keeps its file descriptor: closed here, the number could name another file.
        """
        self.join(timeout=timeout_s)
        if not self.is_alive():
            self._pipe.close()


class Pump:
    """Reads a program's two streams until it has ended or a limit has passed. Limits are in seconds."""

    def __init__(
        self,
        streams: Iterable[tuple[IO[bytes] | None, Tail]],
        *,
        timeout_s: float,
        idle_timeout_s: float | None,
        on_output: Callable[[bytes], None] | None,
    ) -> None:
        self._selector = selectors.DefaultSelector()
        self._timeout_s = timeout_s
        self._idle_timeout_s = idle_timeout_s
        self._on_output = on_output
        self._started = self._last = time.monotonic()
        for stream, tail in streams:
            if stream is not None:
                os.set_blocking(stream.fileno(), False)
                self._selector.register(stream, selectors.EVENT_READ, tail)

    def until(self, ended: Callable[[], bool], stopped: Callable[[], bool]) -> str:
        """Read until the program has ended and its streams are empty, or stopped() holds.

        Returns the limit that passed: "total", "idle" or "".
        """
        with self._selector:
            end = 0.0
            while not stopped():
                self._read_some()
                now = time.monotonic()
                if ended():
                    end = end or now
                    if not self._more() or now - end > _DRAIN_S:
                        return ""
                if limit := self._passed(now):
                    return limit
            return ""

    def _passed(self, now: float) -> str:
        if now - self._started > self._timeout_s:
            return "total"
        if self._idle_timeout_s is not None and now - self._last > self._idle_timeout_s:
            return "idle"
        return ""

    def _read_some(self) -> None:
        if not self._selector.get_map():
            time.sleep(0.02)
            return
        for key, _ in self._selector.select(timeout=0.25):
            data = _read(key.fd)
            if data == b"":
                self._selector.unregister(key.fileobj)
            elif data:
                self._last = time.monotonic()
                key.data.add(data)
                if self._on_output:
                    self._on_output(data)

    def _more(self) -> bool:
        # A daemon that the program left behind may hold the pipe open for ever: only what is there now counts.
        return bool(self._selector.get_map()) and bool(self._selector.select(timeout=0))


def _read(fd: int) -> bytes | None:
    try:
        return os.read(fd, 65536)
    except OSError as error:
        if error.errno == errno.EAGAIN:
            return None
        raise
