"""Progress on a terminal, without one, and quiet."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from reviewbot.progress import Progress
from reviewbot.tests import samples


class Clock:
    """Seconds that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def console(*, terminal: bool, width: int = 80) -> tuple[Console, io.StringIO]:
    stream = io.StringIO()
    environ = {"TERM": "xterm-256color"} if terminal else {}
    return Console(file=stream, force_terminal=terminal, width=width, highlight=False, _environ=environ), stream


def run(progress: Progress, clock: Clock) -> None:
    with progress:
        progress.start("build", 860.0)
        for n in range(120):
            clock.now += 1
            progress.note("build", f"{n + 1} of 120 objects")
        progress.finish(replace(samples.build(), duration_s=120.4))
        progress.finish(replace(samples.skipped("boot", why="no kernel")[0]))


def test_plain_lines_without_a_terminal() -> None:
    where, stream = console(terminal=False, width=40)
    clock = Clock()
    run(Progress(console=where, clock=clock), clock)
    assert stream.getvalue().splitlines() == [
        "build: started (about 14 min 20 s)",
        "build: 30 of 120 objects",
        "build: 60 of 120 objects",
        "build: 90 of 120 objects",
        "build: 120 of 120 objects",
        "build: pass (2 min 00 s) base and patched build; no diagnostic that base does not have",
        "boot: skip (under 0.1 s) no kernel",
    ]


def test_quiet_says_nothing() -> None:
    for terminal in (False, True):
        where, stream = console(terminal=terminal)
        clock = Clock()
        run(Progress(quiet=True, console=where, clock=clock), clock)
        assert stream.getvalue() == ""


def test_a_terminal_ends_with_one_line_a_stage_and_its_cursor_back() -> None:
    where, stream = console(terminal=True, width=60)
    clock = Clock()
    run(Progress(console=where, clock=clock), clock)
    text = stream.getvalue()
    assert text.rstrip("\n").endswith("\x1b[?25h")
    last = text.split("\x1b[2K")[-1]
    assert "pass" in last
    assert "no kernel" in last
    assert "…" in last  # the long summary is cut, not wrapped
    assert last.count("\n") == 2


def test_a_running_stage_shows_time_estimate_and_note() -> None:
    where, stream = console(terminal=True, width=100)
    clock = Clock()
    with Progress(console=where, clock=clock) as progress:
        progress.start("build", 860.0)
        clock.now += 75
        progress.note("build", "1,203 of 1,500 objects")
    assert "1 min 15 s" in stream.getvalue()
    assert "of about 14 min 20 s, 1,203 of 1,500 objects" in stream.getvalue()
    where, stream = console(terminal=True, width=100)
    with Progress(console=where, clock=clock) as progress:
        progress.start("build", 10.0)
        clock.now += 11
    assert "longer than the usual 10 s" in stream.getvalue()


def test_the_terminal_is_given_back_when_the_review_is_stopped() -> None:
    where, stream = console(terminal=True)

    def stopped() -> None:
        with Progress(console=where) as progress:
            progress.start("build")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert "\x1b[?25h" in stream.getvalue()


@pytest.mark.parametrize("terminal", [False, True])
def test_hostile_text_is_neither_markup_nor_escape(terminal: bool) -> None:
    where, stream = console(terminal=terminal, width=200)
    with Progress(console=where) as progress:
        progress.start("build")
        progress.finish(replace(samples.build(), summary="[red]x[/red] \x1b]0;title\x07\nsecond"))
    assert "[red]x[/red] \\x1b]0;title\\x07 second" in stream.getvalue()
    assert "\x1b]0" not in stream.getvalue()


def test_a_note_for_a_stage_that_does_not_run_is_dropped() -> None:
    where, stream = console(terminal=False)
    with Progress(console=where) as progress:
        progress.note("build", "x")
    assert stream.getvalue() == ""
