"""Which added lines of a series ran: the added lines joined with the counters of the kernel that has them.

In: the normalised ``git diff -U0`` of a series, the text of each touched file at its tip, counters and the lines that
the preprocessor kept (see parse/gcov.py). Out: an AddedLine for each added line of C. Other files are left out.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import tree_sitter_c
from tree_sitter import Language, Node, Parser

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

_CONDITIONAL = re.compile(r"\s*#\s*(?:if|ifdef|ifndef|elif|else|endif)\b")
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.MULTILINE)
_SYSCALL = re.compile(r"^(?:COMPAT_)?SYSCALL_DEFINE[0-6]\(\s*(\w+)", re.MULTILINE)
_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|/\*.*?\*/|//[^\n]*', re.DOTALL)
_STATEMENTS = frozenset(
    {
        "expression_statement", "return_statement", "if_statement", "for_statement", "while_statement", "do_statement",
        "switch_statement", "goto_statement", "break_statement", "continue_statement",
    }
)  # fmt: skip


class LineKind(StrEnum):
    """What became of an added line. Only HIT and MISSED are executable lines that can be told."""

    HIT = "hit"
    MISSED = "missed"
    NO_CODE = "no code"  # comments, declarations, braces, the rest of a statement
    MERGED = "merged"  # a statement whose code the compiler counts with a neighbour or took out
    NOT_BUILT = "not built"  # left out by #if, or the file by the configuration
    NOT_COUNTED = "not counted"  # its function has no counter: noinstr, or not used by a measured object


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedLine:
    """One added line: 1-based place at the tip, its text, the function around it (or empty), how often it ran."""

    file: str
    line: int
    text: str
    kind: LineKind
    function: str = ""
    count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Function:
    name: str
    first: int
    last: int


def classify(
    file: str,
    text: str,
    added: Collection[int],
    *,
    counts: Mapping[int, int],
    kept: Collection[int] | None,
) -> tuple[AddedLine, ...]:
    """Return an AddedLine for each line in added, in order.

    text is the file at the tip. counts are its counters (empty when no measured object has code of it); kept are the
    lines that the preprocessor left, None when that is not known and empty when no measured object reads the file.
    """
    lines = text.split("\n")
    functions, statements = _shape(text)
    absent = _left_out(text, kept) if kept is not None else frozenset()
    found = []
    for number in sorted(n for n in added if 1 <= n <= len(lines)):
        function = next((f for f in functions if f.first <= number <= f.last), None)
        found.append(
            AddedLine(
                file=file,
                line=number,
                text=lines[number - 1],
                kind=_kind(number, counts, absent, statements, function),
                function=function.name if function else "",
                count=counts.get(number, 0),
            )
        )
    return tuple(found)


def _kind(
    number: int,
    counts: Mapping[int, int],
    absent: Collection[int],
    statements: Collection[int],
    function: _Function | None,
) -> LineKind:
    if number in counts:
        return LineKind.HIT if counts[number] else LineKind.MISSED
    if number in absent:
        return LineKind.NOT_BUILT
    if number not in statements or function is None:
        return LineKind.NO_CODE
    known = any(function.first <= line <= function.last for line in counts)
    return LineKind.MERGED if known else LineKind.NOT_COUNTED


def _left_out(text: str, kept: Collection[int]) -> frozenset[int]:
    # Between two lines of conditional compilation all is kept or nothing. A line alone does not tell: the preprocessor
    # puts a macro call of several lines on one.
    lines = _code_only(text).split("\n")
    raw = text.split("\n")
    bounds = [0, *(n for n, line in enumerate(raw, 1) if _CONDITIONAL.match(line)), len(raw) + 1]
    absent: set[int] = set()
    for before, after in itertools.pairwise(bounds):
        inside = range(before + 1, after)
        if not any(n in kept for n in inside):
            absent |= {n for n in inside if lines[n - 1].strip()}
    return frozenset(absent)


def _code_only(text: str) -> str:
    # The text without comments and directives; line numbers stay.
    plain = _COMMENT.sub(lambda m: m[0] if m[0][0] in "\"'" else _newlines(m[0]), text)
    return _DIRECTIVE.sub(lambda m: _newlines(m[0]), plain)


def _newlines(text: str) -> str:
    return "\n" * text.count("\n") or " "


def _shape(text: str) -> tuple[list[_Function], frozenset[int]]:
    # Function definitions, and the lines on which statements start. Macros leave error nodes around them.
    root = Parser(Language(tree_sitter_c.language())).parse(text.encode()).root_node
    functions, statements = [], set()
    for node in _walk(root):
        if node.type == "function_definition":
            functions.append(
                _Function(name=_name(node), first=node.start_point.row + 1, last=node.end_point.row + 1),
            )
        elif node.type in _STATEMENTS:
            statements.add(node.start_point.row + 1)
    functions += _syscalls(text)
    # The innermost first: an error can make a definition hold others.
    functions.sort(key=lambda f: f.last - f.first)
    return functions, frozenset(statements)


def _syscalls(text: str) -> Iterator[_Function]:
    # For the C grammar a system call is a macro call and a block; it ends at the brace in the first column.
    for match in _SYSCALL.finditer(text):
        first = text.count("\n", 0, match.start()) + 1
        end = text.find("\n}", match.start())
        yield _Function(name=match[1], first=first, last=text.count("\n", 0, end) + 2 if end >= 0 else first)


def _walk(node: Node) -> Iterator[Node]:
    stack = [node]
    while stack:
        here = stack.pop()
        yield here
        stack += here.children


def _name(definition: Node) -> str:
    node = definition.child_by_field_name("declarator")
    while node is not None and node.type != "identifier":
        node = node.child_by_field_name("declarator")
    return node.text.decode("utf-8", "replace") if node is not None and node.text else ""
