"""From UAPI headers and a series' diff to the sample types that its tests are about.

In: the text of include/uapi/linux/perf_event.h at base and at patched, and the normalised ``git diff`` from base to
patched (with function context where the caller has it: ``git diff -W``). Out: a Scope. Nothing is read from disk.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reviewbot.generate.skeleton import documented_layout, documented_types, provisional_spec
from reviewbot.parse.uapi import duplicates, parse_enum

if TYPE_CHECKING:
    from reviewbot.generate.spec import Field, SampleSpec, Specs

ENUM = "perf_event_sample_format"
_WORD = re.compile(r"\b[A-Za-z_]\w*\b")
_PADDING = re.compile(r"\b(\w+)[ \t]*;[ \t]*/\*[ \t]*align\b")
_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@(.*)")
_UAPI_FILES = ("include/uapi/", "tools/include/uapi/")


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
    provisional are specs made from the UAPI comment for every type that has none. records names the record types that
    the series touches. notes are one line each.
    """

    types: tuple[ScopedType, ...]
    all_types: tuple[tuple[str, int], ...]
    unverified: tuple[str, ...] = ()
    records: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    names: frozenset[str] = frozenset()
    padding: frozenset[str] = frozenset()
    provisional: tuple[SampleSpec, ...] = ()

    @property
    def next_value(self) -> int:
        """The lowest bit that the patched header does not use: must be refused."""
        used = 0
        for _, value in self.all_types:
            used |= value
        return 1 << used.bit_length()

    @property
    def empty(self) -> bool:
        """True when the series has nothing to do with sample types."""
        return not self.types


def find_scope(base_header: str, patched_header: str, diff: str, specs: Specs, *, every: bool = False) -> Scope:
    """Return the sample types that the series adds or touches; every type with every=True.

    A type is in scope when it is new in patched_header, when a line that the diff adds names it, or when the diff
    changes a function or struct that its spec calls its own. Raises UapiError for a header without the enum.
    """
    base, patched = parse_enum(base_header, ENUM), parse_enum(patched_header, ENUM)
    real = {n: v for n, v in patched.items() if n != "PERF_SAMPLE_MAX"}
    words, owners = _added_words(diff), _changed_owners(diff)
    types = []
    for name, value in sorted(real.items(), key=lambda item: item[1]):
        why = _why(name, base, words, owners, specs.sample(name)) or ("asked for" if every else "")
        if why:
            comment = _comment_problem(patched_header, name, specs) if name not in base else ""
            types.append(ScopedType(name=name, value=value, new=name not in base, why=why, comment=comment))
    return Scope(
        types=tuple(types),
        all_types=tuple(sorted(real.items(), key=lambda item: item[1])),
        unverified=tuple(t.name for t in types if specs.sample(t.name) is None),
        records=tuple(r.name for r in specs.records if r.name in words or set(r.functions) & owners),
        notes=(*_notes(base, patched, real, specs), *(t.comment for t in types if t.comment)),
        names=frozenset(_WORD.findall(patched_header)),
        padding=frozenset(_PADDING.findall(patched_header)),
        provisional=tuple(provisional_spec(patched_header, n, v) for n, v in real.items() if not specs.sample(n)),
    )


def _why(name: str, base: dict[str, int], words: set[str], owners: set[str], spec: SampleSpec | None) -> str:
    if name not in base:
        return "new in the UAPI header"
    if name in words:
        return "named in an added line"
    own = owners & {*spec.functions, *spec.structs} if spec else set()
    return f"the series changes {', '.join(sorted(own))}" if own else ""


def _added_words(diff: str) -> set[str]:
    """Words in added code lines outside comments of the UAPI header, whose layout text names every type."""
    words: set[str] = set()
    for path, line in _lines(diff):
        if line.startswith("+") and not _is_comment(line[1:]) and path.endswith((".c", ".h")):
            words.update(_WORD.findall(line[1:]))
    return words


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith(("*", "/*", "//"))


def _changed_owners(diff: str) -> set[str]:
    """Functions and structs in which a line was added or removed, as hunk headers and context name them."""
    owners: set[str] = set()
    current: set[str] = set()
    for path, line in _lines(diff):
        if path.startswith(_UAPI_FILES):
            continue
        if hunk := _HUNK.match(line):
            current = _definition(hunk[1].strip())
        elif line[:1] in ("+", "-", " "):
            if line[0] != " " and line[1:2] == "}":
                owners.update(current)
            current = _definition(line[1:]) or (set() if _ends_definition(line[1:]) else current)
            if line[0] != " ":
                owners.update(current)
    return owners


def _definition(line: str) -> set[str]:
    """Name of the function or struct that a line in column 0 begins, as a set of none or one."""
    if struct := re.match(r"(?:struct|union)\s+(\w+)\s*\{", line):
        return {struct[1]}
    if (
        re.match(r"[A-Za-z_]", line)
        and (call := re.match(r"[^=;]*?\b(\w+)\s*\(", line))
        and not line.rstrip().endswith(";")
    ):
        return {call[1]}
    return set()


def _ends_definition(line: str) -> bool:
    """Tell a line in column 0 that lies outside any function from a label, brace or comment."""
    return line.startswith("}") or (re.match(r"[A-Za-z_#]", line) is not None and not re.match(r"\w+:", line))


def _lines(diff: str) -> list[tuple[str, str]]:
    """(path of the new file, line) for every hunk header and hunk line; bounded by the counts in the hunk header."""
    out: list[tuple[str, str]] = []
    path, old, new = "", 0, 0
    for line in diff.split("\n"):
        if old > 0 or new > 0:
            old -= line[:1] in (" ", "-", "")
            new -= line[:1] in (" ", "+", "")
            out.append((path, line))
        elif line.startswith("+++ "):
            path = line[4:].split("\t")[0].removeprefix("b/")
        elif counts := re.match(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@", line):
            old, new = int(counts[1] or 1), int(counts[2] or 1)
            out.append((path, line))
    return out


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
