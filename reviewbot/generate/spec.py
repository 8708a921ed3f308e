"""Specs of sample types and records: TOML text in, checked values out.

A layout is a list of fields in the order in which the kernel writes them. A field's count and condition are
expressions over earlier fields of the layout, ``attr.NAME`` (struct perf_event_attr), ``misc`` (of the record's
header) and UAPI constants. Proofs say what a value must be (proof.py). What does not follow the grammar is refused with
SpecError: it would end in generated C.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from reviewbot.generate.bits import BitSpec, Kind, kind_of, parse_bit, parse_family
from reviewbot.generate.expression import SpecError, c_expression
from reviewbot.generate.proof import Fact, Proof, merge_facts, parse_facts, parse_proofs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_SpecT = TypeVar("_SpecT")
_ValueT = TypeVar("_ValueT")
SCALARS = {"u8": 1, "u16": 2, "u32": 4, "u64": 8}
C_KEYWORDS = frozenset(
    [
        "auto",
        "break",
        "case",
        "char",
        "const",
        "continue",
        "default",
        "do",
        "double",
        "else",
        "enum",
        "extern",
        "float",
        "for",
        "goto",
        "if",
        "inline",
        "int",
        "long",
        "register",
        "restrict",
        "return",
        "short",
        "signed",
        "sizeof",
        "static",
        "struct",
        "switch",
        "typedef",
        "union",
        "unsigned",
        "void",
        "volatile",
        "while",
        "bool",
    ]
)
_IDENTIFIER = re.compile(r"[a-z]\w*\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field: type is u8, u16, u32, u64, bytes, string, padding or the name of a shared type.

    count is the number of elements ("" for a scalar), when the condition under which it is there ("" for always).
    """

    name: str
    type: str
    count: str = ""
    when: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleSpec:
    """One bit of attr.sample_type.

    place orders the payloads within a PERF_RECORD_SAMPLE, sample_id within struct sample_id (0: not part of it).
    proofs say what its values must be; oracle names the C function that knows more ("": none). rule names the rule that
    a wrong value breaks, own_rule describes it where rules.toml does not. attr holds attr fields that the bit needs.
    held_in names the ``struct.member`` that hold its values in the kernel until they are written. proposed: no released
    kernel has it, its bit may become another type's.
    """

    name: str
    bit: int
    place: int
    summary: str
    layout: tuple[Field, ...]
    oracle: str = ""
    sample_id: int = 0
    needs: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    structs: tuple[str, ...] = ()
    held_in: tuple[str, ...] = ()
    attr: tuple[tuple[str, str], ...] = ()
    facts: tuple[Fact, ...] = ()
    proofs: tuple[Proof, ...] = ()
    rule: str = ""
    own_rule: tuple[tuple[str, object], ...] = ()
    proposed: bool = False

    @property
    def short(self) -> str:
        """Name without PERF_SAMPLE_, as it stands in names of cases."""
        return self.name.removeprefix("PERF_SAMPLE_")

    @property
    def member(self) -> str:
        """Name of its member in the decoded struct sample."""
        return self.short.lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSpec:
    """One record type that is not a sample; sample_id says whether the trailer follows under attr.sample_id_all.

    misc are the misc bits that its header may have, programs the test programs whose cases prove it, rule the rule that
    these name, and needs what machine it takes.
    """

    name: str
    value: int
    summary: str
    layout: tuple[Field, ...]
    sample_id: bool = True
    asked_by: str = ""
    misc: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    structs: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    rule: str = ""

    @property
    def short(self) -> str:
        """Name without PERF_RECORD_, as it stands in names of cases."""
        return self.name.removeprefix("PERF_RECORD_")

    @property
    def member(self) -> str:
        """Name of its member in the decoded struct record."""
        return self.short.lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedType:
    """A packed layout of scalars and byte arrays with constant counts that several specs use; size in bytes."""

    name: str
    summary: str
    layout: tuple[Field, ...]

    @property
    def size_bytes(self) -> int:
        """Size of one element."""
        return sum(SCALARS.get(f.type, 1) * int(f.count or 1) for f in self.layout)


@dataclass(frozen=True, slots=True, kw_only=True)
class Specs:
    """All specs: samples in record order, records by value, and the bits and markers of all families."""

    samples: tuple[SampleSpec, ...]
    records: tuple[RecordSpec, ...]
    types: tuple[SharedType, ...]
    bits: tuple[BitSpec, ...] = ()

    def sample(self, name: str) -> SampleSpec | None:
        """Return the spec of PERF_SAMPLE_name, or None."""
        return next((s for s in self.samples if s.name == name), None)


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
        attr=tuple((k, str(v)) for k, v in _take(data, "attr", dict, {}).items()),
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


def _is_constant(field: Field) -> bool:
    return not field.when and (field.type in SCALARS or (field.type == "bytes" and field.count.isdigit()))


