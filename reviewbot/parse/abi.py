"""The part of a C header that user space is built on: enums and their values, records and their members, macros.

In: the text of a header. Out: a Header. The text is read as it stands, without a preprocessor (tree-sitter-c); a value
that is no constant expression of integers and of names in the same header is None, and is not guessed.
"""

from __future__ import annotations

import operator
import re
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

import tree_sitter_c
from tree_sitter import Language, Node, Parser

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_INTEGER = re.compile(r"(-?)(0[xX][0-9a-fA-F]+|[0-9]+)[uUlL]*")
_WRAPPERS = re.compile(r"^(?:_BITUL|_BITULL|BIT|BIT_ULL)\((?P<bit>.+)\)$")
_BINARY: dict[str, Callable[[int, int], int]] = {
    "|": operator.or_,
    "&": operator.and_,
    "^": operator.xor,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}
_MAX_DEPTH = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """An enumerator or a macro. text is its value as written (empty for an implicit one); value is None when unknown.

    derived tells that other names stand in its value: an alias, a mask of others.
    """

    name: str
    text: str
    value: int | None
    derived: bool
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One member of a record: its declaration with single spaces; record is set for a nested struct or union."""

    text: str
    record: Record | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A struct or a union; line is 1-based."""

    kind: str
    name: str
    members: tuple[Member, ...]
    line: int


@dataclass(slots=True)
class Header:
    """What a header defines. enums are keyed by name, anonymous ones by their first enumerator."""

    enums: dict[str, tuple[Constant, ...]] = field(default_factory=dict)
    records: dict[str, Record] = field(default_factory=dict)
    macros: dict[str, Constant] = field(default_factory=dict)
    comments: str = ""


def parse_header(text: str) -> Header:
    """Return what a header defines; what cannot be read is left out."""
    header = Header()
    known: dict[str, int] = {}
    comments: list[str] = []
    for node in _walk(_parser().parse(text.encode("utf-8", "replace")).root_node):
        if node.type == "comment":
            comments.append(_text(node))
        elif node.type == "preproc_def":
            _macro(node, known, header)
        elif node.type == "enum_specifier":
            _enum(node, known, header)
        elif node.type in {"struct_specifier", "union_specifier"} and (record := _record(node)) and record.name:
            header.records.setdefault(f"{record.kind} {record.name}", record)
    header.comments = "\n".join(comments)
    return header


@cache
def _parser() -> Parser:
    return Parser(Language(tree_sitter_c.language()))


def _walk(root: Node) -> Iterator[Node]:
    # Every node in the order of the text, without recursion: a hostile header can nest as deep as it likes.
    todo = [root]
    while todo:
        node = todo.pop()
        yield node
        todo.extend(reversed(node.named_children))


def _text(node: Node | None) -> str:
    return (node.text or b"").decode("utf-8", "replace") if node is not None else ""


def _plain(node: Node) -> str:
    # The text of a node without comments, with single spaces.
    pieces, todo = [], [node]
    while todo:
        at = todo.pop()
        if at.type == "comment":
            continue
        if at.children:
            todo.extend(reversed(at.children))
        else:
            pieces.append(_text(at))
    return " ".join(" ".join(pieces).split())


def _macro(node: Node, known: dict[str, int], header: Header) -> None:
    name, text = _text(node.child_by_field_name("name")), _text(node.child_by_field_name("value"))
    text = " ".join(re.sub(r"/\*.*?(?:\*/|$)|//.*", "", text, flags=re.DOTALL).replace("\\\n", " ").split())
    if not text:
        return
    tree = _parser().parse(f"int x = {text};".encode())
    value = next((n.child_by_field_name("value") for n in _walk(tree.root_node) if n.type == "init_declarator"), None)
    number = None if value is None or tree.root_node.has_error else _evaluate(value, known)
    derived = bool(re.search(r"\b[A-Z][A-Z0-9_]{2,}\b", _WRAPPERS.sub(r"\g<bit>", text)))
    header.macros[name] = Constant(name=name, text=text, value=number, derived=derived, line=node.start_point.row + 1)
    if number is not None:
        known.setdefault(name, number)


