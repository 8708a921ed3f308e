"""What a reader should know of a series: findings, and the cases and broken rules behind them."""

from dataclasses import dataclass

from reviewbot.model.words import Blame, Origin, Status


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
