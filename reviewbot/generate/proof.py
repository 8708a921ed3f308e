"""How a spec says where the value of a field can be proved; that in, C out.

A proof compares a field with expressions over the fields of its layout, ``attr.NAME``, ``misc``, constants, and

* ``TYPE.field``: another sample type's field, where the same sample has it;
* ``event.id``, ``task.pid``, ``task.tid``, ``task.cpu`` and ``task.bound``: what the test knows of itself;
* ``before.FACT`` and ``after.FACT``: a number that the test reads before the first event and after the last, from a
  clock or from a file of /proc or /sys. FACTS are there for every spec; a spec adds its own under ``[facts]``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reviewbot.generate.expression import SpecError, c_expression, dotted_names

if TYPE_CHECKING:
    from collections.abc import Mapping

_CLOCK = re.compile(r"CLOCK_[A-Z_]+\Z")
_FILE = re.compile(r"/(?:proc|sys)/[\w/.-]+\Z")
_KEY = re.compile(r"[\w :.-]+\Z")
_NAME = re.compile(r"[a-z]\w*\Z")
_TASK = {
    "event.id": "expect->event->id",
    "task.pid": "expect->pid",
    "task.tid": "expect->tid",
    "task.cpu": "(__u64)expect->cpu",
    "task.bound": "(expect->cpu >= 0)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A number that the test can read: a clock in ns, or in a file its word-th word or what stands behind key.

    Words are counted from 1 as in proc(5): what stands in parentheses is one.
    """

    name: str
    clock: str = ""
    file: str = ""
    word: int = 0
    key: str = ""


FACTS = (Fact(name="monotonic", clock="CLOCK_MONOTONIC"), Fact(name="thread_cputime", clock="CLOCK_THREAD_CPUTIME_ID"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What a field must be, as expressions (""): equal to, at least, at most; never less than in the sample before.

    when is the condition under which this can be told ("": always).
    """

    field: str
    equals: str = ""
    least: str = ""
    most: str = ""
    rises: bool = False
    when: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """One comparison of a proof as C: how (equal, least, most), with what, and how the spec says it.

    when are the C conditions under which it holds, and the other value is there.
    """

    how: str
    value: str
    said: str
    when: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CProof:
    """A proof as C: the field's value, and the comparisons. rises is its number in struct expect, or -1.

    when are the C conditions of the latter.
    """

    what: str
    value: str
    bounds: tuple[Bound, ...]
    rises: int = -1
    when: tuple[str, ...] = ()


def parse_facts(table: Mapping[str, object]) -> tuple[Fact, ...]:
    """Read the facts of a spec, one table each. Raises SpecError for one that names no clock, word or key to read."""
    facts = []
    for name, value in table.items():
        try:
            fact = Fact(name=name, **value) if isinstance(value, dict) else Fact(name=name)
        except TypeError as error:
            msg = f"facts: {name}: {error}"
            raise SpecError(msg) from error
        if not _NAME.match(name) or not _readable(fact):
            msg = f"facts: {name}: has a clock, or a file of /proc or /sys with a word's number or a key"
            raise SpecError(msg)
        facts.append(fact)
    return tuple(facts)


def _readable(fact: Fact) -> bool:
    if not all(isinstance(text, str) for text in (fact.clock, fact.file, fact.key)) or type(fact.word) is not int:
        return False
    if fact.clock:
        return bool(_CLOCK.match(fact.clock)) and not (fact.file or fact.word or fact.key)
    return bool(_FILE.match(fact.file)) and ((fact.word > 0 and not fact.key) or bool(_KEY.match(fact.key)))


def parse_proofs(rows: list[object], fields: frozenset[str]) -> tuple[Proof, ...]:
    """Read the proofs of a spec whose layout has these scalar fields. Raises SpecError."""
    proofs = []
    for row in rows:
        try:
            proof = Proof(**row) if isinstance(row, dict) else None
        except TypeError as error:
            msg = f"proof: {error}"
            raise SpecError(msg) from error
        if proof is None or proof.field not in fields or not isinstance(proof.rises, bool):
            msg = f"proof: {row} is of no scalar of the layout"
            raise SpecError(msg)
        if not all(isinstance(t, str) for t in (proof.equals, proof.least, proof.most, proof.when)):
            msg = f"proof of {proof.field}: equals, least, most and when are expressions in quotes"
            raise SpecError(msg)
        if not (proof.equals or proof.least or proof.most or proof.rises):
            msg = f"proof of {proof.field}: says nothing"
            raise SpecError(msg)
        proofs.append(proof)
    return tuple(proofs)


def merge_facts(groups: list[tuple[Fact, ...]]) -> tuple[Fact, ...]:
    """Return FACTS and those of all specs, each once. Raises SpecError for a name with two meanings."""
    known = {fact.name: fact for fact in FACTS}
    for fact in (f for group in groups for f in group):
        if known.setdefault(fact.name, fact) != fact:
            msg = f"facts: {fact.name} is used twice, for different numbers"
            raise SpecError(msg)
    return tuple(known.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The dotted names of proofs: facts in the order of their number; others maps TYPE.field to (C, C of its bit)."""

    facts: tuple[Fact, ...]
    others: Mapping[str, tuple[str, str]]

    def value(self) -> dict[str, str]:
        """Dotted name → C of its value."""
        return {
            **_TASK,
            **{f"{when}.{f.name}": f"expect->{when}[{i}]" for when in ("before", "after") for i, f in self._numbered()},
            **{name: value for name, (value, _) in self.others.items()},
        }

    def known(self, text: str) -> tuple[str, ...]:
        """C conditions under which every other type's field in text is in the sample, and every fact was read."""
        values = self.value()
        said = dict.fromkeys(dotted_names(text))
        bits = dict.fromkeys(self.others[name][1] for name in said if name in self.others)
        facts = [name for name in said if name.startswith(("before.", "after.")) and name in values]
        return (
            *(f"sample->bits & {bit}" for bit in bits),
            *(f'fact_known(expect, sample, {values[name]}, "{name}")' for name in facts),
        )

    def _numbered(self) -> enumerate[Fact]:
        return enumerate(self.facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The type that a proof is of: its name, its member in struct sample, and its fields with their conditions."""

    short: str
    member: str
    fields: Mapping[str, str]


def c_proof(proof: Proof, owner: Owner, names: Names, rises: int) -> CProof:
    """Return a proof as C; rises is its number, if it needs one. Raises SpecError for an unknown name."""
    decoded, values, fields = f"sample->{owner.member}", names.value(), frozenset(owner.fields)

    def text_of(expression: str) -> str:
        return c_expression(expression, fields, decoded, values)

    conditions = tuple(filter(None, (owner.fields[proof.field], proof.when)))
    when = tuple(c for condition in conditions for c in (*names.known(condition), text_of(condition)))
    bounds = tuple(
        Bound(how=how, value=text_of(said), said=said, when=(*names.known(said), *when))
        for how, said in (("equal", proof.equals), ("least", proof.least), ("most", proof.most))
        if said
    )
    return CProof(
        what=f"{owner.short}.{proof.field}",
        value=f"{decoded}.{proof.field}",
        bounds=bounds,
        rises=rises if proof.rises else -1,
        when=when,
    )
