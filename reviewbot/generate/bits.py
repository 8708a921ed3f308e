"""Specs of what is smaller than a record: misc bits of its header, context markers in callchains, bits of the attr.

A family is one TOML file with a table for each name; a user's own spec is one file with a ``name``. What does not
follow the grammar is refused with SpecError.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from enum import StrEnum

from reviewbot.generate.expression import SpecError


class Kind(StrEnum):
    """What a part of the ABI is; the value is how a report calls it."""

    RECORD = "record"
    MISC = "misc bit"
    MARKER = "context marker"
    ATTR = "attr bit"


_NAMES = {
    Kind.MISC: re.compile(r"PERF_RECORD_MISC_[A-Z0-9_]+"),
    Kind.RECORD: re.compile(r"PERF_RECORD_[A-Z0-9_]+"),
    Kind.MARKER: re.compile(r"PERF_CONTEXT_[A-Z0-9_]+"),
    Kind.ATTR: re.compile(r"attr\.[a-z_][a-z0-9_]*"),
}
_RANGE = {Kind.MISC: range(1 << 16), Kind.MARKER: range(-4095, 0), Kind.ATTR: range(64)}


@dataclass(frozen=True, slots=True, kw_only=True)
class BitSpec:
    """One misc bit, context marker or attr bit.

    value is the number of a misc bit or field of bits, the (negative) number of a marker, the position of an attr bit.
    functions are those of the kernel that are its own, types the sample types in which it is seen, programs the test
    programs whose cases prove it, and rule the rule that these name. needs says what machine it takes.
    """

    name: str
    kind: Kind
    value: int
    summary: str
    functions: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    rule: str = ""


def kind_of(name: str) -> Kind | None:
    """Return what name is the name of, or None."""
    return next((kind for kind, pattern in _NAMES.items() if pattern.fullmatch(name)), None)


def parse_family(text: str) -> tuple[BitSpec, ...]:
    """Return the specs of a family: a table for each name. Raises SpecError, and TOMLDecodeError."""
    return tuple(parse_bit(name, table) for name, table in tomllib.loads(text).items())


def parse_bit(name: str, table: object) -> BitSpec:
    """Return one spec. Raises SpecError."""
    kind = kind_of(name)
    if kind is None or kind is Kind.RECORD or not isinstance(table, dict):
        msg = f"{name}: a table of a PERF_RECORD_MISC_…, a PERF_CONTEXT_… or an attr.…"
        raise SpecError(msg)
    unknown = set(table) - {"value", "summary", "rule", "functions", "types", "programs", "needs"}
    if unknown:
        msg = f"{name}: unknown keys {', '.join(sorted(unknown))}"
        raise SpecError(msg)
    value = table.get("value")
    if not isinstance(value, int) or isinstance(value, bool) or value not in _RANGE[kind]:
        msg = f"{name}: value = {value!r}: a number from {_RANGE[kind][0]} to {_RANGE[kind][-1]}"
        raise SpecError(msg)
    return BitSpec(
        name=name,
        kind=kind,
        value=value,
        summary=_text(name, "summary", table.get("summary", "")),
        rule=_text(name, "rule", table.get("rule", "")),
        functions=_texts(name, "functions", table),
        types=_texts(name, "types", table),
        programs=_texts(name, "programs", table),
        needs=_texts(name, "needs", table),
    )


def _texts(name: str, key: str, table: dict[str, object]) -> tuple[str, ...]:
    items = table.get(key, [])
    if not isinstance(items, list):
        msg = f"{name}: {key} = {items!r}: a list of texts"
        raise SpecError(msg)
    return tuple(_text(name, key, item) for item in items)


def _text(name: str, key: str, item: object) -> str:
    if not isinstance(item, str):
        msg = f"{name}: {key} = {item!r}: a text"
        raise SpecError(msg)
    return item
