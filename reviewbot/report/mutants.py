"""What became of the mutants of a series: the values, and mutants.json, text and HTML from them (pure)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from reviewbot.report.clean import duration, one_line
from reviewbot.report.html import render_page

if TYPE_CHECKING:
    from collections.abc import Sequence

SCHEMA = "reviewbot-mutants-1"


class Fate(StrEnum):
    """What became of one mutant."""

    KILLED = "killed"
    SURVIVED = "survived"
    EQUIVALENT = "equivalent"  # provably behaves as the original; not counted
    INVALID = "invalid"  # does not compile, or is no part of this kernel; not counted
    NOT_RUN = "not run"  # the time was over, or the sample did not ask for it


@dataclass(frozen=True, slots=True, kw_only=True)
class MutantResult:
    """One mutant and what became of it.

    evidence names what differed from the right kernel (cases, a panic, a complaint), the first one first; reason says
    why it is equivalent or invalid, or what is known of a survivor. reached is False when no test came to the place.
    boots is how many ran. mark is what a person found out by reading ("equivalent", "unreachable"), note why.
    """

    ident: str
    number: int
    file: str
    line: int
    function: str
    operator: str
    before: str
    after: str
    fate: Fate = Fate.NOT_RUN
    evidence: tuple[str, ...] = ()
    reason: str = ""
    reached: bool | None = None
    boots: int = 0
    own_build: bool = False
    mark: str = ""
    note: str = ""

    @property
    def as_original(self) -> bool:
        """Whether it survived and is marked as one that no test can tell from the original."""
        return self.fate is Fate.SURVIVED and self.mark == "equivalent"

    @property
    def mark_is_wrong(self) -> bool:
        """Whether a test caught what the mark calls equivalent or unreachable."""
        return self.fate is Fate.KILLED and bool(self.mark)


@dataclass(frozen=True, slots=True, kw_only=True)
class MutationReport:
    """A whole run. key says what the results are about: they hold for this text and these tests alone.

    lines are the source lines of each mutant by ident; context is what stands around them, with the number of its first
    line.
    """

    series: str
    tree: str
    key: str
    seed: int
    sample: int
    results: tuple[MutantResult, ...]
    unread: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    finished: bool = False
    duration_s: float = 0.0
    lines: dict[str, str] = field(default_factory=dict)
    context: dict[str, tuple[int, tuple[str, ...]]] = field(default_factory=dict)
    schema: str = SCHEMA

    def of(self, fate: Fate) -> tuple[MutantResult, ...]:
        """Return the mutants with this fate."""
        return tuple(r for r in self.results if r.fate is fate)

    @property
    def tried(self) -> int:
        """How many were tried: killed and survived."""
        return len(self.of(Fate.KILLED)) + len(self.of(Fate.SURVIVED))

    @property
    def survivors(self) -> tuple[MutantResult, ...]:
        """Those that survived and are not marked as equivalent."""
        return tuple(r for r in self.of(Fate.SURVIVED) if not r.as_original)

    @property
    def marked(self) -> tuple[MutantResult, ...]:
        """Those that survived and are marked as equivalent."""
        return tuple(r for r in self.results if r.as_original)

    @property
    def wrong_marks(self) -> tuple[MutantResult, ...]:
        """Those that were killed in spite of a mark."""
        return tuple(r for r in self.results if r.mark_is_wrong)

    @property
    def valid(self) -> int:
        """How many were tried and are not marked as equivalent."""
        return self.tried - len(self.marked)

    @property
    def score(self) -> float:
        """Share of the valid ones that were killed, 0..1; 0 when none was tried."""
        return len(self.of(Fate.KILLED)) / self.valid if self.valid else 0.0


def place(result: MutantResult) -> str:
    """Return ``file:line function``."""
    return f"{result.file}:{result.line} {result.function}"


def change(result: MutantResult) -> str:
    """Return the change on one line."""
    after = one_line(result.after, 200) or "(nothing)"
    return f"{one_line(result.before, 200)} → {after}"


def why(result: MutantResult) -> str:
    """Return what is known of a mutant that was not killed."""
    return "; ".join(text for text in (result.mark and f"{result.mark}: {result.note}", result.reason) if text)


def around(report: MutationReport, result: MutantResult) -> tuple[tuple[int, str, bool], ...]:
    """Return (number, text, whether it is changed) of the source lines around a mutant."""
    first, lines = report.context.get(result.ident, (0, ()))
    last = result.line + result.before.count("\n")
    return tuple((n, text, result.line <= n <= last) for n, text in enumerate(lines, first))


def render_json(report: MutationReport) -> str:
    """Return mutants.json."""
    return msgspec.json.format(msgspec.json.encode(_clean(report)), indent=1).decode()


def parse_json(text: str) -> MutationReport:
    """Return the report of a mutants.json. Raises ValueError when it is none, or of another schema."""
    try:
        report = msgspec.json.decode(text.encode(), type=MutationReport)
    except msgspec.DecodeError as error:
        msg = f"not a mutants.json: {error}"
        raise ValueError(msg) from error
    if report.schema != SCHEMA:
        msg = f"a mutants.json of schema {report.schema!r}, not {SCHEMA!r}"
        raise ValueError(msg)
    return report


def _clean(report: MutationReport) -> MutationReport:
    # Source text can hold bytes that are no UTF-8; JSON cannot.
    texts = msgspec.to_builtins(report)
    return msgspec.convert(_valid(texts), MutationReport)


def _valid(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {key: _valid(item) for key, item in value.items()}
    return [_valid(item) for item in value] if isinstance(value, list | tuple) else value


def headline(report: MutationReport) -> str:
    """Return the answer in one line."""
    if not report.valid:
        return "No wrong kernel was tried."
    killed, tried = len(report.of(Fate.KILLED)), report.tried
    text = f"The tests caught {killed} of {report.valid} wrong kernels ({100 * report.score:.1f} %)."
    if marked := len(report.marked):
        text += f" With {marked} more that behave as the original: {killed} of {tried} ({100 * killed / tried:.1f} %)."
    return text


def tally(report: MutationReport) -> str:
    """Return how many of each fate there are."""
    counts = Counter(r.fate for r in report.results)
    return f"{len(report.results)} candidates: " + ", ".join(f"{counts[f]} {f}" for f in Fate if counts[f])


def render_text(report: MutationReport) -> str:
    """Return the report as plain text: the answer, then every survivor with its line."""
    out = [report.series, headline(report), tally(report) + f"; {duration(report.duration_s)}"]
    if not report.finished:
        out.append("The run is not complete; --resume goes on.")
    out += [f"{one_line(name)}: {one_line(value)}" for name, value in report.facts]
    wrong = [f"  {r.ident} {place(r)}: marked {r.mark}, but killed by {r.evidence[0]}" for r in report.wrong_marks]
    out += ["", "Marks that are wrong:", *wrong] if wrong else []
    if report.survivors:
        out += ["", "No test verifies these lines:"]
    for result in report.survivors:
        out.append(f"  {result.ident} {place(result)}: {result.operator}: {change(result)}")
        out += [f"    {one_line(line)}" for line in (report.lines.get(result.ident, ""), why(result)) if line]
    if report.marked:
        out += ["", "These behave as the original:"]
    for result in report.marked:
        out += [f"  {result.ident} {place(result)}: {change(result)}", f"    {one_line(result.note)}"]
    if report.unread:
        out += ["", f"Not read by the parser ({len(report.unread)} added lines): {', '.join(report.unread[:20])}"]
    return "\n".join(one_line(line, 1000) if not line.startswith(" ") else line for line in out) + "\n"


def render_list(report: MutationReport, order: Sequence[int]) -> str:
    """Return every candidate on a line of its own, in the order in which a sample draws them.

    A line has the ident that --only takes, the place, the change, and what is known of it without trying it.
    """
    known = {r.number: r for r in report.results}
    out = []
    for number in order:
        result = known[number]
        word, known_by = (result.mark, result.note) if result.mark else (result.fate, result.reason)
        note = f" [{word}: {one_line(known_by)}]" if word is not Fate.NOT_RUN else ""
        out.append(f"{result.ident} {place(result)}: {result.operator}: {change(result)}{note}")
    return "\n".join([*out, tally(report)]) + "\n"


def render_html(report: MutationReport) -> str:
    """Return the report as one page that loads nothing."""
    return render_page(
        "mutants.html.j2",
        report=report,
        fates=Fate,
        headline=headline(report),
        tally=tally(report),
        place=place,
        change=change,
        why=why,
        around=around,
    )
