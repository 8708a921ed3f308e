"""What the free text of a KTAP log tells: a failure's message, a program's name, the totals line.

In: diagnostic lines. Out: short strings. Nothing here decides an outcome.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_KEPT_LINES = 200
_KEPT_CHARS = 16_000
_LINE_CHARS = 400
# kselftest_harness.h: "# mmap.c:12:name:Expected a (1) == b (2)"; KUnit: "# name: EXPECTATION FAILED at file.c:12".
_EXPECTED = re.compile(r"[\w./-]+\.[ch](?:pp)?:\d+:[\w.]+:\s*(?P<what>\S.*)$")
_KUNIT = re.compile(r"(?P<what>(?:EXPECTATION|ASSERTION) FAILED at .*)$")
_PROGRAM = re.compile(r"^#? ?selftests: (?P<where>[^:]+): (?P<what>\S+)$")
_TOTALS = re.compile(r"^#? ?Totals: pass:\d+ fail:(\d{1,9}) xfail:\d+ xpass:\d+ skip:\d+ error:(\d{1,9})\s*$")


@dataclass(frozen=True, slots=True)
class Totals:
    """The line that ksft_print_cnts() prints; failed counts failures and errors."""

    failed: int

    @staticmethod
    def read(line: str) -> Totals | None:
        """Return what a totals line says, or None for another line."""
        match = _TOTALS.match(line)
        return Totals(int(match[1]) + int(match[2])) if match else None


def failure_message(lines: Sequence[str]) -> str:
    """Return the first failed expectation in diagnostic lines, as one line, or an empty string."""
    for place, line in enumerate(lines):
        if match := _EXPECTED.search(line):
            return match["what"][:_LINE_CHARS]
        if match := _KUNIT.search(line):
            more = lines[place + 1].lstrip("# ").strip() if place + 1 < len(lines) else ""
            return f"{match['what']}: {more}"[:_LINE_CHARS].rstrip(": ")
    return ""


def program_name(lines: Sequence[str]) -> str:
    """Return ``collection:program`` of the runner's last header line, or an empty string."""
    for line in reversed(lines):
        if match := _PROGRAM.match(line):
            return f"{match['where']}:{match['what']}"
    return ""


def kept(lines: Sequence[str]) -> str:
    """Return diagnostic lines as text; of long ones the first and the last part, and how much is left out."""
    if len(lines) > _KEPT_LINES:
        half = _KEPT_LINES // 2
        lines = [*lines[:half], f"[... {len(lines) - 2 * half} lines left out ...]", *lines[-half:]]
    text = "\n".join(lines)
    if len(text) <= _KEPT_CHARS:
        return text
    half = _KEPT_CHARS // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"


def unique(name: str, taken: dict[str, int]) -> str:
    """Return name, or ``name (2)``, ``name (3)``, … when it is taken; the answer is taken from then on.

    taken maps a name to how often it was asked for.
    """
    answer, count = name, taken.get(name, 0)
    while answer in taken:
        count += 1
        answer = f"{name} ({count})"
    taken[name] = max(count, 1)
    taken.setdefault(answer, 1)
    return answer
