"""KTAP: the results of selftests and KUnit, nested.

In: the text of a log. Out: a KtapResult: a tree of tests, the same as flat cases, and notes about what was odd.
Accepted: KTAP 1, TAP 13 and 14, nesting by indentation and by the ``# `` of the kselftest runner, plans before,
after or missing, printk prefixes and unknown lines between. Absence never passes: an empty log, a planned result
that never came, a level without its parent's result line are errors or "not run".

A level opens with a version line or a plan; a result line at a depth that nobody opened is a diagnostic, because a
test can print anything. TIMEOUT is a failure (the reason says so); ERROR is an error; TODO and XFAIL with a failing
result are "skip" with the reason "expected failure".

Source: Documentation/dev-tools/ktap.rst
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from reviewbot.parse.ktap_lines import Bail, Line, Plan, Result, Subtest, Version, clean, read_line
from reviewbot.parse.ktap_result import BY_HARM, KtapCase, KtapResult, KtapTest, TapOutcome, own_outcome
from reviewbot.parse.ktap_text import Totals, failure_message, kept, program_name, unique

__all__ = ["KtapCase", "KtapResult", "KtapTest", "TapOutcome", "parse_ktap"]

_MAX_DEPTH = 16
_MAX_NOT_RUN = 1000
_MAX_NOTES = 100


def parse_ktap(text: str) -> KtapResult:
    """Return what a KTAP log says; no text makes it raise.

    Source: Documentation/dev-tools/ktap.rst
    """
    if not text.strip():
        return KtapResult(error="the log is empty")
    reader = _Reader()
    lines = text.split("\n")
    for line in lines:
        reader.feed(clean(line))
    if lines[-1].strip():
        reader.note("the last line is cut off: it has no line end")
    return reader.finish()


@dataclass(slots=True)
class _Level:
    # One open level: what it planned, what came, and the lines that wait for the result that they belong to.
    prefix: str
    name: str = ""
    plan: int | None = None
    skip: str = ""
    bail: str = ""
    bailed: bool = False
    tests: list[KtapTest] = field(default_factory=list)
    numbers: dict[int, int] = field(default_factory=dict)  # number of a result -> its place in tests
    done: list[KtapTest] = field(default_factory=list)  # of earlier blocks at this depth
    last: int = 0  # the number of the last result
    totals: Totals | None = None
    pending: list[str] = field(default_factory=list)


class _Reader:
    def __init__(self) -> None:
        self._levels: list[_Level] = []
        self._notes: list[str] = []

    def note(self, text: str) -> None:
        if len(self._notes) < _MAX_NOTES and text not in self._notes:
            self._notes.append(text)

    def feed(self, line: str) -> None:
        found = read_line(line)
        if found is None or not self._take(found):
            self._diagnostic(line)

    def _take(self, line: Line) -> bool:
        # True when the line is part of the structure; False makes it a diagnostic.
        match line:
            case Version():
                return self._version(line.prefix)
            case Plan():
                return self._plan(line)
            case Result():
                return self._result(line)
            case Bail():
                return self._bail(line)
            case Subtest():
                if self._levels and self._levels[-1].prefix == line.prefix:
                    self._levels[-1].name = line.name
                return False

    def _at(self, prefix: str) -> _Level | None:
        return next((level for level in self._levels if level.prefix == prefix), None)

    def _close_down_to(self, level: _Level) -> None:
        # Every deeper level ended without its parent's result line.
        while self._levels[-1] is not level:
            self._orphan()

    def _orphan(self) -> None:
        level = self._levels.pop()
        parent = self._levels[-1]
        children = self._close(level)
        number = parent.last + 1
        while number in parent.numbers:
            number += 1
        name = level.name or program_name(parent.pending) or f"test {number}"
        self.note(f"{name}: no result line")
        parent.numbers[number], parent.last = len(parent.tests), number
        text = kept([*parent.pending, *level.pending])
        parent.pending.clear()
        reason = "ended without a result line"
        parent.tests.append(
            KtapTest(name=name, outcome=TapOutcome.ERROR, reason=reason, diagnostics=text, children=children)
        )

    def _open(self, prefix: str) -> bool:
        if self._levels and len(prefix) <= len(self._levels[-1].prefix):
            while len(self._levels) > 1 and len(self._levels[-1].prefix) >= len(prefix):
                self._orphan()
        if len(self._levels) >= _MAX_DEPTH:
            self.note(f"nested deeper than {_MAX_DEPTH} levels: taken as text")
            return False
        self._levels.append(_Level(prefix))
        return True

    def _version(self, prefix: str) -> bool:
        level = self._at(prefix)
        if level is None:
            return self._open(prefix)
        self._close_down_to(level)
        if level.tests or level.plan is not None:
            level.done = list(self._close(level))
            level.tests, level.numbers, level.last, level.totals = [], {}, 0, None
            level.plan, level.skip, level.bailed = None, "", False
        return True

    def _plan(self, line: Plan) -> bool:
        level = self._at(line.prefix)
        if level is None:
            if not self._open(line.prefix):
                return False
            level = self._levels[-1]
            self.note("a plan without a version line")
        self._close_down_to(level)
        if level.plan is not None:
            self.note(f"two plans at one level: {level.plan} and {line.count}")
        level.plan = max(level.plan or 0, line.count)
        level.skip = level.skip or line.skip
        return True

    def _bail(self, line: Bail) -> bool:
        level = self._at(line.prefix)
        if level is None:
            return False
        self._close_down_to(level)
        level.bailed, level.bail = True, line.reason
        self.note(f"bailed out: {line.reason or 'no reason given'}")
        return False

    def _result(self, line: Result) -> bool:
        level = self._at(line.prefix)
        if level is None and not self._levels and not line.prefix:
            self.note("results without a version line")
            self._open("")
            level = self._levels[-1]
        if level is None:
            self.note(f"looks like a result, but nothing opened its level: {line.name or line.number}")
            return False
        children: tuple[KtapTest, ...] = ()
        inner: _Level | None = None
        if self._levels[-1] is not level:
            while self._levels[-2] is not level:
                self._orphan()
            inner = self._levels.pop()
            children = self._close(inner)
        lines = [*level.pending, *(inner.pending if inner else ())]
        level.pending.clear()
        self._add(level, line, self._test(line, inner, children, lines))
        return True

    def _add(self, level: _Level, line: Result, test: KtapTest) -> None:
        place, level.last = level.numbers.get(line.number), line.number
        if place is None:
            if line.number != len(level.numbers) + 1:
                self.note(f"{test.name}: number {line.number} where {len(level.numbers) + 1} was due")
            level.numbers[line.number] = len(level.tests)
        else:
            self.note(f"number {line.number} given twice: {level.tests[place].name}, {test.name}")
            if level.tests[place].name == test.name:
                level.tests[place] = max(level.tests[place], test, key=lambda t: BY_HARM.index(t.outcome))
                return
        level.tests.append(test)

    def _test(self, line: Result, inner: _Level | None, children: tuple[KtapTest, ...], lines: list[str]) -> KtapTest:
        name = line.name or (inner.name if inner else "") or f"test {line.number}"
        outcome, reason = own_outcome(line)
        if outcome is not TapOutcome.FAIL and inner is not None:
            changed = _group_outcome(inner, children)
            if changed is not None:
                outcome, reason = changed
                if line.ok and outcome is not TapOutcome.SKIP:
                    self.note(f"{name}: says ok, but {reason}")
        if outcome is TapOutcome.FAIL:
            said = failure_message(lines)
            if children and " subtests failed" not in reason:
                failed = sum(1 for test in children if test.outcome is TapOutcome.FAIL)
                said = f"{failed} of {len(children)} subtests failed" if failed else said or "no subtest failed"
            reason = ": ".join(part for part in (reason, said) if part) or "not ok"
        return KtapTest(name=name, outcome=outcome, reason=reason, diagnostics=kept(lines), children=children)

    def _close(self, level: _Level) -> tuple[KtapTest, ...]:
        # The tests of a level that has ended: unique names, and what the plan still waits for.
        plan = level.plan
        if plan is not None and len(level.tests) > plan:
            self.note(f"{len(level.tests)} results for a plan of {plan}")
        if plan is None and level.tests:
            self.note("no plan: a missing result would go unnoticed")
        failed = sum(1 for test in level.tests if test.outcome in (TapOutcome.FAIL, TapOutcome.ERROR))
        if level.totals is not None and level.totals.failed != failed:
            self.note(f"the totals line says {level.totals.failed} failed, the results say {failed}")
        taken = dict.fromkeys((test.name for test in level.done), 1)
        named = [replace(test, name=unique(test.name, taken)) for test in level.tests]
        return (*level.done, *named, *self._not_run(level, taken))

    def _not_run(self, level: _Level, taken: dict[str, int]) -> list[KtapTest]:
        missing = (level.plan or 0) - sum(1 for n in level.numbers if 0 < n <= (level.plan or 0))
        if missing <= 0:
            return []
        self.note(f"{missing} of {level.plan} planned results are missing")
        reason = f"bailed out: {level.bail}".rstrip(": ") if level.bailed else "planned, but no result came"
        names: list[str] = []
        for number in range(1, (level.plan or 0) + 1):
            if len(names) == _MAX_NOT_RUN:
                names.append(f"{missing - _MAX_NOT_RUN} more tests")
                break
            if number not in level.numbers:
                names.append(f"test {number}")
        return [KtapTest(name=unique(name, taken), outcome=TapOutcome.NOT_RUN, reason=reason) for name in names]

    def _diagnostic(self, line: str) -> None:
        if not self._levels or not line.strip():
            return
        level = self._levels[-1]
        text = line.removeprefix(level.prefix)
        level.pending.append(text)
        level.totals = Totals.read(text) or level.totals

    def finish(self) -> KtapResult:
        if not self._levels:
            return KtapResult(error="no KTAP in the log", notes=tuple(self._notes))
        root = self._levels[0]
        self._close_down_to(root)
        tests = self._close(root)
        error = ""
        if root.bailed:
            error = f"bailed out: {root.bail or 'no reason given'}"
        elif not tests and not root.skip:
            error = "planned no tests" if root.plan == 0 else "a version line, but no plan and no results"
        return KtapResult(
            tests=tests,
            error=error,
            skipped="" if tests else root.skip,
            notes=tuple(self._notes),
            diagnostics=kept(root.pending),
        )


def _group_outcome(level: _Level, children: tuple[KtapTest, ...]) -> tuple[TapOutcome, str] | None:
    # What the subtests make of a parent that did not fail by itself; None leaves it as it is.
    count = {outcome: sum(1 for test in children if test.outcome is outcome) for outcome in TapOutcome}
    if count[TapOutcome.FAIL]:
        return TapOutcome.FAIL, f"{count[TapOutcome.FAIL]} of {len(children)} subtests failed"
    if level.bailed:
        return TapOutcome.ERROR, f"bailed out: {level.bail}".rstrip(": ")
    if unfinished := count[TapOutcome.ERROR] + count[TapOutcome.NOT_RUN]:
        return TapOutcome.ERROR, f"{unfinished} of {len(children)} subtests did not finish"
    if level.skip and not children:
        return TapOutcome.SKIP, level.skip
    if children and count[TapOutcome.SKIP] == len(children):
        return TapOutcome.SKIP, "all subtests were skipped"
    return None
