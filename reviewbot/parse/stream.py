"""An archive of any size to series, in bounded memory: mails go in one by one, series come out when threads are quiet.

In: Mails in the order of the archive. Out: Assemblies. A thread is taken for finished when WINDOW mails have come since
its last one; a revision that comes later is a series of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reviewbot.parse.posting import threads
from reviewbot.parse.series import Assembly, assemble

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from reviewbot.parse.patch import Mail

WINDOW = 10_000
_WINDOW_BYTES = 128 * 1024 * 1024


def assemblies(mails: Iterable[Mail], *, window: int = WINDOW) -> Iterator[Assembly]:
    """Yield the series of a stream of mails, part by part; each mail is in one part, in a series or skipped."""
    held: list[Mail] = []
    size = 0
    for mail in mails:
        held.append(mail)
        size += len(mail.patch.diff) + len(mail.patch.message) + len(mail.below)
        if len(held) >= 2 * window or (size > _WINDOW_BYTES and len(held) > 1):
            done, held = _quiet(held, min(window, len(held) // 2))
            size = sum(len(m.patch.diff) + len(m.patch.message) + len(m.below) for m in held)
            yield assemble(done)
    yield assemble(held)


def _quiet(held: list[Mail], window: int) -> tuple[list[Mail], list[Mail]]:
    # Mails of threads whose last mail is older than the window; and the rest.
    groups = threads(held)
    cut = len(held) - window
    busy = set(groups[cut:])
    done = [m for m, group in zip(held, groups, strict=True) if group not in busy]
    kept = [m for m, group in zip(held, groups, strict=True) if group in busy]
    if len(kept) < len(held):
        return done, kept
    # One endless thread: its older half goes.
    return held[:cut], held[cut:]
