"""Processes of our own: one function over many jobs, on every core, the answers in the order of the jobs.

In: a function, and jobs (of at most some kB each) and answers that can be pickled. A bounded number of jobs is under
way at a time, so that a stream of any length goes through in bounded memory. This is the one door to our own processes,
as run is to other programs.
"""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import signal
from collections import deque
from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from multiprocessing.connection import Connection

_MOST = 8
_AHEAD = 2

Job = TypeVar("Job")
Answer = TypeVar("Answer")


def cores() -> int:
    """Return how many processors this process may use, at most 8."""
    return min(_MOST, len(os.sched_getaffinity(0)))


def in_order(work: Callable[[Job], Answer], jobs: Iterable[Job], *, processes: int) -> Iterator[Answer]:
    """Yield work(job) for each job, in order, from that many processes; with one or none, from this process.

    What work raises is raised here. Ending the iteration early ends the processes.
    """
    if processes < 2:
        yield from map(work, jobs)
        return
    with contextlib.ExitStack() as stack:
        ends: list[Connection] = []
        for _ in range(processes):
            ends.append(_start(work, ends, stack))
        waiting: deque[Connection] = deque()
        turns = itertools.cycle(ends)
        for job in jobs:
            if len(waiting) == processes * _AHEAD:
                yield cast("Answer", _answer(waiting.popleft()))
            end = next(turns)
            end.send(job)
            waiting.append(end)
        while waiting:
            yield cast("Answer", _answer(waiting.popleft()))


def _start(work: Callable[[Job], Answer], before: list[Connection], stack: contextlib.ExitStack) -> Connection:
    # Forked: the function need not be importable, and nothing runs a second time in the child.
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    child = context.Process(target=_serve, args=(work, theirs, [*before, ours]), daemon=True)
    child.start()
    theirs.close()
    stack.callback(child.join)
    stack.callback(child.terminate)
    stack.callback(ours.close)
    return ours


def _serve(work: Callable[[Job], Answer], end: Connection, others: list[Connection]) -> None:
    # The parent answers to Ctrl-C; when it is gone, the pipe ends, and so does the child. For that, no copy of the
    # parent's ends may stay open here.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for other in others:
        other.close()
    with contextlib.suppress(EOFError, OSError):
        while True:
            job = end.recv()
            try:
                answer: tuple[bool, object] = (True, work(job))
            except Exception as error:
                answer = (False, error)
            end.send(answer)


def _answer(end: Connection) -> object:
    # What the child sends; its exception is raised here.
    fine, answer = end.recv()
    if not fine:
        raise answer
    return answer
