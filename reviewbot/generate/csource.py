"""Functions of a C source text, parsed one at a time (pure).

In: the bytes of a C file. Out: the functions that hold given lines, each with a tree-sitter tree of its body alone.
Kernel files are full of macros that no C parser understands without the preprocessor; a function's body is ordinary C
nearly everywhere. Functions are found by the kernel's layout: the body opens with a brace in the first column (or at
the end of the signature) and closes with one in the first column.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import tree_sitter_c
from tree_sitter import Language, Parser

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

_PREFIX = b"void f(void)"
_NAME = re.compile(rb"\b(?:SYSCALL_DEFINE|COMPAT_SYSCALL_DEFINE|BPF_CALL_)\d\(\s*(\w+)|\b(\w+)\s*\(")
_OPENS_LATE = re.compile(rb"[\w*\s]*\w\s*\(.*\)\s*\{\s*$")
_MACRO = re.compile(rb"^#[ \t]*define[ \t]+(?P<name>\w+)\([^()\n]*\)(?P<body>(?:[^\n]*\\\n)+[^\n]*)", re.MULTILINE)
_ONE_LINE = re.compile(rb"\w[\w*\s]*\w\s*\(.*\)\s*\{.*\}\s*$")
_NOT_NAMES = frozenset({b"__printf", b"__section", b"__aligned", b"__attribute__", b"__cold", b"__must_check"})


@dataclass(frozen=True, slots=True)
class Function:
    """One function: name, first and last line (1-based), and the place of its body in the file (byte offsets).

    macro tells that it is a function-like macro of several lines: its body is what follows the parameters.
    """

    name: str
    first: int
    last: int
    start: int
    end: int
    macro: bool = False


def functions(text: bytes) -> tuple[Function, ...]:
    """Return the functions and function-like macros of a C file, in order of place."""
    return tuple(sorted((*_functions(text), *_macros(text)), key=lambda f: f.start))


def _macros(text: bytes) -> Iterator[Function]:
    for match in _MACRO.finditer(text):
        start, end = match.start("body"), match.end("body")
        yield Function(
            match["name"].decode(),
            text.count(b"\n", 0, match.start()) + 1,
            text.count(b"\n", 0, end) + 1,
            start,
            end,
            macro=True,
        )


def _functions(text: bytes) -> Iterator[Function]:
    lines = text.split(b"\n")
    offsets = [0]
    for line in lines:
        offsets.append(offsets[-1] + len(line) + 1)
    at = 0
    while at < len(lines):
        line = lines[at]
        if _ONE_LINE.fullmatch(line):
            yield Function(
                _name([line]), at + 1, at + 1, offsets[at] + line.index(b"{"), offsets[at] + line.rindex(b"}") + 1
            )
        elif line.rstrip() == b"{" or (line[:1] not in (b" ", b"\t", b"#") and _OPENS_LATE.fullmatch(line)):
            head = _head(lines, at)
            end = next((n for n in range(at + 1, len(lines)) if lines[n].startswith(b"}")), None)
            if end is None:
                return
            signature = lines[head : at + 1]
            if lines[end].rstrip() == b"}" and b"(" in b"".join(signature):
                start = offsets[at] + (0 if line.startswith(b"{") else line.rindex(b"{"))
                yield Function(_name(signature), head + 1, end + 1, start, offsets[end] + 1)
            at = end
        at += 1


def _head(lines: list[bytes], brace: int) -> int:
    # The first line of the signature above the brace.
    at = brace
    while at > 0:
        above = lines[at - 1].rstrip()
        if not above or above.startswith((b"}", b"#", b"/*", b" *", b"//")) or above.endswith((b";", b"*/")):
            break
        at -= 1
    return at


def _name(signature: list[bytes]) -> str:
    for match in _NAME.finditer(b" ".join(signature)):
        name = match[1] or match[2]
        if name not in _NOT_NAMES:
            return name.decode("utf-8", "replace")
    return ""


@cache
def _parser() -> Parser:
    return Parser(Language(tree_sitter_c.language()))


def parse_body(text: bytes, function: Function) -> tuple[Node, int]:
    """Return the compound statement of the function, and what to add to its byte offsets to get those of the file."""
    prefix, body, suffix = _PREFIX, text[function.start : function.end], b""
    if body.endswith(b")\n}"):
        # A macro that makes the rest of a function needs no semicolon in C; the parser does.
        body = body[:-2] + b";}"
    if function.macro:
        prefix, body, suffix = _PREFIX + b"{", body.replace(b"\\\n", b" \n"), b"\n;}"
    tree = _parser().parse(prefix + body + suffix)
    inner = next((c.child_by_field_name("body") for c in tree.root_node.children), None)
    return inner or tree.root_node, function.start - len(prefix)


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and everything below it; each before what is below it, siblings from the last to the first."""
    stack = [node]
    while stack:
        here = stack.pop()
        yield here
        stack.extend(here.children)


def text_of(node: Node | None) -> str:
    """Return the source text of a node, or an empty string for none."""
    return (node.text or b"").decode("utf-8", "replace") if node is not None else ""
