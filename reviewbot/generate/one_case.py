"""The main() of a test program, with one case left in it (pure).

In: the C source of a program whose main() adds its cases with ktap_add(), in loops and conditions, and the name of a
case. Out: the source where only the calls whose format can give that name are left, and what they need.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from reviewbot.generate.csource import functions, parse_body, text_of, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

# Blank lines that what stood between them has left.
_BLANK = re.compile(rb"(?<=\{\n)\n+|(?<=\n\n)\n+|\n+(?=\n\t*\})")
_Cut = tuple[int, int, bytes]  # first byte, byte behind the last, what stands there instead


def one_case(text: str, case: str) -> str:
    """Leave of main() only what adds the case. Raises ValueError when nothing does."""
    raw = text.encode()
    main = next(f for f in functions(raw) if f.name == "main")
    body, shift = parse_body(raw, main)
    calls = [n for n in walk(body) if _is_call(n, "ktap_add")]
    wanted = _matching(calls, case)
    if not wanted:
        msg = f"main() adds no case {case}"
        raise ValueError(msg)
    kept = {(n.start_byte, n.end_byte) for n in wanted}
    cuts: list[_Cut] = []
    _cut(body, kept, cuts)
    cuts += _unused(body, cuts)
    for start, end, instead in sorted(cuts, reverse=True):
        before, after = raw[: start + shift], raw[end + shift :]
        raw = before + instead + after if instead else _without_line(before, after)
    begin = main.start
    return (raw[:begin] + _BLANK.sub(b"", raw[begin:])).decode()


def _without_line(before: bytes, after: bytes) -> bytes:
    # What stood alone on its lines takes them with it.
    indent = before.rstrip(b" \t")
    return indent + after[1:] if indent.endswith(b"\n") and after.startswith(b"\n") else before + after


def _matching(calls: list[Node], case: str) -> list[Node]:
    # The calls whose format can give the name; of several, those that say most of it.
    found: list[tuple[int, Node]] = []
    for call in calls:
        arguments = call.child_by_field_name("arguments")
        literals = [n for n in (arguments.named_children if arguments else []) if n.type == "string_literal"]
        if not literals:
            continue
        parts = re.split(r"%[a-z]+", text_of(literals[0])[1:-1])
        if re.fullmatch(".+".join(map(re.escape, parts)), case):
            found.append((sum(map(len, parts)), call))
    most = max((length for length, _ in found), default=0)
    return [call for length, call in found if length == most]


def _cut(node: Node, kept: set[tuple[int, int]], cuts: list[_Cut]) -> None:
    for child in node.named_children:
        inside = [n for n in walk(child) if _is_call(n, "ktap_add")]
        if not inside:
            continue
        if any((n.start_byte, n.end_byte) in kept for n in inside):
            _cut(child, kept, cuts)
        elif node.type == "compound_statement":
            cuts.append((child.start_byte, child.end_byte, b""))
        elif child.type.endswith("_statement"):
            cuts.append((child.start_byte, child.end_byte, b"(void)0;"))


def _unused(body: Node, cuts: list[_Cut]) -> Iterator[_Cut]:
    """Yield the variables of main() that nothing names once the cuts are made."""
    left = [n for n in walk(body) if n.type == "identifier" and not any(a <= n.start_byte < b for a, b, _ in cuts)]
    for child in body.named_children:
        if child.type == "declaration" and not any(start <= child.start_byte < end for start, end, _ in cuts):
            names = set(_declared(child))
            if not any(text_of(n) in names for n in left if not child.start_byte <= n.start_byte < child.end_byte):
                yield (child.start_byte, child.end_byte, b"")


def _declared(declaration: Node) -> Iterator[str]:
    for child in declaration.children_by_field_name("declarator"):
        here = child
        while (inner := here.child_by_field_name("declarator")) is not None:
            here = inner
        yield text_of(here)


def _is_call(node: Node, name: str) -> bool:
    return node.type == "call_expression" and text_of(node.child_by_field_name("function")) == name