def _enum(node: Node, known: dict[str, int], header: Header) -> None:
    body = node.child_by_field_name("body")
    if body is None:
        return
    constants: list[Constant] = []
    following: int | None = 0
    for item in body.named_children:
        name = _text(item.child_by_field_name("name"))
        if item.type == "ERROR":
            following = None  # a macro that may hold any number of names
        if item.type != "enumerator" or not name:
            continue
        given = item.child_by_field_name("value")
        value = _evaluate(given, known) if given is not None else following
        derived = given is not None and any(n.type == "identifier" and not _is_wrapper(n) for n in _walk(given))
        constants.append(
            Constant(
                name=name,
                text=_plain(given) if given else "",
                value=value,
                derived=derived,
                line=item.start_point.row + 1,
            )
        )
        following = None if value is None else value + 1
        if value is not None:
            known[name] = value
    count = Counter(constant.name for constant in constants)
    constants = [constant for constant in constants if count[constant.name] == 1]  # else it names a macro
    if constants:
        key = _text(node.child_by_field_name("name")) or f"with {constants[0].name}"
        header.enums.setdefault(key, tuple(constants))


def _is_wrapper(node: Node) -> bool:
    return _text(node) in {"BIT", "BIT_ULL", "_BITUL", "_BITULL"}


def _record(node: Node, depth: int = 0) -> Record | None:
    body = node.child_by_field_name("body")
    if body is None or depth > _MAX_DEPTH:
        return None
    members = []
    for item in body.named_children:
        if item.type != "field_declaration":
            continue
        kind = item.child_by_field_name("type")
        nested = (
            _record(kind, depth + 1)
            if kind is not None and kind.type in {"struct_specifier", "union_specifier"}
            else None
        )
        if nested is not None:
            members.append(Member(text=_plain(item), record=nested))
        else:
            members += [Member(text=text) for text in _declarations(item)]
    return Record(
        kind=node.type.partition("_")[0],
        name=_text(node.child_by_field_name("name")),
        members=tuple(members),
        line=node.start_point.row + 1,
    )


def _declarations(item: Node) -> list[str]:
    # "__u64 a : 1, b : 1;" declares two members.
    kind = item.child_by_field_name("type")
    first, *others = _plain(item).removesuffix(";").strip().split(" , ")
    return [first, *(f"{_plain(kind)} {text}" if kind is not None else text for text in others)]


def _evaluate(node: Node, known: dict[str, int], depth: int = 0) -> int | None:
    # The value of a constant expression, None when it is none or too deep.
    if depth > _MAX_DEPTH:
        return None
    match node.type:
        case "number_literal":
            return _number(_text(node))
        case "identifier":
            return known.get(_text(node))
        case "parenthesized_expression" | "cast_expression":
            inner = node.child_by_field_name("value") or next(iter(node.named_children), None)
            return _evaluate(inner, known, depth + 1) if inner is not None else None
        case "call_expression":
            return _bit(node, known, depth + 1)
        case _:
            return _operate(node, known, depth + 1)


def _number(text: str) -> int | None:
    match = _INTEGER.fullmatch(text)
    if match is None or len(text) > 40:
        return None
    digits = match[2]
    octal = digits.startswith("0") and digits.isdigit() and len(digits) > 1
    try:
        number = int(digits, 8) if octal else int(digits, 0)
    except ValueError:
        return None
    return -number if match[1] else number


def _bit(node: Node, known: dict[str, int], depth: int) -> int | None:
    arguments = node.child_by_field_name("arguments")
    function = node.child_by_field_name("function")
    if function is None or not _is_wrapper(function) or arguments is None or len(arguments.named_children) != 1:
        return None
    bit = _evaluate(arguments.named_children[0], known, depth)
    return 1 << bit if bit is not None and 0 <= bit < 64 else None


def _operate(node: Node, known: dict[str, int], depth: int) -> int | None:
    sign = _text(node.child_by_field_name("operator"))
    names = ("left", "right") if node.type == "binary_expression" else ("argument",)
    sides = [node.child_by_field_name(name) for name in names]
    values = [value for side in sides if side is not None and (value := _evaluate(side, known, depth)) is not None]
    if len(values) != len(names):
        return None
    if node.type == "unary_expression":
        return {"-": -values[0], "~": ~values[0], "+": values[0]}.get(sign)
    if sign in {"<<", ">>"}:
        shift = values[1]
        return None if not 0 <= shift < 64 else (values[0] << shift if sign == "<<" else values[0] >> shift)
    return _BINARY[sign](*values) if sign in _BINARY else None
