"""The end of a run on a terminal: a Report in a dozen plain lines.

In: a Report. Out: text without colour or escape sequences; characters that a terminal would act on are written out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reviewbot.model import Status, VerdictKind
from reviewbot.report import view
from reviewbot.report.clean import duration, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reviewbot.model import Report

_ITEMS_MAX = 8
_WIDTH = 160


def render_text(report: Report) -> str:
    """Return the summary, lines of at most 160 characters, with a line feed at its end."""
    answer = view.answer(report)
    lines = [f"{report.verdict.value.upper()}: {answer.headline}"]
    if report.series is not None:
        lines.append(f"{report.series.title} ({view.series_name(report)})")
    if report.base is not None:
        lines.append(f"on {report.base.describe} ({report.base.commit[:12]})")
    if report.verdict is VerdictKind.INCONCLUSIVE:
        lines += _part("Why", [view.Item(text=line, status=Status.ERROR) for line in report.reasons])
    lines += _part("Breaks", answer.breaks)
    lines += _part("To judge", answer.doubts)
    lines += _part("Holds", answer.holds)
    lines += _part("Could not be told", answer.untold)
    lines.append("")
    lines += [
        f"  {s.status.value:<5}  {one_line(s.stage, 20):<10} {duration(s.duration_s):>12}  {s.summary}"
        for s in report.stages
    ]
    return "".join(f"{_line(line)}\n" for line in lines)


def _part(title: str, items: Sequence[view.Item]) -> list[str]:
    if not items:
        return []
    left = len(items) - _ITEMS_MAX
    more = [f"  - … and {left:,} more"] if left > 0 else []
    return ["", f"{title}:", *(f"  - {item.text}" for item in items[:_ITEMS_MAX]), *more]


def _line(text: str) -> str:
    # White space at the start is ours and stays.
    indent = text[: len(text) - len(text.lstrip(" "))]
    body = text[len(indent) :]
    return indent + (
        one_line(body, _WIDTH - len(indent)) if not indent or body.startswith("- ") else _kept(body, _WIDTH - 2)
    )


def _kept(text: str, limit: int) -> str:
    # A line of the table: its columns keep their spaces.
    columns, _, summary = text.rpartition("  ")
    line = f"{columns}  {one_line(summary)}"
    return line if len(line) <= limit else line[: limit - 2] + " …"
