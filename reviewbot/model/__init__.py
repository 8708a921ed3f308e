"""Frozen values that the stages exchange and that results.json is made of.

Nothing here does I/O. A value that would be a lie cannot be built: see the __post_init__ methods.
"""

from reviewbot.model.apply import BETTER_BASE, AppliedPatch, ApplyResult, BaseInfo, HunkFailure
from reviewbot.model.findings import Breach, Case, Finding, SourceLine, main_breach
from reviewbot.model.report import SCHEMA, Log, Outcome, Report, RunInfo, StageResult, Verdict
from reviewbot.model.series import Patch, Series
from reviewbot.model.words import ApplyState, Blame, Origin, Status, VerdictKind

__all__ = [
    "BETTER_BASE",
    "SCHEMA",
    "AppliedPatch",
    "ApplyResult",
    "ApplyState",
    "BaseInfo",
    "Blame",
    "Breach",
    "Case",
    "Finding",
    "HunkFailure",
    "Log",
    "Origin",
    "Outcome",
    "Patch",
    "Report",
    "RunInfo",
    "Series",
    "SourceLine",
    "StageResult",
    "Status",
    "Verdict",
    "VerdictKind",
    "main_breach",
]
