"""A mail's Date header to a git date that is always valid; a fixed one when there is none."""

from __future__ import annotations

from email.utils import mktime_tz, parsedate_tz

# 2000-01-01: the same on every run, and plainly not when the patch was written.
FIXED_EPOCH = 946_684_800
_LAST = 4_102_444_800


def commit_date(date: str) -> tuple[int, str]:
    """Return seconds since the epoch and the zone (``+0200``) of an RFC 2822 date, or 2000-01-01 UTC."""
    try:
        parsed = parsedate_tz(date[:200])
        epoch = int(mktime_tz(parsed)) if parsed else FIXED_EPOCH
    except (ValueError, TypeError, IndexError, OverflowError):
        return FIXED_EPOCH, "+0000"
    if not parsed or not 0 < epoch < _LAST:
        return FIXED_EPOCH, "+0000"
    minutes = (parsed[9] or 0) // 60
    if abs(minutes) > 14 * 60:
        return epoch, "+0000"
    return epoch, f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}{abs(minutes) % 60:02}"
