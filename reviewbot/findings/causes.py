"""From failing cases to the findings that an author reads: one for each root cause, as far as it can be told (pure).

In: cases with their breaches explained, the rules, the specs and the patched files. Out: findings, the gravest rule
first (rules.toml has them in that order). Cases belong together when they broke the same rule first, on the same lines
of the series, and count alike. A case without a breach (a program of others, or one that ended early) is in none.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from reviewbot.generate.writers import find_lines
from reviewbot.model import Blame, Breach, Case, Finding, Origin, SourceLine, Status, main_breach

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reviewbot.generate.rules import Rule
    from reviewbot.generate.spec import Specs
    from reviewbot.generate.writers import PatchedFile

_Key = tuple[Status, Origin, Blame, str, tuple[SourceLine, ...]]


def case_findings(
    cases: Sequence[Case], rules: Mapping[str, Rule], specs: Specs, files: Sequence[PatchedFile]
) -> tuple[Finding, ...]:
    """Return the findings of the cases that fail or warn on patched."""
    writers = _Writers(rules, specs, files)
    groups: dict[_Key, list[Case]] = {}
    for case in cases:
        if case.patched in (Status.FAIL, Status.WARN) and case.origin is not None and case.breaches:
            breach = main_breach(case)
            ours = case.blame is Blame.SERIES and case.origin is not Origin.PRE_EXISTING
            lines = writers.of(breach) if ours else ()
            groups.setdefault((case.patched, case.origin, case.blame, breach.rule, lines), []).append(case)
    order = {name: place for place, name in enumerate(rules)}
    made = [_finding(key, members) for key, members in groups.items()]
    return tuple(sorted(made, key=lambda f: order.get(f.rule, -1)))


def _finding(key: _Key, cases: Sequence[Case]) -> Finding:
    status, origin, blame, rule, lines = key
    breach = main_breach(cases[0])
    first = next((line for line in lines if line.writes), lines[0] if lines else None)
    return Finding(
        title=f"{breach.seen}; expected {breach.expected}" if breach.expected else breach.seen,
        severity=status,
        origin=origin,
        blame=blame,
        file=first.file if first else "",
        function=first.function if first else "",
        line=first.line if first else 0,
        reproduce=cases[0].reproduce,
        rule=rule,
        breach=breach,
        lines=lines,
        cases=tuple(case.name for case in cases),
    )


def without_records(case: Case) -> Case:
    """Return the case with the records left to its excerpt, which has them, too."""
    return replace(case, breaches=tuple(replace(b, record="") for b in case.breaches))


class _Writers:
    # The lines of the series that write what a breach is about; the same question is answered once.
    def __init__(self, rules: Mapping[str, Rule], specs: Specs, files: Sequence[PatchedFile]) -> None:
        self._rules = rules
        self._files = files
        self._records = {spec.short: frozenset(spec.functions) for spec in specs.records}
        self._held_in = {spec.short: frozenset(spec.held_in) for spec in specs.samples}
        self._known: dict[tuple[str, str, frozenset[str]], tuple[SourceLine, ...]] = {}

    def of(self, breach: Breach) -> tuple[SourceLine, ...]:
        writes = self._rules[breach.rule].writes if breach.rule in self._rules else ()
        # What a test says of a value begins with the name of its record or sample type: "CALLCHAIN[3]: …".
        name = re.split(r"[:\[]", breach.seen, maxsplit=1)[0]
        held_in = self._held_in.get(name, frozenset())
        key = (breach.rule, name if name in self._records else "", held_in)
        if writes and key not in self._known:
            # A sample is not written by what belongs to a record of another type, nor a value by what copies another.
            never = frozenset().union(*self._records.values()) if not key[1] else frozenset()
            others = frozenset().union(*self._held_in.values()) - held_in if held_in else frozenset()
            self._known[key] = find_lines(
                self._files,
                writes,
                first=self._records.get(key[1], frozenset()),
                never=never,
                held_in=held_in,
                others=others,
            )
        return self._known.get(key, ())
