"""All specs together: read, checked against each other, and settled on the bits of a tree's header.

In: TOML texts by file name. Out: Specs in which names, bits, places and values are unique and every layout can be
generated. What cannot is refused with SpecError, with the file or the spec in front.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from reviewbot.generate.bits import BitSpec, parse_family
from reviewbot.generate.expression import SpecError, c_expression
from reviewbot.generate.proof import merge_facts
from reviewbot.generate.spec import SCALARS, RecordSpec, SampleSpec, Specs
from reviewbot.generate.spec_toml import parse_any, parse_record, parse_sample, parse_types

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_SpecT = TypeVar("_SpecT")
_C_KEYWORDS = frozenset(
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
        if field.name in _C_KEYWORDS:
            msg = f"{spec.name}: layout: name = {field.name!r} is a word of C"
            raise SpecError(msg)
        if (field.type == "bytes") and not field.count:
            msg = f"{spec.name}.{field.name}: bytes need a count"
            raise SpecError(msg)
        for text in (field.count, field.when):
            c_expression(text, frozenset(seen), "v")
        seen.add(field.name)
