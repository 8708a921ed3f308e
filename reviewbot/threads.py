"""The same work in several threads: for work that waits for other programs."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def together(jobs: int, work: Callable[[], None]) -> None:
    """Call work jobs times at once, each in a thread, and return when all have returned.

    What one of them raises is raised again, after the others came to their end.
    """
    if jobs == 1:
        work()
        return
    errors: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:  # raised again below, in the caller's thread
            errors.append(error)

    threads = [threading.Thread(target=guarded, name=f"work-{n}") for n in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
