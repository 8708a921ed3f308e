"""What the intake understood, as JSON: one object a source, the answer of `reviewbot intake SOURCE --json`.

In: the Outcome of the intake stage. Out: JSON text, ASCII only, so that no escape or control character reaches a
terminal.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from reviewbot.model import Outcome, Series

SCHEMA = "reviewbot-intake-1"


def render_intake(outcome: Outcome[Series], *, diffs: bool = False) -> str:
    """Return the outcome as JSON; the diffs themselves are left out unless diffs is true.

    Keys: schema, status, summary, left_out (a list of {reason, mail}), and series (null when there is none) with the
    fields of model.Series.
    """
    series = msgspec.to_builtins(outcome.value) if outcome.value is not None else None
    if series is not None and not diffs:
        for patch in (*series["patches"], *filter(None, [series["cover"]])):
            del patch["diff"]
    left = [
        {"reason": name.removeprefix("left out: "), "mail": value}
        for name, value in outcome.result.facts
        if ": " in name
    ]
    answer = {
        "schema": SCHEMA,
        "status": outcome.result.status.value,
        "summary": outcome.result.summary,
        "series": series,
        "left_out": left,
    }
    return json.dumps(answer, indent=2, ensure_ascii=True) + "\n"
