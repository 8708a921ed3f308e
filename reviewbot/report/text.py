"""The end of a run on a terminal: a Report in a dozen plain lines.

In: a Report. Out: text without colour or escape sequences; characters that a terminal would act on are written out.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from reviewbot.model import Status, VerdictKind
from reviewbot.report import view
from reviewbot.report.answer import Item, answer
from reviewbot.report.clean import duration, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reviewbot.model import Report, StageResult

_ITEMS_MAX = 8
_WIDTH = 110


def render_text(report: Report) -> str:
    """Return the summary, lines of at most 110 characters, with a line feed at its end."""
    found = answer(report)
    lines = [one_line(f"{report.verdict.value.upper()}: {found.headline}", _WIDTH)]
    if report.series is not None:
        lines.append(one_line(f"{report.series.title} ({view.series_name(report)})", _WIDTH))
    if report.base is not None:
        lines.append(one_line(f"on {report.base.describe} ({report.base.commit[:12]})", _WIDTH))
    if report.verdict is VerdictKind.INCONCLUSIVE:
        lines += _part("Why", [Item(text=line, status=Status.ERROR) for line in report.reasons])
    lines += _part("Breaks", found.breaks)
    lines += _part("To judge", found.doubts)
    lines += _part("Holds", found.holds)
    lines += _part("Could not be told", found.untold)
    return "\n".join([*lines, "", *(_stage(stage) for stage in report.stages)]) + "\n"


def _part(title: str, items: Sequence[Item]) -> list[str]:
    if not items:
        return []
    left = len(items) - _ITEMS_MAX
    more = [f"  - … and {left:,} more"] if left > 0 else []
    return ["", f"{title}:", *(line for item in items[:_ITEMS_MAX] for line in _item(item.text)), *more]


def _item(text: str) -> list[str]:
    # Nothing in it is longer than a line: a word that is, is broken.
    return textwrap.wrap(
        one_line(text, 400), _WIDTH, initial_indent="  - ", subsequent_indent="    ", break_on_hyphens=False
    )


def _stage(stage: StageResult) -> str:
    columns = f"  {stage.status.value:<5}  {one_line(stage.stage, 20):<10} {duration(stage.duration_s):>12}  "
    return columns + one_line(stage.summary, _WIDTH - len(columns))
