"""An archive of any size to series, in bounded memory: mails go in one by one, series come out when threads are quiet.

In: Mails in the order of the archive, and a shelf for their diffs. Out: Assemblies. A thread is taken for finished when
WINDOW mails have come since its last one; a revision that comes later is a series of its own.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from reviewbot.parse.posting import threads
from reviewbot.parse.series import Assembly, assemble

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from reviewbot.parse.patch import Mail

WINDOW = 10_000


class Store(Protocol):
    """Where texts lie under keys while their mails wait; equal texts have equal keys (tools.shelf.Shelf)."""

    def put(self, text: str, /) -> str:
        """Put a text away and return its key."""

    def get(self, key: str, /) -> str:
        """Return the text of a key."""

    def keep(self, keys: Iterable[str], /) -> None:
        """Forget every other text."""


def assemblies(mails: Iterable[Mail], store: Store, *, window: int = WINDOW) -> Iterator[Assembly]:
    """Yield the series of a stream of mails, one at a time, and what was skipped; each mail is in one Assembly."""
    held: list[Mail] = []
    for mail in mails:
        held.append(replace(mail, patch=replace(mail.patch, diff=store.put(mail.patch.diff))))
        if len(held) >= 2 * window:
            done, held = _quiet(held, window)
            yield from _whole(assemble(done), store)
            store.keep(mail.patch.diff for mail in held)
    yield from _whole(assemble(held), store)


def _quiet(held: list[Mail], window: int) -> tuple[list[Mail], list[Mail]]:
    # Mails of threads whose last mail is older than the window; and the rest.
    groups = threads(held)
    cut = len(held) - window
    busy = set(groups[cut:])
    waiting = [i for i in range(cut) if groups[i] in busy]
    if len(waiting) > window // 2:
        # Threads without an end: what is older than the window goes.
        waiting = []
    kept = set(waiting)
    done = [mail for i, mail in enumerate(held[:cut]) if i not in kept]
    return done, [*(held[i] for i in waiting), *held[cut:]]


def _whole(assembly: Assembly, store: Store) -> Iterator[Assembly]:
    # With the diffs, for one series at a time.
    for series in assembly.series:
        patches = tuple(replace(patch, diff=store.get(patch.diff)) for patch in series.patches)
        yield Assembly(series=(replace(series, patches=patches),), skipped=())
    yield Assembly(series=(), skipped=assembly.skipped)
