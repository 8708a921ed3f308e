"""The fixed words of a report: statuses, origins, blame, and the states of applying."""

from enum import StrEnum


class Status(StrEnum):
    """Outcome of a stage or of a case on one kernel."""

    PASS = "pass"  # ran, nothing introduced
    WARN = "warn"  # ran, a reader should judge
    FAIL = "fail"  # ran, the series is at fault
    SKIP = "skip"  # did not run, and says why
    ERROR = "error"  # did not finish, and says nothing about the series


class VerdictKind(StrEnum):
    """Answer of a whole run."""

    PASS = "pass"
    WARN = "warn"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"


class Origin(StrEnum):
    """How a finding on patched relates to base."""

    INTRODUCED = "introduced"
    PRE_EXISTING = "pre-existing"
    FIXED = "fixed"
    FLAKY = "flaky"


class Blame(StrEnum):
    """Whose change a finding is attributed to; only SERIES counts against the series."""

    SERIES = "series"
    PREREQUISITE = "prerequisite"
    BASE = "base"
    UNKNOWN = "unknown"


class ApplyState(StrEnum):
    """What became of applying the series; none but APPLIED goes on to a build, and none is a FAIL."""

    APPLIED = "applied"
    APPLIED_WITH_FUZZ = "applied with fuzz"
    DOES_NOT_APPLY = "does not apply"
    ALREADY_MERGED = "already merged"
    INCOMPLETE = "incomplete"
    BLOCKED = "blocked on prerequisite"
    OTHER_PROJECT = "other project"
    MALFORMED = "malformed"
    HOSTILE = "hostile"
