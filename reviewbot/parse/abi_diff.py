"""What changed between two versions of a header for user space, and how bad that is.

In: two Headers. Out: Changes. Only what user space can see counts: values of names, order and type of members.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from reviewbot.parse.abi import Constant, Header, Member, Record

# Names that are meant to move: counts and limits.
_LIMIT = re.compile(r"(?:^_*|_)(?:MAX|LAST|NUM|NR|COUNT|CNT|END|MASK|ALL|VALID|SIZE|VERSION|VER\d*)(?:_|$)|^_*NR_")
_EDGE = re.compile(r"_(?:FIRST|MIN|START|BEGIN|BASE|NONE|UNSPEC|DEFAULT)(?:_|$)")
_RESERVED = re.compile(r"\b_*(?:reserved|resv|rsvd|pad|padding|unused|spare|fill)\w*\b", re.IGNORECASE)

_HOW = {
    "end": "grows at its end (a size or a version has to tell user space)",
    "reserved": "uses reserved space",
    "union": "gains a union member",
}


class Weight(Enum):
    """How bad a change is: a broken rule, something that a reader should judge, a note."""

    BROKEN = "broken"
    DOUBTFUL = "doubtful"
    NOTE = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change. rule names the question in one word; line is in the new header, 1-based."""

    weight: Weight
    rule: str
    title: str
    line: int = 0
    detail: str = ""


def compare_headers(old: Header, new: Header) -> tuple[Change, ...]:
    """Return what changed from old to new, enums first, then records, then macros."""
    changes: list[Change] = []
    everywhere = {c.name for group in new.enums.values() for c in group} | set(new.macros)
    for key, before in old.enums.items():
        changes += _enum(key, before, new.enums.get(key) or _moved(before, new), everywhere, new)
    for key, after in new.enums.items():
        if key not in old.enums and not any(c.name == after[0].name for group in old.enums.values() for c in group):
            changes += _twice(key, (), after)
    for name, record in old.records.items():
        changes += _record(record, new.records.get(name))
    changes += _macros(old, new, everywhere)
    return tuple(changes)


def _moved(before: Sequence[Constant], new: Header) -> tuple[Constant, ...]:
    # An anonymous enum whose first name changed, or a renamed one: the enum that holds most of the names.
    names = {c.name for c in before}
    best = max(new.enums.values(), key=lambda group: sum(c.name in names for c in group), default=())
    return best if any(c.name in names for c in best) else ()


def _enum(
    key: str, before: Sequence[Constant], after: Sequence[Constant], everywhere: set[str], new: Header
) -> Iterator[Change]:
    now = {c.name: c for c in after}
    old_names = {c.name for c in before}
    added = [c for c in after if c.name not in old_names]
    for constant in before:
        yield from _constant(f"enum {key}", constant, now.get(constant.name), everywhere, grew=bool(added))
    yield from _twice(key, before, after)
    yield from _above_limit(key, added, after)
    yield from _undocumented(key, before, added, new)


def _constant(where: str, old: Constant, new: Constant | None, everywhere: set[str], *, grew: bool) -> Iterator[Change]:
    if new is None:
        if old.name not in everywhere:
            title = f"{old.name} is removed from {where}"
            yield Change(weight=Weight.DOUBTFUL, rule="removed", title=title, detail=_definition(old))
        return
    if new.value == old.value and (old.value is not None or new.text == old.text):
        return
    detail = f"- {_definition(old)}\n+ {_definition(new)}"
    if old.value is None or new.value is None:
        if new.text != old.text:
            title = f"{old.name} of {where} is defined in another way; its value cannot be told here"
            yield Change(weight=Weight.DOUBTFUL, rule="value-unknown", title=title, line=new.line, detail=detail)
    elif _LIMIT.search(old.name) or (old.derived and new.derived):
        weight, how = (
            (Weight.NOTE, "with the values below it") if grew else (Weight.DOUBTFUL, "though nothing is added")
        )
        title = f"{old.name} moves from {_number(old)} to {_number(new)}, {how}"
        yield Change(weight=weight, rule="limit-moved", title=title, line=new.line, detail=detail)
    else:
        title = f"{old.name} changes its value from {_number(old)} to {_number(new)}"
        yield Change(weight=Weight.BROKEN, rule="value-changed", title=title, line=new.line, detail=detail)


def _twice(key: str, before: Sequence[Constant], after: Sequence[Constant]) -> Iterator[Change]:
    # A value that a new name shares with another one; aliases, masks and limits are meant to.
    plain = [c for c in after if c.value is not None and not c.derived and not _LIMIT.search(c.name)]
    old_names = {c.name for c in before}
    first: dict[int, Constant] = {}
    for constant in sorted(plain, key=lambda c: c.name not in old_names):
        other = first.setdefault(constant.value or 0, constant)
        if other is constant or constant.name in old_names or _EDGE.search(constant.name) or _EDGE.search(other.name):
            continue
        title = f"{constant.name} has the value of {other.name}, {_number(constant)}"
        detail = f"{_definition(other)}\n{_definition(constant)}\n(enum {key})"
        yield Change(weight=Weight.BROKEN, rule="value-twice", title=title, line=constant.line, detail=detail)


