"""Frozen values that the stages exchange and that results.json is made of.

Nothing here does I/O. A value that would be a lie cannot be built: see the __post_init__ methods.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, TypeVar

SCHEMA = "reviewbot-results-1"
# How a line of BaseInfo.candidates begins that a reader must not miss: another tree fits the series better.
BETTER_BASE = "a better base is in tree "

T_co = TypeVar("T_co", covariant=True)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """One patch of a series, decoded once: every str is text, with LF line ends.

    message is the commit message without the subject; diff starts at the first diff line and is what
    git is given. number and total are n and m of ``[PATCH n/m]`` (0 and 0 when the subject has none).
    author is empty when the input names none. date is an RFC 2822 date, or empty.
    """

    subject: str
    message: str
    diff: str
    author: str = ""
    date: str = ""
    msgid: str = ""
    number: int = 0
    total: int = 0
    notes: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """A patch series as it was understood; patches are in the order in which they are applied.

    revision is N of ``[PATCH vN]`` (1 when not given). missing holds the numbers n of the m patches that the
    input does not have. prefixes are the other words in the subject brackets (``net-next``, ``RFC``).
    notes say in one line each what a reader must know of the intake (dropped revisions, bad charsets, …).
    lists are the addresses of the mailing lists that it was sent to.
    """

    title: str
    patches: tuple[Patch, ...]
    cover: Patch | None = None
    revision: int = 1
    total: int = 0
    missing: tuple[int, ...] = ()
    prefixes: tuple[str, ...] = ()
    msgid: str = ""
    author: str = ""
    date: str = ""
    base_commit: str = ""
    change_id: str = ""
    prerequisites: tuple[str, ...] = ()
    source: str = ""
    notes: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()

    @property
    def slug(self) -> str:
        """File name of the series: ASCII letters, digits and dashes, at most 60 characters."""
        words = "".join(c if c.isascii() and c.isalnum() else "-" for c in self.title.lower())
        slug = "-".join(w for w in words.split("-") if w)[:60].strip("-") or "series"
        return f"v{self.revision}-{slug}" if self.revision > 1 else slug

    @property
    def missing_ranges(self) -> str:
        """The missing numbers as a reader writes them: ``1, 2, 4-8``."""
        runs: list[list[int]] = []
        for n in sorted(self.missing):
            if runs and n == runs[-1][-1] + 1:
                runs[-1].append(n)
            else:
                runs.append([n])
        parts = [[f"{r[0]}-{r[-1]}"] if len(r) > 2 else [str(n) for n in r] for r in runs]
        return ", ".join(word for part in parts for word in part)


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseInfo:
    """The commit that the series is tested on, and how it was chosen.

    describe is a human name (``7.2.9-1~bpo13+1``, ``v7.2-rc3-12-gabcdef``). candidates says, one line each, what else
    was tried and why it lost. verified is False for a tree without history, whose commit ids mean nothing elsewhere.
    """

    tree: str
    commit: str
    describe: str
    chosen_by: str
    candidates: tuple[str, ...] = ()
    verified: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class HunkFailure:
    """One hunk that found no place: the context it expects and the nearest place in the tree.

    line is the 1-based line that the hunk header names; nearest_line is 0 when the file has nothing alike.
    similarity is 0..1 (difflib ratio of expected to nearest). difference is a unified diff of the two.
    """

    patch: str
    file: str
    hunk: int
    header: str
    line: int
    expected: str
    nearest: str = ""
    nearest_line: int = 0
    similarity: float = 0.0
    difference: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedPatch:
    """One commit that apply made. role is "prerequisite" or "series"."""

    subject: str
    commit: str
    role: Blame
    files: tuple[str, ...] = ()
    insertions: int = 0
    deletions: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyResult:
    """State of applying prerequisites and series in order on base.

    prerequisite_commit is the tip of the prerequisites (the base commit when there are none); tip_commit is
    patched. Both are empty unless state is APPLIED or APPLIED_WITH_FUZZ.
    """

    state: ApplyState
    summary: str
    base_commit: str = ""
    prerequisite_commit: str = ""
    tip_commit: str = ""
    patches: tuple[AppliedPatch, ...] = ()
    failures: tuple[HunkFailure, ...] = ()
    evidence: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.applied and not self.tip_commit:
            msg = "an applied series has a tip commit"
            raise ValueError(msg)

    @property
    def applied(self) -> bool:
        """True when there is a patched tree to build."""
        return self.state in (ApplyState.APPLIED, ApplyState.APPLIED_WITH_FUZZ)


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """One rule that a case found broken: expected beside seen, and the record that shows it.

    rule is its name, text what it says, sources where it stands, one line each. level is FAIL, or WARN where a reader
    should judge. record is what the kernel wrote, decoded and as bytes; text and expected may be empty.
    """

    rule: str
    seen: str
    expected: str = ""
    text: str = ""
    sources: tuple[str, ...] = ()
    level: Status = Status.FAIL
    record: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceLine:
    """One line that the series adds: file and 1-based line in the patched tree, and the number of its patch.

    writes tells a line that writes a value itself from what stands around it, or what it reads.
    """

    patch: int
    file: str
    line: int
    function: str
    text: str
    writes: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that a reader should know; its identity is everything but line, excerpt and reproduce.

    severity is FAIL (a rule is broken), WARN (a reader should judge) or PASS (a note). Only an INTRODUCED finding
    with blame SERIES counts against the series. line is 1-based, 0 when unknown. A finding of tests names its cases and
    the breach that the first of them shows; lines are those of the series that write what is wrong, reproducer the path
    of a C file in the run directory.
    """

    title: str
    severity: Status
    origin: Origin
    blame: Blame = Blame.SERIES
    file: str = ""
    function: str = ""
    line: int = 0
    excerpt: str = ""
    reproduce: str = ""
    rule: str = ""
    breach: Breach | None = None
    lines: tuple[SourceLine, ...] = ()
    cases: tuple[str, ...] = ()
    reproducer: str = ""

    @property
    def counts(self) -> bool:
        """True when the finding counts against the series."""
        return self.origin is Origin.INTRODUCED and self.blame is Blame.SERIES


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One test case on both kernels: the status of each, and why in one line.

    runs and failures count the repeats on patched (k of n). excerpt is the KTAP diagnostics of the failing side, and
    breaches what it says, one a rule. reproduce is the command that runs this case alone, in a guest.
    """

    name: str
    base: Status
    patched: Status
    reason: str
    origin: Origin | None = None
    blame: Blame = Blame.SERIES
    runs: int = 1
    failures: int = 0
    excerpt: str = ""
    reproduce: str = ""
    breaches: tuple[Breach, ...] = ()

    @property
    def counts(self) -> bool:
        """True when the case counts against the series: it fails on patched, and the series introduced that."""
        return self.patched is Status.FAIL and self.origin is Origin.INTRODUCED and self.blame is Blame.SERIES

    @property
    def lost(self) -> bool:
        """True when base ran the case and patched skipped it; blame BASE says that the case is about base alone."""
        ran = self.base in (Status.PASS, Status.WARN, Status.FAIL)
        return ran and self.patched is Status.SKIP and self.blame in (Blame.SERIES, Blame.UNKNOWN)


def main_breach(case: Case) -> Breach:
    """Return the breach that stands for the case: the first of its level. The case has one."""
    return next((b for b in case.breaches if b.level is case.patched), case.breaches[0])


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
