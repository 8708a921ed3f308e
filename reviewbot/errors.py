"""The two errors that a user can meet; anything else that escapes is a bug.

A fault in the series is never an exception: it is a result (see model.StageResult).
"""


class ReviewbotError(Exception):
    """Base of the errors whose text is written for the user: one line that names the thing and the value."""


class UsageError(ReviewbotError):
    """What the user gave cannot be used (exit status 2)."""


class InfraError(ReviewbotError):
    """The machine failed, not the series: disk full, qemu missing, compiler killed. A stage turns it into ERROR."""