def _above_limit(key: str, added: Sequence[Constant], after: Sequence[Constant]) -> Iterator[Change]:
    limits = [c for c in after if re.search(r"_MAX$", c.name) and c.value is not None and not c.derived and c.text]
    for limit in limits[:1]:
        for constant in added:
            if (
                constant.value is not None
                and not constant.derived
                and constant.value >= (limit.value or 0)
                and constant is not limit
            ):
                title = f"{constant.name} is not below {limit.name}, {_number(limit)}"
                detail = f"{_definition(constant)}\n{_definition(limit)}\n(enum {key})"
                yield Change(weight=Weight.DOUBTFUL, rule="limit", title=title, line=constant.line, detail=detail)


def _undocumented(key: str, before: Sequence[Constant], added: Sequence[Constant], new: Header) -> Iterator[Change]:
    # Where the header's comments name most values of an enum (a record's layout), a new value belongs there too.
    old = [c for c in before if not _LIMIT.search(c.name)]
    words = set(re.findall(r"\w+", new.comments))
    named = sum(c.name in words for c in old)
    if named < 3 or 2 * named < len(old):
        return
    for constant in added:
        if constant.name not in words and not constant.derived and not _LIMIT.search(constant.name):
            title = f"the comments describe {named} of {len(old)} values of enum {key}, but not {constant.name}"
            yield Change(weight=Weight.DOUBTFUL, rule="layout-comment", title=title, line=constant.line)


def _record(old: Record, new: Record | None) -> Iterator[Change]:
    name = f"{old.kind} {old.name}"
    if new is None:
        yield Change(weight=Weight.DOUBTFUL, rule="removed", title=f"{name} is removed")
        return
    changes = _members(old, new)
    if not changes:
        return
    moved = [text for kind, text in changes if kind == "moved"]
    if moved:
        title = f"existing members of {name} are moved, changed or removed"
        yield Change(weight=Weight.DOUBTFUL, rule="layout", title=title, line=new.line, detail="\n".join(moved))
        return
    how = sorted({kind for kind, _ in changes})
    title = f"{name} {' and '.join(_HOW[kind] for kind in how)}"
    detail = "\n".join(text for _, text in changes)
    yield Change(weight=Weight.NOTE, rule="layout", title=title, line=new.line, detail=detail)


def _members(old: Record, new: Record) -> list[tuple[str, str]]:
    # What differs: ("moved" | "end" | "union" | "reserved", diff text).
    before, after = [m.text for m in old.members], [m.text for m in new.members]
    found: list[tuple[str, str]] = []
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        gone, come = old.members[i1:i2], new.members[j1:j2]
        text = "\n".join([f"- {m.text}" for m in gone] + [f"+ {m.text}" for m in come])
        nested = _nested(gone, come)
        if nested is not None:
            found += nested
        elif not gone:
            kind = "union" if old.kind == "union" else "end" if i1 == len(before) else "moved"
            found.append((kind, text))
        elif all(_RESERVED.search(m.text) for m in gone) and come:
            found.append(("reserved", text))
        else:
            found.append(("moved", text))
    return found


def _nested(gone: Sequence[Member], come: Sequence[Member]) -> list[tuple[str, str]] | None:
    # Pairs of nested records are compared by their own members.
    if not gone or len(gone) != len(come):
        return None
    found: list[tuple[str, str]] = []
    for old, new in zip(gone, come, strict=True):
        if old.record is None or new.record is None or old.record.kind != new.record.kind:
            return None
        if _declared(old) != _declared(new):
            return None
        # A nested record that grows moves what follows it; only a union may.
        inner = _members(old.record, new.record)
        grows = old.record.kind == "struct"
        found += [("moved" if kind == "end" and grows else kind, text) for kind, text in inner]
    return found


def _declared(member: Member) -> str:
    # What stands after the closing brace: the names that a nested record declares.
    return member.text.rpartition("}")[2].strip()


def _macros(old: Header, new: Header, everywhere: set[str]) -> Iterator[Change]:
    added = [c for c in new.macros.values() if c.name not in old.macros]
    for name, constant in old.macros.items():
        now = new.macros.get(name)
        if now is None and name in everywhere:
            continue
        for change in _constant("the macros", constant, now, everywhere, grew=bool(added)):
            # A macro can be anything; only a plain number that changes is sure to be wrong.
            sure = change.rule == "value-changed" and not constant.derived
            yield change if sure or change.weight is not Weight.BROKEN else _doubtful(change)
    yield from _macros_twice(old, added)


def _doubtful(change: Change) -> Change:
    return Change(weight=Weight.DOUBTFUL, rule=change.rule, title=change.title, line=change.line, detail=change.detail)


def _macros_twice(old: Header, added: Sequence[Constant]) -> Iterator[Change]:
    # Bits of one family: names that are equal up to their last word.
    taken = {(c.name.rpartition("_")[0], c.value): c for c in old.macros.values() if _is_bit(c)}
    for constant in filter(_is_bit, added):
        other = taken.setdefault((constant.name.rpartition("_")[0], constant.value), constant)
        if other is not constant:
            title = f"{constant.name} has the bit of {other.name}, {_number(constant)}"
            detail = f"{_definition(other)}\n{_definition(constant)}"
            yield Change(weight=Weight.DOUBTFUL, rule="bit-twice", title=title, line=constant.line, detail=detail)


def _is_bit(constant: Constant) -> bool:
    shifted = "<<" in constant.text or "BIT" in constant.text
    return shifted and not constant.derived and constant.value is not None and constant.value.bit_count() == 1


def _number(constant: Constant) -> str:
    value = constant.value or 0
    return f"{value:#x}" if value > 9 else str(value)


def _definition(constant: Constant) -> str:
    return f"{constant.name} = {constant.text}" if constant.text else constant.name
