"""Which records, misc bits, context markers and attr bits a series is about, and which tests hold them.

In: the UAPI header at base and at patched, what the diff touches, and the specs. Out: a ScopedPart for each.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reviewbot.generate.bits import Kind, kind_of
from reviewbot.generate.skeleton import render_part
from reviewbot.parse.abi import parse_header
from reviewbot.parse.uapi import UapiError, parse_enum

if TYPE_CHECKING:
    from reviewbot.generate.bits import BitSpec
    from reviewbot.generate.spec import RecordSpec, Specs
    from reviewbot.generate.touched import Touched

_WORD = re.compile(r"\b[A-Za-z_]\w*\b")
_ATTR = re.compile(r"\bstruct\s+perf_event_attr\s*\{(.*?)\n\};", re.DOTALL)
_BITS = re.compile(r"\b(\w+)\s*:\s*(\d+)\s*[,;]")
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_NO_RECORD = ("PERF_RECORD_SAMPLE", "PERF_RECORD_MAX")
_U64 = (1 << 64) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopedPart:
    """One part of the ABI in scope that is no sample type: why says what brought it in, new that base lacks it.

    value is that of the patched header (the position of an attr bit). programs are the test programs that hold it, rule
    the rule that their cases name. types are the sample types in which it is seen, records the record types that a misc
    bit belongs to, needs what it takes to see it. skeleton is a spec to begin with where there is none.
    """

    name: str
    kind: Kind
    value: int
    new: bool
    why: str
    programs: tuple[str, ...] = ()
    rule: str = ""
    types: tuple[str, ...] = ()
    records: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    skeleton: str = ""

    @property
    def title(self) -> str:
        """Name, kind and number in a few words."""
        number = f"bit {self.value}" if self.kind is Kind.ATTR else f"{self.value:#x}"
        of = f" of {', '.join(self.records)}" if self.records else ""
        return f"{self.name} ({self.kind}{of}, {number})"

    @property
    def line(self) -> str:
        """What is in scope, why, and what holds it, as one line of a report."""
        held = f"held by {', '.join(self.programs)}" + (f" ({self.rule})" if self.rule else "")
        return f"{self.title}: {self.why}; {held if self.programs else self.unheld}"

    @property
    def unheld(self) -> str:
        """Why no test holds it."""
        if self.skeleton:
            return "no spec: held by no test"
        return f"held by no test: needs {', '.join(self.needs)}" if self.needs else "held by no test"


def header_parts(header: str) -> dict[str, int]:
    """Return name → value of every record, misc bit, marker and attr bit (``attr.NAME`` → its position) of a header."""
    found = {n: v for n, v in _enum(header, "perf_event_type").items() if n not in _NO_RECORD}
    found |= _enum(header, "perf_callchain_context")
    macros = parse_header(header).macros
    found |= {n: m.value for n, m in macros.items() if n.startswith("PERF_RECORD_MISC_") and m.value is not None}
    position, struct = 0, _ATTR.search(header)
    for name, width in _BITS.findall(_COMMENT.sub("", struct[1])) if struct else ():
        if name.startswith("__"):
            break  # the reserved rest; what follows are the bits of other words
        found[f"attr.{name}"] = position
        position += int(width)
    return found


def expand_masks(touched: Touched, header: str) -> None:
    """Add to the words of touched the names that a macro of the header stands for."""
    for name, macro in parse_header(header).macros.items():
        for words in (touched.named, touched.around):
            if name.startswith("PERF_SAMPLE_") and name in words:
                words.update(_WORD.findall(macro.text))


def find_parts(base_header: str, patched_header: str, touched: Touched, specs: Specs) -> tuple[ScopedPart, ...]:
    """Return the parts that the series adds or touches, by kind and value."""
    base, patched = header_parts(base_header), header_parts(patched_header)
    known: dict[str, RecordSpec | BitSpec] = {r.name: r for r in specs.records}
    known |= {b.name: b for b in specs.bits}
    # A header that was not given whole still has the records of the specs.
    values = {s.name: s.value & _U64 for s in known.values()} | patched
    found = []
    for name, value in values.items():
        spec = known.get(name)
        if why := _why(name, new=name in patched and name not in base, touched=touched, spec=spec):
            found.append(_part(name, value, why, spec, specs, new=name in patched and name not in base))
    return tuple(sorted(found, key=lambda p: (list(Kind).index(p.kind), p.value, p.name)))


def _part(name: str, value: int, why: str, spec: RecordSpec | BitSpec | None, specs: Specs, *, new: bool) -> ScopedPart:
    kind = kind_of(name) or Kind.RECORD
    return ScopedPart(
        name=name,
        kind=kind,
        value=value,
        new=new,
        why=why,
        programs=spec.programs if spec else (),
        rule=spec.rule if spec else "",
        types=getattr(spec, "types", ("PERF_SAMPLE_CALLCHAIN",) if kind is Kind.MARKER else ()),
        records=tuple(r.name for r in specs.records if name in r.misc),
        needs=spec.needs if spec else (),
        skeleton="" if spec else render_part(name, kind, value),
    )


def _why(name: str, *, new: bool, touched: Touched, spec: RecordSpec | BitSpec | None) -> str:
    if new:
        return "new in the UAPI header"
    attr = name.removeprefix("attr.")
    if name in touched.named or (attr != name and attr in touched.attr):
        return "named in an added line"
    own = touched.owners & {*spec.functions, *getattr(spec, "structs", ())} if spec else set()
    if own:
        return f"the series changes {', '.join(sorted(own))}"
    return "a changed line stands under a condition that names it" if name in touched.around else ""


def _enum(header: str, name: str) -> dict[str, int]:
    try:
        return parse_enum(header, name)
    except UapiError:
        return {}
