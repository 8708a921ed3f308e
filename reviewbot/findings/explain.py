"""What the rules say about cases that broke them (pure).

In: cases with the names of the rules that they found broken, the rules, and the tree and series in which those stand.
Out: the same cases, each breach with the rule's text, its sources and its level. A case is WARN, not FAIL, when all
that it broke are rules that a reader should judge, or when base could not run it and breaks the same rule in other
cases of the same program: then nobody can tell from outside what of it is the series' own.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reviewbot.generate.rules import sources
from reviewbot.model import Origin, Status, main_breach
from reviewbot.parse.breaches import is_whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reviewbot.generate.rules import Rule, Tree
    from reviewbot.model import Breach, Case


def explain(cases: tuple[Case, ...], rules: Mapping[str, Rule], tree: Tree) -> tuple[Case, ...]:
    """Return the cases with their rules explained. A name that no rule has stays as it is, and its case fails."""
    explained = tuple(_case(case, rules, tree) if case.breaches else case for case in cases)
    on_base: dict[tuple[str, str], str] = {}
    for case in explained:
        if case.breaches and case.origin is Origin.PRE_EXISTING:
            on_base.setdefault(_place(case), case.name)
    return tuple(_as_on_base(case, on_base) for case in explained)


def _place(case: Case) -> tuple[str, str]:
    return case.name.partition("/")[0], main_breach(case).rule


def _as_on_base(case: Case, on_base: Mapping[tuple[str, str], str]) -> Case:
    # A new type where base breaks the rule with its own types: the fault is likely the one that base has.
    introduced = case.patched is Status.FAIL and case.origin is Origin.INTRODUCED and bool(case.breaches)
    if not introduced or case.base is not Status.SKIP or not (other := on_base.get(_place(case), "")):
        return case
    reason = f"{case.reason}; base breaks the same rule, {other} shows it"
    return replace(case, patched=Status.WARN, reason=reason)


def _case(case: Case, rules: Mapping[str, Rule], tree: Tree) -> Case:
    breaches = tuple(_breach(b, rules[b.rule], tree) if b.rule in rules else b for b in case.breaches)
    mild = is_whole(case.excerpt) and all(b.level is Status.WARN for b in breaches)
    patched = Status.WARN if mild and case.patched is Status.FAIL else case.patched
    return replace(case, breaches=breaches, patched=patched)


def _breach(breach: Breach, rule: Rule, tree: Tree) -> Breach:
    # A rule that stands nowhere in this tree and this series is one that a reader should judge.
    where = sources(rule, tree)
    return replace(breach, text=rule.text, sources=where, level=rule.level if where else Status.WARN)
