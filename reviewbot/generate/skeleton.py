"""The layout comment of PERF_RECORD_SAMPLE in, sample specs out: for types that nobody wrote a spec for.

The comment in include/uapi/linux/perf_event.h documents every payload as ``{ u64 nr; u64 ips[nr]; } && PERF_SAMPLE_X``
in record order. What it says is enough to decode a record, not to know what a value means: the specs have no oracle.
"""

from __future__ import annotations

import re

from reviewbot.generate.bits import Kind
from reviewbot.generate.spec import SCALARS, Field, SampleSpec

_COMMENT = re.compile(r"/\*((?:(?!\*/).)*?)\*/\s*PERF_RECORD_SAMPLE\b", re.DOTALL)
_TYPE = re.compile(r"\}\s*&&\s*(PERF_SAMPLE_[A-Z0-9_]+)")
_MEMBER = re.compile(r"(u8|u16|u32|u64|char)\s+([a-z_]\w*(?:\s*,\s*[a-z_]\w*)*)\s*(?:\[\s*(\w+)\s*\])?\s*[;,]?\s*")
_LAST_PLACE = 1_000_000


def documented_types(header: str) -> tuple[str, ...]:
    """Return the sample types that the layout comment documents, in its order."""
    return tuple(_TYPE.findall(_comment(header)))


def documented_layout(header: str, name: str) -> tuple[Field, ...] | None:
    """Return the layout that the comment gives for name; None when there is none, or none of plain fields."""
    match = re.search(rf"\{{([^{{}}]*)\}}\s*&&\s*{re.escape(name)}\b", _comment(header))
    return _fields(match[1]) if match else None


def provisional_spec(header: str, name: str, value: int) -> SampleSpec:
    """Return a spec for a type without one: the documented layout at its place, or all that is left at the end."""
    layout, order = documented_layout(header, name), documented_types(header)
    return SampleSpec(
        name=name,
        bit=value.bit_length() - 1,
        place=_LAST_PLACE + (order.index(name) if name in order else len(order)),
        summary="not verified: the layout is the UAPI comment's" if layout else "not verified, and not documented",
        layout=layout or (Field(name="rest", type="padding"),),
    )


def render_spec(spec: SampleSpec) -> str:
    """Return spec as the TOML file to begin with; place and proofs are the author's to choose."""
    rows = "".join(f"\t{{ {_row(field)} }},\n" for field in spec.layout)
    return (
        f"# {spec.summary}\n"
        f'name = "{spec.name}"\n'
        f"bit = {spec.bit}\n"
        f"place = {spec.place}  # between the places of the types that stand before and after it in a record\n"
        f"layout = [\n{rows}]\n\n"
        "# What proves a value; without it, its size and place are all that is verified.\n"
        f"{_proof(spec)}"
    )


def render_part(name: str, kind: Kind, value: int) -> str:
    """Return the TOML file to begin with for a record, misc bit, context marker or attr bit without a spec."""
    number = value - (1 << 64) if kind is Kind.MARKER and value >> 63 else value
    rows = [f"# A {kind}, not described yet.", f'name = "{name}"', f"value = {number}"]
    if kind is Kind.RECORD:
        rows += ["layout = [", '\t{ name = "rest", type = "padding" },', "]"]
    rows += ["# The kernel functions that are its own, and the test programs whose cases prove it.", "functions = []"]
    return "\n".join([*rows, "programs = []", ""])


def _proof(spec: SampleSpec) -> str:
    names = [f.name for f in spec.layout if f.type in SCALARS and not f.count]
    rule = '#[rule]\n#text = "what the value is"\n#uapi = "a regular expression for the line that says so"\n'
    proofs = "".join(f'#\n#[[proof]]\n#field = "{name}"\n#equals = ""  # or least, most, rises\n' for name in names)
    return rule + proofs


def _row(field: Field) -> str:
    parts = [("name", field.name), ("type", field.type), ("count", field.count), ("when", field.when)]
    return ", ".join(f'{key} = "{text}"' for key, text in parts if text)


def _comment(header: str) -> str:
    match = _COMMENT.search(header)
    return re.sub(r"^\s*\*", "", match[1], flags=re.MULTILINE) if match else ""


def _fields(text: str) -> tuple[Field, ...] | None:
    fields: list[Field] = []
    position, text = 0, re.sub(r"#[^\n]*", "", text).strip()
    while position < len(text):
        member = _MEMBER.match(text, position)
        if member is None:
            return None
        kind, names, count = member.groups()
        fields += [_field(kind, name.strip(), count or "") for name in names.split(",")]
        position = member.end()
    known = {field.name for field in fields}
    if not fields or any(f.count and not f.count.isdigit() and f.count not in known for f in fields):
        return None
    return tuple(fields)


def _field(kind: str, name: str, count: str) -> Field:
    name = name.strip("_") or "reserved"
    if kind in SCALARS and not count:
        return Field(name=name, type=kind)
    return Field(name=name, type="bytes" if kind in ("char", "u8") else kind, count=count)
