"""C UAPI header text in, enum values out: what ``enum perf_event_sample_format`` and its like define.

The header is read with tree-sitter, as it stands, without a preprocessor: good for the constant expressions that
UAPI enums are made of. What cannot be evaluated is refused with UapiError; nothing is guessed.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

import tree_sitter_c
from tree_sitter import Language, Node, Parser

if TYPE_CHECKING:
    from collections.abc import Callable

_INTEGER = re.compile(r"([-+]?)(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)[uUlL]*\Z")
_BINARY: dict[str, Callable[[int, int], int]] = {
    "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b,
    "|": lambda a, b: a | b,
    "&": lambda a, b: a & b,
    "^": lambda a, b: a ^ b,
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
}
_UNARY: dict[str, Callable[[int], int]] = {"-": lambda a: -a, "~": lambda a: ~a, "+": lambda a: a}
_MASKS = {"__u64": (1 << 64) - 1, "__u32": (1 << 32) - 1}


class UapiError(ValueError):
    """A header that does not hold the enum, or a value that is no constant expression."""


def parse_enum(text: str, name: str) -> dict[str, int]:
    """Return enumerator → value of ``enum name`` in text, in the header's order.

    Values follow C: one more than the one before where none is given; casts to __u64 and __u32 wrap. Earlier
    enumerators of any enum in the text may be used. Raises UapiError when the enum is not there or cannot be evaluated.
    """
    known: dict[str, int] = {}
    for node in _enums(_parser().parse(text.encode()).root_node):
        values = _values(node, known, strict=_name(node) == name)
        if _name(node) == name:
            return values
        known.update(values)
    msg = f"no enum {name}"
    raise UapiError(msg)


def duplicates(values: dict[str, int]) -> tuple[str, ...]:
    """Return the names whose value an earlier name of the enum has already."""
    seen: set[int] = set()
    twice = []
    for name, value in values.items():
        if value in seen:
            twice.append(name)
        seen.add(value)
    return tuple(twice)


@cache
def _parser() -> Parser:
    return Parser(Language(tree_sitter_c.language()))


def _enums(root: Node) -> list[Node]:
    found, todo = [], [root]
    while todo:
        node = todo.pop()
        if node.type == "enum_specifier" and node.child_by_field_name("body") is not None:
            found.append(node)
        todo.extend(reversed(node.named_children))
    return found


def _name(node: Node) -> str:
    name = node.child_by_field_name("name")
    return _text(name) if name is not None else ""


def _text(node: Node) -> str:
    return (node.text or b"").decode(errors="replace")


def _values(node: Node, known: dict[str, int], *, strict: bool) -> dict[str, int]:
    body = node.child_by_field_name("body")
    values: dict[str, int] = {}
    following = 0
    for item in body.named_children if body is not None else ():
        if item.type == "ERROR" and strict:
            msg = f"cannot read {_text(item)!r}"
            raise UapiError(msg)
        if item.type != "enumerator":
            continue
        name, value = item.child_by_field_name("name"), item.child_by_field_name("value")
        if name is None:
            continue
        try:
            following = _evaluate(value, {**known, **values}) if value is not None else following
        except UapiError:
            if strict:
                raise
            break  # an enum that nobody asked for
        values[_text(name)] = following
        following += 1
    return values


def _evaluate(node: Node, known: dict[str, int]) -> int:
    text = _text(node)
    if node.type == "number_literal" and (match := _INTEGER.match(text)):
        return -_integer(match[2]) if match[1] == "-" else _integer(match[2])
    if node.type == "identifier" and text in known:
        return known[text]
    if node.type == "parenthesized_expression" and node.named_children:
        return _evaluate(node.named_children[0], known)
    if node.type == "cast_expression":
        return _cast(node, known)
    if node.type in ("binary_expression", "unary_expression"):
        return _operate(node, known)
    msg = f"{text!r} is no constant expression"
    raise UapiError(msg)


def _integer(digits: str) -> int:
    return int(digits, 8) if digits.startswith("0") and digits.isdigit() else int(digits, 0)


def _operate(node: Node, known: dict[str, int]) -> int:
    operator, left = node.child_by_field_name("operator"), node.child_by_field_name("left")
    if left is not None and _text(left).strip("()") in _MASKS:
        return _cast_of_sign(node, known)
    sides = [node.child_by_field_name(f) for f in ("left", "right", "argument")]
    values = [_evaluate(side, known) for side in sides if side is not None]
    sign = _text(operator) if operator is not None else ""
    if len(values) == 2 and sign in _BINARY and not (sign in ("<<", ">>") and not 0 <= values[1] < 64):
        return _BINARY[sign](*values)
    if len(values) == 1 and sign in _UNARY:
        return _UNARY[sign](*values)
    msg = f"{_text(node)!r} is no constant expression"
    raise UapiError(msg)


def _cast_of_sign(node: Node, known: dict[str, int]) -> int:
    """``(__u64)-128``, which reads as a difference where __u64 is not known to be a type."""
    kind, right, sign = (node.child_by_field_name(f) for f in ("left", "right", "operator"))
    if kind is None or right is None or sign is None or _text(sign) not in _UNARY:
        msg = f"{_text(node)!r} is no constant expression"
        raise UapiError(msg)
    return _UNARY[_text(sign)](_evaluate(right, known)) & _MASKS[_text(kind).strip("()")]


def _cast(node: Node, known: dict[str, int]) -> int:
    kind, value = node.child_by_field_name("type"), node.child_by_field_name("value")
    mask = _MASKS.get(_text(kind)) if kind is not None else None
    if mask is None or value is None:
        msg = f"{_text(node)!r}: only casts to __u64 and __u32 are known"
        raise UapiError(msg)
    return _evaluate(value, known) & mask