def build_specs(
    samples: Mapping[str, str],
    records: Mapping[str, str],
    types: str,
    *,
    families: Mapping[str, str] | None = None,
    own: Mapping[str, str] | None = None,
) -> Specs:
    """Return all specs from file name → TOML text; checks that names, bits, places and values are unique.

    families are those of misc bits, markers and attr bits.

    own are a user's, of any kind: one replaces the spec of the same name, and its bit may be that of a type which
    the user's tree does not have (settle() gives that one another). Raises SpecError with the file's name in front.
    """
    shared = parse_types(types)
    known = set(SCALARS) | {"bytes", "string", "padding"} | {t.name for t in shared}
    read_samples = [_named(file, text, parse_sample) for file, text in samples.items()]
    read_records = [_named(file, text, parse_record) for file, text in records.items()]
    read_bits = [bit for file, text in (families or {}).items() for bit in _named(file, text, parse_family)]
    own_specs = [_named(file, text, parse_any) for file, text in (own or {}).items()]
    own_samples = [s for s in own_specs if isinstance(s, SampleSpec)]
    for specs in (read_samples, own_samples):
        _unique([(s.name, s.bit) for s in specs], ("name", "bit"))
    names = {s.name for s in own_specs}
    _bits_free(own or {}, own_specs, [s for s in read_samples if not s.proposed])
    read_samples = [s for s in read_samples if s.name not in names] + own_samples
    read_records = [r for r in read_records if r.name not in names]
    read_records += [r for r in own_specs if isinstance(r, RecordSpec)]
    read_bits = [b for b in read_bits if b.name not in names] + [b for b in own_specs if isinstance(b, BitSpec)]
    _unique([(b.name,) for b in read_bits], ("name",))
    everything: tuple[SampleSpec | RecordSpec, ...] = (*read_samples, *read_records)
    for spec in everything:
        _check_layout(spec, known)
    _unique([(s.name, s.place) for s in read_samples], ("name", "place"))
    _unique([(r.name, r.value) for r in read_records], ("name", "value"))
    _unique([(s.sample_id,) for s in read_samples if s.sample_id], ("sample_id",))
    merge_facts([s.facts for s in read_samples])
    return Specs(
        samples=tuple(sorted(read_samples, key=lambda s: s.place)),
        records=tuple(sorted(read_records, key=lambda r: r.value)),
        types=shared,
        bits=tuple(read_bits),
    )


def parse_any(text: str) -> SampleSpec | RecordSpec | BitSpec:
    """Read one spec of any kind: its name says of which. Raises SpecError and TOMLDecodeError."""
    data = tomllib.loads(text)
    name = str(data.pop("name", ""))
    kind = kind_of(name)
    if kind is None:
        return parse_sample(text)
    return parse_record(text) if kind is Kind.RECORD else parse_bit(name, data)


def settle(specs: Specs, header: Mapping[str, int]) -> Specs:
    """Return specs with the bits that the types have in a header (name → value).

    A type that the header does not have gets a bit that nothing there has: it may be of another tree, where its bit
    means something else.
    """
    bits = {name: value.bit_length() - 1 for name, value in header.items() if value.bit_count() == 1}
    taken = set(bits.values())
    free = sorted(set(range(64)) - taken - {s.bit for s in specs.samples})
    for spec in specs.samples:
        if spec.name not in bits:
            bits[spec.name] = free.pop() if spec.bit in taken else spec.bit
            taken.add(bits[spec.name])
    return replace(specs, samples=tuple(replace(s, bit=bits[s.name]) for s in specs.samples))


def _named(file: str, text: str, parse: Callable[[str], _SpecT]) -> _SpecT:
    try:
        return parse(text)
    except (SpecError, tomllib.TOMLDecodeError) as error:
        msg = f"{file}: {error}"
        raise SpecError(msg) from error


def _bits_free(
    files: Mapping[str, str], own: list[SampleSpec | RecordSpec | BitSpec], samples: list[SampleSpec]
) -> None:
    taken = {s.bit: s.name for s in samples}
    for file, spec in zip(files, own, strict=True):
        if isinstance(spec, SampleSpec) and taken.get(spec.bit, spec.name) != spec.name:
            msg = f"{file}: bit = {spec.bit} is that of {taken[spec.bit]}"
            raise SpecError(msg)


def _unique(rows: list[tuple[object, ...]], names: tuple[str, ...]) -> None:
    for name, column in zip(names, zip(*rows, strict=True), strict=False):
        twice = {value for value in column if column.count(value) > 1}
        if twice:
            msg = f"{name} used twice: {', '.join(map(str, twice))}"
            raise SpecError(msg)


def _check_layout(spec: SampleSpec | RecordSpec, known: set[str]) -> None:
    seen: set[str] = set()
    for field in spec.layout:
        if field.type not in known or not _IDENTIFIER.match(field.name) or field.name in seen:
            msg = f"{spec.name}.{field.name}: unknown type {field.type!r}, or a name that is no C word or used twice"
            raise SpecError(msg)
        if field.name in C_KEYWORDS:
            msg = f"{spec.name}: layout: name = {field.name!r} is a word of C"
            raise SpecError(msg)
        if (field.type == "bytes") and not field.count:
            msg = f"{spec.name}.{field.name}: bytes need a count"
            raise SpecError(msg)
        for text in (field.count, field.when):
            c_expression(text, frozenset(seen), "v")
        seen.add(field.name)


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
    return tuple(str(word) for word in _take(data, key, list, []))


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
