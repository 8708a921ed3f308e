"""What stages give, and the report that they make together."""

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from reviewbot.model.apply import ApplyResult, BaseInfo
from reviewbot.model.findings import Case, Finding
from reviewbot.model.series import Series
from reviewbot.model.words import Status, VerdictKind

SCHEMA = "reviewbot-results-1"

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """A file that a stage left in the run directory; path is relative to it, size is in bytes."""

    title: str
    path: str
    size_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StageResult:
    """What one stage found. commands are copy-pasteable, in the order in which they ran.

    facts are (name, value) pairs that the report prints as a table: versions, symbol counts, cache hits.
    """

    stage: str
    status: Status
    summary: str
    duration_s: float = 0.0
    findings: tuple[Finding, ...] = ()
    cases: tuple[Case, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    commands: tuple[str, ...] = ()
    logs: tuple[Log, ...] = ()
    excerpt: str = ""
    required: bool = True

    def __post_init__(self) -> None:
        if not self.summary:
            msg = f"stage {self.stage} has no summary"
            raise ValueError(msg)
        if self.status is Status.PASS and any(f.counts and f.severity is Status.FAIL for f in self.findings):
            msg = f"stage {self.stage} passes with a failing finding"
            raise ValueError(msg)

    @property
    def loose(self) -> tuple[Case, ...]:
        """The cases that no finding stands for."""
        told = {name for finding in self.findings for name in finding.cases}
        return tuple(case for case in self.cases if case.name not in told)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome(Generic[T_co]):
    """What a stage returns: its result, and the value that later stages need (None when there is none)."""

    result: StageResult
    value: T_co | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The answer of a run, and the reasons for it, most important first."""

    kind: VerdictKind
    reasons: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.reasons:
            msg = "a verdict needs a reason"
            raise ValueError(msg)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """Where and how the run was made. started is ISO 8601 in UTC; finished is False while stages are still to come."""

    version: str
    started: str
    command: str
    duration_s: float = 0.0
    finished: bool = False
    machine: tuple[tuple[str, str], ...] = ()
    stopped_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything that results.json holds. verdict and reasons come from verdict.judge()."""

    verdict: VerdictKind
    reasons: tuple[str, ...]
    run: RunInfo
    series: Series | None = None
    base: BaseInfo | None = None
    apply: ApplyResult | None = None
    stages: tuple[StageResult, ...] = ()
    schema: str = field(default=SCHEMA)
