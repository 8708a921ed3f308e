"""Specs of sample types and records as values: what the kernel writes, in which order, and what proves it.

A layout is a list of fields in the order in which the kernel writes them. A field's count and condition are
expressions over earlier fields of the layout, ``attr.NAME`` (struct perf_event_attr), ``misc`` (of the record's
header) and UAPI constants. Proofs say what a value must be (proof.py). spec_toml.py reads them, spec_set.py puts them
together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reviewbot.generate.bits import BitSpec
    from reviewbot.generate.proof import Fact, Proof

SCALARS = {"u8": 1, "u16": 2, "u32": 4, "u64": 8}


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
