"""What the rules say about cases that broke them (pure).

In: cases with the names of the rules that they found broken, the rules, and the tree and series in which those stand.
Out: the same cases, each breach with the rule's text, its sources and its level. A case is WARN, not FAIL, when all
that it broke are rules that a reader should judge.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reviewbot.generate.rules import sources
from reviewbot.model import Status
from reviewbot.parse.breaches import is_whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reviewbot.generate.rules import Rule, Tree
    from reviewbot.model import Breach, Case


def explain(cases: tuple[Case, ...], rules: Mapping[str, Rule], tree: Tree) -> tuple[Case, ...]:
    """Return the cases with their rules explained. A name that no rule has stays as it is, and its case fails."""
    return tuple(_case(case, rules, tree) if case.breaches else case for case in cases)


def _case(case: Case, rules: Mapping[str, Rule], tree: Tree) -> Case:
    breaches = tuple(_breach(b, rules[b.rule], tree) if b.rule in rules else b for b in case.breaches)
    mild = is_whole(case.excerpt) and all(b.level is Status.WARN for b in breaches)
    patched = Status.WARN if mild and case.patched is Status.FAIL else case.patched
    return replace(case, breaches=breaches, patched=patched)


def _breach(breach: Breach, rule: Rule, tree: Tree) -> Breach:
    # A rule that stands nowhere in this tree and this series is one that a reader should judge.
    where = sources(rule, tree)
    return replace(breach, text=rule.text, sources=where, level=rule.level if where else Status.WARN)
