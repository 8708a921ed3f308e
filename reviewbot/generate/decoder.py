"""Specs in, the values that the templates of the C decoder need out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from reviewbot.generate.expression import SpecError, c_expression
from reviewbot.generate.proof import CProof, Names, Owner, c_proof, merge_facts
from reviewbot.generate.rules import rule_macro
from reviewbot.generate.spec import SCALARS, Field

if TYPE_CHECKING:
    from reviewbot.generate.spec import RecordSpec, SampleSpec, SharedType, Specs

# Registers that tests ask for on x86-64: bx, cx, bp, sp, ip, flags, as asm/perf_regs.h numbers them.
REGS = (1, 2, 6, 7, 8, 9)
_IP = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class CField:
    """A field as C: its declaration, and how it is read.

    pointer: it points into the record. size: of one element, in bytes.
    """

    name: str
    type: str
    declaration: str
    size: int
    pointer: bool
    array: bool
    shared: bool
    count: str
    print_count: str
    when: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CSpec:
    """A sample type or record as C."""

    name: str
    short: str
    member: str
    summary: str
    layout: tuple[CField, ...]
    value: int
    misc_text: str = ""
    bit_text: str = ""
    excludes_text: str = "0"
    size_bytes: int = 0
    needs: tuple[str, ...] = ()
    oracle: str = ""
    rule: str = ""
    proofs: tuple[CProof, ...] = ()
    attr: tuple[tuple[str, str], ...] = ()


def decoder_context(specs: Specs) -> dict[str, object]:
    """Return the variables of decode.h.j2 and decode.c.j2. Raises SpecError for an unknown excluded type."""
    sizes = {**SCALARS, **{t.name: t.size_bytes for t in specs.types}}
    samples = {s.name: _sample(s, specs, sizes) for s in specs.samples}
    facts, proofs = merge_facts([s.facts for s in specs.samples]), _proofs(specs)
    samples = {name: replace(s, proofs=proofs.get(name, ())) for name, s in samples.items()}
    trailer = sorted((s for s in specs.samples if s.sample_id), key=lambda s: s.sample_id)
    return {
        "types": [_shared(t) for t in specs.types],
        "samples": list(samples.values()),
        "trailer": [samples[s.name] for s in trailer],
        "records": [_record(r, sizes) for r in specs.records],
        "regs_mask": sum(1 << r for r in REGS),
        "regs_ip": _IP,
        "facts": facts,
        "rising": sum(p.rises >= 0 for all_of_type in proofs.values() for p in all_of_type),
    }


def _proofs(specs: Specs) -> dict[str, tuple[CProof, ...]]:
    """Name of a sample type → its proofs as C. Those that compare with the sample before are numbered through."""
    others = {
        f"{s.short}.{f.name}": (f"sample->{s.member}.{f.name}", f"(1ULL << {s.bit})")
        for s in specs.samples
        for f in s.layout
        if f.type in SCALARS and not f.count
    }
    names = Names(facts=merge_facts([s.facts for s in specs.samples]), others=others)
    number, out = 0, {}
    for spec in (s for s in specs.samples if s.proofs):
        owner = Owner(short=spec.short, member=spec.member, fields={f.name: f.when for f in spec.layout})
        done = []
        for proof in spec.proofs:
            done.append(c_proof(proof, owner, names, number))
            number += proof.rises
        out[spec.name] = tuple(done)
    return out


def _sample(spec: SampleSpec, specs: Specs, sizes: dict[str, int]) -> CSpec:
    layout = _layout(spec.layout, f"s->{spec.member}", sizes)
    return CSpec(
        name=spec.name,
        short=spec.short,
        member=spec.member,
        summary=spec.summary,
        layout=layout,
        value=spec.bit,
        bit_text=f"(1ULL << {spec.bit})",
        excludes_text=" | ".join(_bit(name, specs) for name in spec.excludes) or "0",
        size_bytes=sum(f.size for f in layout),
        needs=spec.needs,
        oracle=spec.oracle,
        rule=rule_macro(spec.rule),
        attr=spec.attr,
    )


def _bit(name: str, specs: Specs) -> str:
    other = specs.sample(name)
    if other is None:
        msg = f"{name} has no spec"
        raise SpecError(msg)
    return f"(1ULL << {other.bit})"


def _record(spec: RecordSpec, sizes: dict[str, int]) -> CSpec:
    layout = _layout(spec.layout, f"r->{spec.member}", sizes)
    return CSpec(
        name=spec.name,
        short=spec.short,
        member=spec.member,
        summary=spec.summary,
        layout=layout,
        value=spec.value,
        misc_text=" | ".join(("PERF_RECORD_MISC_CPUMODE_MASK", *spec.misc)),
    )


def _layout(fields: tuple[Field, ...], owner: str, sizes: dict[str, int]) -> tuple[CField, ...]:
    seen: set[str] = set()
    out = []
    for field in fields:
        known = frozenset(seen)
        count = c_expression(field.count, known, owner) if field.count else ""
        when = c_expression(field.when, known, owner) if field.when else ""
        out.append(_field(field, count, when, sizes))
        seen.add(field.name)
    return tuple(out)


def _field(field: Field, count: str, when: str, sizes: dict[str, int]) -> CField:
    constant = field.count.isdigit() and field.type in ("bytes", "u8")
    pointer = (bool(field.count) and not constant) or field.type in ("string", "padding")
    return CField(
        name=field.name,
        type=field.type,
        declaration=_declaration(field, pointer=pointer),
        size=sizes.get(field.type, 1) * (int(field.count) if constant else 1),
        pointer=pointer,
        array=constant,
        shared=field.type not in SCALARS and field.type not in ("bytes", "string", "padding"),
        count=count,
        print_count="0" if "attr->" in count else count,
        when=when,
    )


def _declaration(field: Field, *, pointer: bool) -> str:
    if field.type in ("string", "padding"):
        return f"const char *{field.name}"
    kind = (
        "unsigned char"
        if field.type == "bytes"
        else f"__{field.type}"
        if field.type in SCALARS
        else f"struct {field.type}"
    )
    if pointer:
        return f"const {kind} *{field.name}"
    return f"{kind} {field.name}[{field.count}]" if field.count else f"{kind} {field.name}"


def _shared(shared: SharedType) -> SharedTypeC:
    return SharedTypeC(
        name=shared.name, summary=shared.summary, layout=tuple(_field(f, f.count, "", SCALARS) for f in shared.layout)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedTypeC:
    """A shared packed struct as C."""

    name: str
    summary: str
    layout: tuple[CField, ...]
