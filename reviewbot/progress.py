"""What a person sees while a review runs: the stages, how long each takes, and what it is at.

In: start, note and finish of each stage. Out, on standard error only: a live list on a terminal, plain lines
elsewhere, nothing when quiet. Foreign text in summaries and notes is written out and never read as markup.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from reviewbot.model import Status
from reviewbot.report.clean import duration, one_line

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from rich.console import RenderableType

    from reviewbot.model import StageResult

NOTE_EVERY_S = 30.0  # plain lines: a note of a stage at most this often
_COLOURS = {
    Status.PASS: "green",
    Status.WARN: "yellow",
    Status.FAIL: "bold red",
    Status.SKIP: "dim",
    Status.ERROR: "magenta",
}


@dataclass(slots=True)
class _Row:
    # One stage of the list; result is None while it runs.
    stage: str
    started_s: float
    estimate_s: float | None
    note: str = ""
    noted_s: float = 0.0
    result: StageResult | None = None
    spinner: Spinner = field(default_factory=lambda: Spinner("dots"))


class Progress:
    """The progress of one review; use it as a context manager, so that the terminal is left as it was found.

    console is where to write (standard error by default), clock gives seconds that only go up.
    """

    def __init__(
        self, *, quiet: bool = False, console: Console | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._console = console or Console(stderr=True, highlight=False)
        self._clock = clock
        self._rows: list[_Row] = []
        self._live: Live | None = None
        self._quiet = quiet

    def __enter__(self) -> Self:
        if not self._quiet and self._console.is_terminal and not self._console.is_dumb_terminal:
            self._live = Live(console=self._console, refresh_per_second=4, get_renderable=self._table)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def start(self, stage: str, estimate_s: float | None = None) -> None:
        """Show that a stage has started; estimate_s is how long it took in earlier runs."""
        row = self._running(stage)
        if row is None:
            self._rows.append(_Row(stage, self._clock(), estimate_s))
        else:
            row.started_s, row.estimate_s, row.note = self._clock(), estimate_s, ""
        about = f" (about {duration(estimate_s)})" if estimate_s else ""
        self._say(f"{stage}: started{about}")

    def message(self, text: str) -> None:
        """Show one line that belongs to no stage."""
        if not self._quiet:
            self._console.print(Text(one_line(text, 1000)), soft_wrap=True)

    def note(self, stage: str, text: str) -> None:
        """Show what a running stage is at: ``1,203 of 1,500 objects``."""
        row = self._running(stage)
        if row is None:
            return
        row.note = one_line(text, 200)
        if self._clock() - max(row.noted_s, row.started_s) >= NOTE_EVERY_S:
            row.noted_s = self._clock()
            self._say(f"{stage}: {row.note}")

    def finish(self, result: StageResult) -> None:
        """Show how a stage ended."""
        row = self._running(result.stage)
        if row is None:
            row = _Row(result.stage, self._clock(), None)
            self._rows.append(row)
        row.result = result
        self._say(f"{result.stage}: {result.status.value} ({duration(result.duration_s)}) {one_line(result.summary)}")

    def _running(self, stage: str) -> _Row | None:
        return next((row for row in reversed(self._rows) if row.stage == stage and row.result is None), None)

    def _say(self, line: str) -> None:
        if self._live is None and not self._quiet:
            self._console.print(Text(one_line(line, 1000)), soft_wrap=True)

    def _table(self) -> Table:
        table = Table.grid(padding=(0, 1))
        # Only a column that may wrap gives way on a narrow terminal; the text in it is cut instead.
        table.add_column(width=5, no_wrap=True)
        table.add_column(width=max((min(len(row.stage), 24) for row in self._rows), default=1), no_wrap=True)
        table.add_column(width=11, no_wrap=True, justify="right")
        table.add_column(ratio=1)
        for row in self._rows:
            table.add_row(*(self._ended(row.result) if row.result else self._going(row)))
        return table

    @staticmethod
    def _ended(result: StageResult) -> tuple[RenderableType, ...]:
        return (
            Text(result.status.value, style=_COLOURS[result.status]),
            Text(one_line(result.stage, 24)),
            Text(duration(result.duration_s), style="dim"),
            Text(one_line(result.summary), no_wrap=True, overflow="ellipsis"),
        )

    def _going(self, row: _Row) -> tuple[RenderableType, ...]:
        elapsed_s = self._clock() - row.started_s
        about = ""
        if row.estimate_s:
            late = elapsed_s > row.estimate_s
            about = (
                f"longer than the usual {duration(row.estimate_s)}" if late else f"of about {duration(row.estimate_s)}"
            )
        words = Text(
            ", ".join(word for word in (about, row.note) if word), style="dim", no_wrap=True, overflow="ellipsis"
        )
        return (row.spinner, Text(one_line(row.stage, 24)), Text(duration(elapsed_s)), words)
