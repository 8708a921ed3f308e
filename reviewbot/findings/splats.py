"""Kernel complaints on base against those on patched, as findings (pure).

In: console logs, or Splats parsed from them. Out: model.Finding values: introduced when base does not show the
same title, else pre-existing. Once is enough: a splat is never flaky.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reviewbot.model import Blame, Finding, Origin, Status
from reviewbot.parse.dmesg import Splat, new_splats, parse_console, result_like_lines

if TYPE_CHECKING:
    from collections.abc import Iterable

TAIL_LINES = 40


def splat_findings(base_consoles: Iterable[str], patched_consoles: Iterable[str]) -> tuple[Finding, ...]:
    """Return one finding a splat of patched, compared with all that base said; the same splat of two boots is one."""
    base = tuple(s for console in base_consoles for s in parse_console(console))
    found: dict[tuple[str, str], Finding] = {}
    for console in patched_consoles:
        splats = parse_console(console)
        new = {s.identity for s in new_splats(base, splats)}
        for splat in splats:
            origin = Origin.INTRODUCED if splat.identity in new else Origin.PRE_EXISTING
            found.setdefault(splat.identity, splat_finding(splat, origin))
    return tuple(found.values())


def splat_finding(splat: Splat, origin: Origin) -> Finding:
    """Return a splat as a finding; an introduced one is a FAIL."""
    introduced = origin is Origin.INTRODUCED
    return Finding(
        title=splat.title,
        severity=Status.FAIL if introduced else Status.PASS,
        origin=origin,
        blame=Blame.SERIES if introduced else Blame.BASE,
        file=splat.file,
        function=splat.function,
        line=splat.line,
        excerpt=splat.excerpt,
    )


def imitations(base_console: str, patched_console: str) -> tuple[Finding, ...]:
    """Return a finding when only patched's kernel log prints what looks like test results; they are never counted."""
    seen = set(result_like_lines(base_console))
    new = [line for line in result_like_lines(patched_console) if line not in seen]
    if not new:
        return ()
    return (
        Finding(
            title="the kernel log prints lines that look like test results; none of them was counted",
            severity=Status.WARN,
            origin=Origin.INTRODUCED,
            excerpt="\n".join(new[:TAIL_LINES]),
            rule="results come from the guest's share alone",
        ),
    )


def tail(console: str, lines: int = TAIL_LINES) -> str:
    """Return the last lines of a console log."""
    return "\n".join(console.splitlines()[-lines:])
