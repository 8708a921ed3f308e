"""One spec from its TOML text: a sample type, a record, the shared types, or any of a user's own.

What does not follow the grammar is refused with SpecError: it would end in generated C. What only the other specs can
tell (a name or bit used twice, a type that is not there) is spec_set.py's.
"""

from __future__ import annotations

import re
import tomllib
from typing import TypeVar

from reviewbot.generate.bits import BitSpec, Kind, kind_of, parse_bit
from reviewbot.generate.expression import SpecError, c_expression
from reviewbot.generate.proof import parse_facts, parse_proofs
from reviewbot.generate.spec import SCALARS, Field, RecordSpec, SampleSpec, SharedType

_ValueT = TypeVar("_ValueT")
# Printable, and as they are in a C string.
_WORDS = re.compile(r"[A-Za-z_][ !#-\[\]-~]*")


def parse_sample(text: str) -> SampleSpec:
    """Read one sample spec; its first comment line is the summary. Raises SpecError."""
    data, summary = _toml(text)
    name, layout = _take(data, "name", str), _fields(data, "layout")
    rule, own_rule = _rule(data, name)
    spec = SampleSpec(
        name=name,
        bit=_take(data, "bit", int),
        place=_take(data, "place", int),
        summary=summary,
        layout=layout,
        oracle=_take(data, "oracle", str, ""),
        sample_id=_take(data, "sample_id", int, 0),
        needs=_words(data, "needs"),
        excludes=_words(data, "excludes"),
        functions=_words(data, "functions"),
        structs=_words(data, "structs"),
        held_in=_words(data, "held_in"),
        attr=_attr(_take(data, "attr", dict, {})),
        facts=parse_facts(_take(data, "facts", dict, {})),
        proofs=parse_proofs(_take(data, "proof", list, []), _scalars(layout)),
        rule=rule,
        own_rule=own_rule,
        proposed=_take(data, "proposed", bool, default=False),
    )
    _nothing_left(data, spec.name)
    if not re.fullmatch(r"PERF_SAMPLE_[A-Z0-9_]+", spec.name) or not 0 <= spec.bit < 64:
        msg = f"{spec.name}: a sample type is named PERF_SAMPLE_… and has a bit from 0 to 63"
        raise SpecError(msg)
    return spec


def _attr(table: dict[str, object]) -> tuple[tuple[str, str], ...]:
    """Fields of struct perf_event_attr, and what they are set to: a C expression of constants."""
    out = []
    for field, value in table.items():
        if not re.fullmatch(r"[a-z_][a-z0-9_]*", field):
            msg = f"[attr] {field!r} is no field of struct perf_event_attr"
            raise SpecError(msg)
        out.append((field, c_expression(str(value), frozenset(), "")))
    return tuple(out)


def _rule(data: dict[str, object], name: str) -> tuple[str, tuple[tuple[str, object], ...]]:
    """Name of the rule that a wrong value breaks, and what the spec says of it."""
    usual = "sample." + name.removeprefix("PERF_SAMPLE_").lower().replace("_", "-")
    rule = data.pop("rule", usual)
    if isinstance(rule, dict):
        return usual, tuple(rule.items())
    if not isinstance(rule, str):
        msg = "rule is the name of a rule, or a table that describes one"
        raise SpecError(msg)
    return rule, ()


def _scalars(layout: tuple[Field, ...]) -> frozenset[str]:
    return frozenset(f.name for f in layout if f.type in SCALARS and not f.count)


def parse_record(text: str) -> RecordSpec:
    """Read one record spec; its first comment line is the summary. Raises SpecError."""
    data, summary = _toml(text)
    spec = RecordSpec(
        name=_take(data, "name", str),
        value=_take(data, "value", int),
        summary=summary,
        layout=_fields(data, "layout"),
        sample_id=_take(data, "sample_id", bool, default=True),
        asked_by=_take(data, "asked_by", str, ""),
        misc=_words(data, "misc"),
        functions=_words(data, "functions"),
        structs=_words(data, "structs"),
        programs=_words(data, "programs"),
        needs=_words(data, "needs"),
        rule=_take(data, "rule", str, ""),
    )
    _nothing_left(data, spec.name)
    if not re.fullmatch(r"PERF_RECORD_[A-Z0-9_]+", spec.name):
        msg = f"{spec.name}: a record type is named PERF_RECORD_…"
        raise SpecError(msg)
    return spec


def parse_types(text: str) -> tuple[SharedType, ...]:
    """Read the shared types, one TOML table each. Raises SpecError."""
    types = []
    for name, table in tomllib.loads(text).items():
        shared = SharedType(name=name, summary=_take(table, "summary", str), layout=_fields(table, "layout"))
        _nothing_left(table, name)
        if any(
            f.when or (f.type not in SCALARS and not (f.type == "bytes" and f.count.isdigit())) for f in shared.layout
        ):
            msg = f"{name}: a shared type holds scalars and byte arrays of constant size"
            raise SpecError(msg)
        types.append(shared)
    return tuple(types)


def parse_any(text: str) -> SampleSpec | RecordSpec | BitSpec:
    """Read one spec of any kind: its name says of which. Raises SpecError and TOMLDecodeError."""
    data = tomllib.loads(text)
    name = str(data.pop("name", ""))
    kind = kind_of(name)
    if kind is None:
        return parse_sample(text)
    return parse_record(text) if kind is Kind.RECORD else parse_bit(name, data)


def _toml(text: str) -> tuple[dict[str, object], str]:
    first = text.lstrip().splitlines()[0] if text.strip() else ""
    if not first.startswith("# "):
        msg = "the first line is a comment that says what the spec describes"
        raise SpecError(msg)
    if "*/" in first or "/*" in first or not first.isprintable():
        msg = f"{first[:80]!r}: the first line stands in a C comment: it can hold no /*, */ or control character"
        raise SpecError(msg)
    return tomllib.loads(text), first[2:].strip()


def _take(data: dict[str, object], key: str, kind: type[_ValueT], default: _ValueT | None = None) -> _ValueT:
    value = data.pop(key, default)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        msg = f"{key} must be a {kind.__name__}"
        raise SpecError(msg)
    return value


def _words(data: dict[str, object], key: str) -> tuple[str, ...]:
    words = _take(data, key, list, [])
    for word in words:
        if not isinstance(word, str) or not _WORDS.fullmatch(word):
            msg = f"{key} has {word!r}: it takes words in one line, without quotes or backslashes"
            raise SpecError(msg)
    return tuple(words)


def _fields(data: dict[str, object], key: str) -> tuple[Field, ...]:
    try:
        return tuple(Field(**item) for item in _take(data, key, list))
    except TypeError as error:
        msg = f"{key}: {error}"
        raise SpecError(msg) from error


def _nothing_left(data: dict[str, object], name: str) -> None:
    if data:
        msg = f"{name}: unknown keys {', '.join(data)}"
        raise SpecError(msg)
