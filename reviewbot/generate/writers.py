"""The lines of a series that write a value which a test found wrong (pure).

In: the touched C files as they are patched, with the patch that each line came from, and names of what holds the value
in the kernel: ``struct.member``, ``function()`` or a variable. Out: the added lines that assign it, that call the
function, the condition around them, and the lines that assign what they read; not those that copy it from what holds
another value. It is a reading aid: what a macro or another file does is not seen.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING

from reviewbot.generate.csource import functions, parse_body, text_of, walk
from reviewbot.model import SourceLine

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from tree_sitter import Node

    from reviewbot.generate.csource import Function

LINES_MAX = 12
_WIDTH_MAX = 200
_TARGET, _AROUND, _READ, _AROUND_READ = range(4)  # how close a line is to the value, the closest first
_DECLARED = re.compile(rb"\bstruct\s+(\w+)\s*\**\s*(\w+)\s*(?=[;,=)\[])")
_COPIES = frozenset({"memset", "memcpy", "memmove", "strscpy"})
_CONTROL = frozenset({"if_statement", "for_statement", "while_statement", "switch_statement", "do_statement"})
_WRAPS = frozenset({"subscript_expression", "parenthesized_expression", "pointer_expression", "cast_expression"})
_SIMPLE = frozenset({"expression_statement", "declaration", "return_statement"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchedFile:
    """A touched file after the series; added maps the 1-based number of an added line to the number of its patch."""

    path: str
    text: bytes
    added: Mapping[int, int]


def find_lines(
    files: Sequence[PatchedFile],
    writes: Collection[str],
    *,
    first: Collection[str] = (),
    never: Collection[str] = (),
    held_in: Collection[str] = (),
    others: Collection[str] = (),
) -> tuple[SourceLine, ...]:
    """Return at most LINES_MAX added lines that write one of the names, by file and line; none when there are none.

    Functions named in first are preferred, those in never are left out. held_in and others are ``struct.member``: what
    is copied from one of others, and from none of held_in, is another value. Each of these holds as long as it leaves
    something.
    """
    found = _hits(files, writes, held_in, others) or _hits(files, writes, (), ())
    found = [hit for hit in found if hit.line.function in first] or found
    found = [hit for hit in found if hit.line.function not in never] or found
    found.sort(key=lambda hit: hit.rank)
    return tuple(sorted((hit.line for hit in found[:LINES_MAX]), key=lambda line: (line.file, line.line)))


def _hits(
    files: Sequence[PatchedFile], writes: Collection[str], held_in: Collection[str], others: Collection[str]
) -> list[_Hit]:
    members = _members(files)
    wanted = _Wanted(frozenset(writes), frozenset(held_in), frozenset(others))
    return [hit for file in files for hit in _file(file, wanted, members)]


@dataclass(frozen=True, slots=True)
class _Wanted:
    # See find_lines().
    writes: frozenset[str]
    held_in: frozenset[str]
    others: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Hit:
    rank: int
    line: SourceLine


def _members(files: Sequence[PatchedFile]) -> dict[str, set[str]]:
    # Name of a member or variable → the structs that it is declared as, in any file.
    return _declared(b"\n".join(file.text for file in files))


def _declared(text: bytes) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for match in _DECLARED.finditer(text):
        found.setdefault(match[2].decode(), set()).add(match[1].decode())
    return found


def _file(file: PatchedFile, wanted: _Wanted, members: Mapping[str, set[str]]) -> Iterator[_Hit]:
    lines = file.text.split(b"\n")
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    for function in functions(file.text):
        if not any(number in file.added for number in range(function.first, function.last + 1)):
            continue
        own = _declared(file.text[starts[function.first - 1] : function.end])
        for number, rank in sorted(_Function(file.text, function, wanted, members, own).rows(starts).items()):
            if number in file.added:
                text = lines[number - 1].decode("utf-8", "replace").rstrip()[:_WIDTH_MAX]
                line = SourceLine(
                    patch=file.added[number],
                    file=file.path,
                    line=number,
                    function=function.name,
                    text=text,
                    writes=rank == _TARGET,
                )
                yield _Hit(rank, line)


@dataclass(slots=True)
class _Function:
    # One function: its parsed body, and the rank of each row that has to do with the value.
    text: bytes
    function: Function
    wanted: _Wanted
    members: Mapping[str, set[str]]
    own: dict[str, set[str]] = field(default_factory=dict)  # parameters and local variables, as members
    ranks: dict[tuple[int, int], int] = field(default_factory=dict)

    def rows(self, starts: Sequence[int]) -> dict[int, int]:
        body, shift = parse_body(self.text, self.function)
        nodes = list(walk(body))
        targets = [node for node in nodes if self.is_target(node) and not self.is_of_others(node)]
        for node in targets:
            self.note(node, _TARGET, _AROUND)
        read = {name for node in targets for name in _names_read(node)}
        for node in nodes:
            if _variable(node) in read and not _in_for_header(node):
                self.note(node, _READ, _AROUND_READ)
        found: dict[int, int] = {}
        for (start, end), rank in self.ranks.items():
            for number in range(bisect_right(starts, start + shift), bisect_right(starts, end - 1 + shift) + 1):
                found[number] = min(rank, found.get(number, rank))
        return found

    def note(self, node: Node, rank: int, around: int) -> None:
        places = [(_statement(node), rank)]
        if node.type == "initializer_pair":
            # Of a value with many members, the one, and the line that declares it.
            declared = _statement(node)
            places = [(node, rank), (declared.child_by_field_name("type") or declared, around)]
        spans = [((place.start_byte, place.end_byte), r) for place, r in places]
        for span, r in [*spans, *((head, around) for head in _header(node))]:
            self.ranks[span] = min(r, self.ranks.get(span, r))

    def is_target(self, node: Node) -> bool:
        if node.type == "call_expression":
            name = text_of(node.child_by_field_name("function"))
            arguments = node.child_by_field_name("arguments")
            copied = arguments.named_children[:1] if arguments and name in _COPIES else []
            return f"{name}()" in self.wanted.writes or any(self.writes_it(_bare(argument)) for argument in copied)
        if node.type in ("assignment_expression", "update_expression"):
            return self.writes_it(_bare(node.child_by_field_name("left") or node.child_by_field_name("argument")))
        if node.type == "initializer_pair":
            member = text_of(node.child_by_field_name("designator")).removeprefix(".")
            return self.is_member(self.owner_of_pair(node), member)
        return _variable(node) in self.wanted.writes

    def is_of_others(self, node: Node) -> bool:
        value = node.child_by_field_name("right") or node.child_by_field_name("value")
        names = {name for n in walk(value) for name in self.names_of(n)} if value is not None else set()
        return bool(names & self.wanted.others) and not names & self.wanted.held_in

    def names_of(self, node: Node) -> set[str]:
        """Return the ``struct.member`` that an expression may be."""
        if node.type != "field_expression":
            return set()
        owners = self.struct_of(_bare(node.child_by_field_name("argument")))
        return {f"{owner}.{text_of(node.child_by_field_name('field'))}" for owner in owners}

    def writes_it(self, node: Node | None) -> bool:
        if node is not None and node.type == "field_expression":
            return not self.wanted.writes.isdisjoint(self.names_of(node))
        return node is not None and node.type == "identifier" and text_of(node) in self.wanted.writes

    def is_member(self, owners: Collection[str], member: str) -> bool:
        return any(f"{owner}.{member}" in self.wanted.writes for owner in owners)

    def struct_of(self, node: Node | None) -> Collection[str]:
        if node is not None and node.type == "identifier":
            name = text_of(node)
            return self.own.get(name, self.members.get(name, ()))
        if node is not None and node.type == "field_expression":
            return self.members.get(text_of(node.child_by_field_name("field")), ())
        return ()

    def owner_of_pair(self, node: Node) -> Collection[str]:
        # { .member = … } belongs to the variable that is declared, or to the member whose value it is.
        outer = node.parent.parent if node.parent else None
        if outer is not None and outer.type == "initializer_pair":
            return self.members.get(text_of(outer.child_by_field_name("designator")).removeprefix("."), ())
        if outer is not None and outer.type == "init_declarator" and outer.parent is not None:
            return (text_of(outer.parent.child_by_field_name("type")).removeprefix("struct").strip(),)
        return ()


def _bare(node: Node | None) -> Node | None:
    while node is not None and node.type in _WRAPS:
        node = node.child_by_field_name("argument") or node.child_by_field_name("value") or node.named_child(0)
    return node


def _variable(node: Node) -> str:
    """Name of the plain variable that the node gives a value, or an empty string."""
    if node.type == "assignment_expression":
        left = node.child_by_field_name("left")
    elif node.type == "init_declarator":
        left = node.child_by_field_name("declarator")
    else:
        return ""
    return text_of(left) if left is not None and left.type == "identifier" else ""


def _names_read(node: Node) -> set[str]:
    value = node.child_by_field_name("right") if node.type == "assignment_expression" else None
    return {text_of(n) for n in walk(value) if n.type == "identifier"} if value is not None else set()


def _statement(node: Node) -> Node:
    here: Node | None = node
    while here is not None and here.type != "compound_statement" and here.type not in _CONTROL:
        if here.type in _SIMPLE:
            return here
        here = here.parent
    return node


def _header(node: Node) -> list[tuple[int, int]]:
    """Place of the nearest condition or loop head around the node, from its keyword to its body; or none."""
    here = node.parent
    while here is not None and here.type not in _CONTROL:
        here = here.parent
    body = here and (here.child_by_field_name("consequence") or here.child_by_field_name("body"))
    return [(here.start_byte, body.start_byte - 1)] if here is not None and body else []


def _in_for_header(node: Node) -> bool:
    here: Node | None = node
    while here is not None and here.parent is not None:
        if here.parent.type == "for_statement":
            return here != here.parent.child_by_field_name("body")
        here = here.parent
    return False
