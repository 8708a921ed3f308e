"""The state of a mutation run: which mutants are tried, what became of each, saved after every one.

mutants.json is the report and the state at once. It holds for one text of the kernel and one text of the tests, which
its key says: with another key a run cannot go on.
"""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from reviewbot.errors import UsageError
from reviewbot.generate.marks import Mark, match_marks
from reviewbot.record import write_atomically
from reviewbot.report.mutants import Fate, MutantResult, MutationReport, parse_json, render_html, render_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from reviewbot.generate.mutants import Mutant

NAME = "mutants.json"
MARKS = "equivalent.toml"
_LINES_SHOWN = 3
_CONTEXT = 4  # lines before and after


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """seed orders the candidates; sample is how many valid ones are tried (0: all); budget_s is 0 for no limit.

    functions are FILE:NAME of functions that are mutated as a whole, beside the lines of the series. only are idents or
    numbers of the mutants that are tried instead of a sample, again where they were tried before. jobs is how many
    guests run at once.
    """

    seed: int = 0
    sample: int = 0
    budget_s: float = 0.0
    resume: bool = False
    functions: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    jobs: int = 1


@dataclass(slots=True, kw_only=True)
class Campaign:
    """What is known of each mutant, by number, and where it is saved."""

    out: Path
    report: MutationReport
    options: Options
    results: dict[int, MutantResult]
    facts: dict[str, str] = field(default_factory=dict)
    before_s: float = 0.0
    started: float = field(default_factory=time.monotonic)
    lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def order(self) -> list[int]:
        """Every number, in the order that the seed gives."""
        numbers = sorted(self.results)
        random.Random(self.options.seed).shuffle(numbers)  # noqa: S311 - a sample that can be drawn again
        return numbers

    def over(self) -> bool:
        """Return whether the time budget is spent."""
        return bool(self.options.budget_s) and time.monotonic() - self.started > self.options.budget_s

    def chosen(self) -> list[int]:
        """Return the numbers of the sample: the first ones in order that can be tried, or those that were named.

        One that is marked as equivalent is tried as any other, but another one is drawn for it.
        """
        if self.options.only:
            return [n for n in self.order if {str(n), self.results[n].ident} & set(self.options.only)]
        left, numbers = self.options.sample or len(self.results), list[int]()
        for number in self.order:
            result = self.results[number]
            if result.fate in (Fate.INVALID, Fate.EQUIVALENT):
                continue
            if left <= 0:
                break
            numbers.append(number)
            left -= 0 if result.mark == "equivalent" and result.fate is not Fate.KILLED else 1
        return numbers

    def waiting(self) -> list[int]:
        """Return the numbers of the sample that were not tried yet, those that need no build of their own first."""
        left = [n for n in self.chosen() if self.results[n].fate is Fate.NOT_RUN]
        return sorted(left, key=lambda n: self.results[n].own_build)

    def settle(self, number: int, **changes: object) -> None:
        """Keep what became of a mutant, and save."""
        with self.lock:
            self.results[number] = replace(self.results[number], **changes)  # type: ignore[arg-type]
            self.save()

    def current(self) -> MutationReport:
        """Return what is known by now."""
        return replace(
            self.report,
            results=tuple(self.results[n] for n in sorted(self.results)),
            facts=tuple(self.facts.items()),
            finished=not self.waiting(),
            duration_s=self.before_s + time.monotonic() - self.started,
        )

    def save(self) -> MutationReport:
        """Write mutants.json and mutants.html by atomic rename, and return what they hold."""
        report = self.current()
        write_atomically(self.out / NAME, render_json(report))
        write_atomically(self.out / "mutants.html", render_html(report))
        return report


def open_campaign(
    out: Path, report: MutationReport, options: Options, mutants: Sequence[Mutant], marks: Sequence[Mark] = ()
) -> Campaign:
    """Return a new campaign, or the one that out holds when options ask to go on; marks are about some mutants.

    Raises UsageError when there is nothing to go on with, when it was about another text or other tests, or when a
    mutant is named that there is not. So it does for a mark that fits several mutants.
    """
    results = {m.number: _fresh(m) for m in mutants}
    known = {word for m in mutants for word in (m.ident, str(m.number))}
    if unknown := sorted(set(options.only) - known):
        msg = f"--only {','.join(unknown)}: no such mutant (--list shows them all)"
        raise UsageError(msg)
    campaign = Campaign(out=out, report=report, options=options, results=results)
    if options.resume:
        _go_on(campaign)
    _mark(campaign, marks, mutants)
    return campaign


def _mark(campaign: Campaign, marks: Sequence[Mark], mutants: Sequence[Mutant]) -> None:
    try:
        found, stale = match_marks(marks, mutants)
    except ValueError as error:
        msg = f"{MARKS}: {error}"
        raise UsageError(msg) from error
    for number, result in campaign.results.items():
        mark = found.get(number)
        campaign.results[number] = replace(result, mark=mark.kind if mark else "", note=mark.reason if mark else "")
    if stale:
        campaign.facts["marks without a mutant"] = "; ".join(mark.title for mark in stale)


def _go_on(campaign: Campaign) -> None:
    # Take over what an earlier run found, but for what is to be tried again.
    out, report = campaign.out, campaign.report
    path = out / NAME
    try:
        old = parse_json(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValueError) as error:
        msg = f"--resume: {path}: {error}"
        raise UsageError(msg) from error
    if old.key != report.key:
        msg = f"--resume: {path} is about other sources or other tests; leave out --resume to begin again"
        raise UsageError(msg)
    known = {r.ident: r for r in old.results}
    again = set(campaign.chosen()) if campaign.options.only else set()
    fresh = campaign.results
    campaign.results = {n: r if n in again else known.get(r.ident, r) for n, r in fresh.items()}
    campaign.facts, campaign.before_s = dict(old.facts), old.duration_s


def _fresh(mutant: Mutant) -> MutantResult:
    return MutantResult(
        ident=mutant.ident,
        number=mutant.number,
        file=mutant.file,
        line=mutant.line,
        function=mutant.function,
        operator=mutant.operator,
        before=mutant.before,
        after=mutant.after,
        fate=Fate.EQUIVALENT if mutant.equivalent else Fate.NOT_RUN,
        reason=mutant.equivalent,
        own_build=mutant.own_build,
    )


def source_lines(files: Mapping[str, bytes], mutants: Sequence[Mutant]) -> dict[str, str]:
    """Return the source lines of each mutant, by ident, for the report."""
    split = {path: text.decode("utf-8", "replace").split("\n") for path, text in files.items()}
    found = {}
    for mutant in mutants:
        last = min(mutant.last_line, mutant.line + _LINES_SHOWN - 1)
        found[mutant.ident] = "\n".join(split[mutant.file][mutant.line - 1 : last])
    return found


def source_context(files: Mapping[str, bytes], mutants: Sequence[Mutant]) -> dict[str, tuple[int, tuple[str, ...]]]:
    """Return the lines around each mutant, by ident: the number of the first one, and their texts."""
    split = {path: text.decode("utf-8", "replace").split("\n") for path, text in files.items()}
    found = {}
    for mutant in mutants:
        first = max(mutant.line - _CONTEXT, 1)
        found[mutant.ident] = (first, tuple(split[mutant.file][first - 1 : mutant.last_line + _CONTEXT]))
    return found
