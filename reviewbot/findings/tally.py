"""What the tests of a review come to: one status, and the sentence that counts them (pure)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from reviewbot.model import Origin, Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reviewbot.model import Case, Finding


def tally(cases: Sequence[Case], findings: Sequence[Finding], *, programs: int, finished: bool) -> tuple[Status, str]:
    """Return the status of the tests and a summary; finished is whether every boot of patched came to its end.

    A case without a result, a boot that ended early and tests none of which passed are an ERROR, unless the series is
    at fault already.
    """
    count = Counter(c.patched for c in cases)
    bad = [c for c in cases if c.counts]
    old = sum(1 for c in cases if c.origin is Origin.PRE_EXISTING)
    text = f"{len(cases)} cases of {programs} programs: {count[Status.PASS]} pass, {count[Status.FAIL]} fail"
    text += f", {count[Status.SKIP]} skipped" + (f", {old} fail on base too" if old else "")
    broken = [f for f in findings if f.counts and f.severity is Status.FAIL]
    other = next((f.title for f in broken if not f.cases), "")
    if bad or broken:
        found = sum(1 for f in broken if f.cases)
        many = f"; {len(bad)} of them make {found} finding{'s' if found > 1 else ''}" if found else ""
        return Status.FAIL, text + many + (f"; {other}" if other else "")
    if count[Status.ERROR] or not finished:
        return Status.ERROR, f"{text}, {count[Status.ERROR]} without a result"
    if not count[Status.PASS]:
        return Status.ERROR, f"{text}: nothing was tested"
    if count[Status.WARN] or count[Status.FAIL]:
        return Status.WARN, text
    return Status.PASS, text
