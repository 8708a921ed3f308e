"""From UAPI headers and a series' diff to the sample types, records and bits that its tests are about.

In: the text of include/uapi/linux/perf_event.h at base and at patched, and the normalised ``git diff`` from base to
patched (with function context where the caller has it: ``git diff -W``). Out: a Scope. Nothing is read from disk.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reviewbot.generate.bits import Kind
from reviewbot.generate.parts import ScopedPart, expand_masks, find_parts
from reviewbot.generate.skeleton import documented_layout, documented_types, provisional_spec
from reviewbot.generate.touched import read_touched
from reviewbot.parse.uapi import duplicates, parse_enum

if TYPE_CHECKING:
    from reviewbot.generate.spec import Field, SampleSpec, Specs
    from reviewbot.generate.touched import Touched

ENUM = "perf_event_sample_format"
_WORD = re.compile(r"\b[A-Za-z_]\w*\b")
_PADDING = re.compile(r"\b(\w+)[ \t]*;[ \t]*/\*[ \t]*align\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopedType:
    """One sample type in scope: new is True when base's header does not have it; why says what brought it in.

    comment is what is wrong with its layout in the header's comment ("": nothing, or not looked at).
    """

    name: str
    value: int
    new: bool
    why: str
    comment: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What the generated tests cover.

    types are in the order of their value. all_types is every type of the patched header (name, value), without
    PERF_SAMPLE_MAX. unverified are the types in scope whose payload no spec describes: only generic tests run for them.
    names is every word of the patched header; empty: not looked at, all are there. padding are the members that its
    comments call alignment: nobody promises that a kernel looks at them.
    provisional are specs made from the UAPI comment for every type that has none. parts are the other parts of the ABI
    that the series adds or touches; with every, the tests of all parts are asked for. notes are one line each.
    """

    types: tuple[ScopedType, ...]
    all_types: tuple[tuple[str, int], ...]
    unverified: tuple[str, ...] = ()
    parts: tuple[ScopedPart, ...] = ()
    notes: tuple[str, ...] = ()
    names: frozenset[str] = frozenset()
    padding: frozenset[str] = frozenset()
    provisional: tuple[SampleSpec, ...] = ()
    every: bool = False

    @property
    def next_value(self) -> int:
        """The lowest bit that the patched header does not use: must be refused."""
        used = 0
        for _, value in self.all_types:
            used |= value
        return 1 << used.bit_length()

    @property
    def empty(self) -> bool:
        """True when the series has nothing to do with sample types, records, or their bits and markers."""
        return not self.types and not self.parts

    @property
    def records(self) -> tuple[str, ...]:
        """Names of the record types that the series adds or touches."""
        return tuple(p.name for p in self.parts if p.kind is Kind.RECORD)


def find_scope(base_header: str, patched_header: str, diff: str, specs: Specs, *, every: bool = False) -> Scope:
    """Return the sample types that the series adds or touches; every type with every=True.

    A type is in scope when it is new in patched_header, when a line that the diff adds or a condition around a changed
    line names it, when the diff changes a function or struct that its spec calls its own, or code that deals with every
    type. Records, misc bits, markers and attr bits likewise; they bring the types in which they are seen. Raises
    UapiError for a header without the enum.
    """
    base, patched = parse_enum(base_header, ENUM), parse_enum(patched_header, ENUM)
    real, before = (_types(values) for values in (patched, base))
    touched = read_touched(diff)
    expand_masks(touched, patched_header)
    parts = find_parts(base_header, patched_header, touched, specs)
    reasons = {n: _why(n, v, before, touched, specs.sample(n)) for n, v in real.items()}
    for part in parts:
        for name in (n for n in part.types if not reasons.get(n, "-")):
            reasons[name] = f"{part.name} is seen in it"
    if parts and not any(reasons.values()):
        reasons |= {s.name: "goes with every record (sample_id)" for s in specs.samples if s.sample_id}
    types = []
    for name, value in sorted(real.items(), key=lambda item: item[1]):
        why, new = reasons[name] or ("asked for" if every else ""), value not in before.values()
        if why:
            comment = _comment_problem(patched_header, name, specs) if name not in before else ""
            types.append(ScopedType(name=name, value=value, new=new, why=why, comment=comment))
    return Scope(
        types=tuple(types),
        all_types=tuple(sorted(real.items(), key=lambda item: item[1])),
        unverified=tuple(t.name for t in types if specs.sample(t.name) is None),
        parts=parts,
        notes=(*_notes(base, patched, real, specs), *(t.comment for t in types if t.comment)),
        names=frozenset(_WORD.findall(patched_header)),
        padding=frozenset(_PADDING.findall(patched_header)),
        provisional=tuple(provisional_spec(patched_header, n, v) for n, v in real.items() if not specs.sample(n)),
        every=every,
    )


def _types(values: dict[str, int]) -> dict[str, int]:
    return {name: value for name, value in values.items() if name != "PERF_SAMPLE_MAX"}


def _why(name: str, value: int, base: dict[str, int], touched: Touched, spec: SampleSpec | None) -> str:
    if name not in base:
        old = next((n for n, v in base.items() if v == value), "")
        return f"a new name of the bit of {old}" if old else "new in the UAPI header"
    if name in touched.named:
        return "named in an added line"
    if own := touched.owners & {*spec.functions, *spec.structs} if spec else set():
        return f"the series changes {', '.join(sorted(own))}"
    if name in touched.around:
        return "a changed line stands under a condition that names it"
    if touched.for_all:
        where = ", ".join(sorted(touched.for_all))
        return f"every type: a changed line of {where} stands under no condition on a type"
    return ""


def _comment_problem(header: str, name: str, specs: Specs) -> str:
    """Return what the layout comment says otherwise, or not at all, about a type; "" where there is no comment."""
    documented = documented_types(header)
    if not documented:
        return ""
    spec, layout = specs.sample(name), documented_layout(header, name)
    if name not in documented:
        return f"{name} has no layout in the comment of PERF_RECORD_SAMPLE"
    if spec and layout and _sizes(layout, specs) != _sizes(spec.layout, specs):
        return f"{name}: the layout in the comment of PERF_RECORD_SAMPLE is not the one in its spec"
    return ""


def _sizes(layout: tuple[Field, ...], specs: Specs) -> list[tuple[str, str]]:
    """Type and count of each field, with shared types laid out and reserved bytes and names left aside."""
    shared = {t.name: t.layout for t in specs.types}
    flat = [f for field in layout for f in (shared.get(field.type, (field,)) if not field.count else (field,))]
    return [(f.type, f.count) for f in flat]


def _notes(base: dict[str, int], patched: dict[str, int], real: dict[str, int], specs: Specs) -> tuple[str, ...]:
    notes = [f"{name} has the value of another sample type" for name in duplicates(real)]
    notes += [f"{name} was removed from the UAPI header" for name in base if name not in patched]
    notes += [f"{n} changed its value from {base[n]:#x} to {v:#x}" for n, v in real.items() if base.get(n, v) != v]
    notes += [f"{n} has no spec: its payload is not verified" for n in real if specs.sample(n) is None]
    for spec in specs.samples:
        if spec.name in real and real[spec.name] != 1 << spec.bit:
            notes.append(f"{spec.name} is {real[spec.name]:#x} in the header but bit {spec.bit} in its spec")
    limit = patched.get("PERF_SAMPLE_MAX")
    highest = max(real.values(), default=0)
    if limit is not None and limit != 1 << highest.bit_length():
        notes.append(
            f"PERF_SAMPLE_MAX is {limit:#x}, one bit above the highest type would be {1 << highest.bit_length():#x}"
        )
    return tuple(notes)
