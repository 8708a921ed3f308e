"""The lines of a series that a tree has had for years, as they stand there today (pure).

In: the diffs of the series and the bytes of the files that it touches. Out: the numbers of the lines that count as its
own. Code that was merged moves on: what the series added is found again by three marks.

* A function or a macro that the series defines is its own as a whole.
* In every other function: what works on a variable of a struct that the series defines or extends, and on what is
  computed from it; a block that begins with such a variable.
* In a function that the series changed, or that takes such a struct: what names the sample type whose code the series
  changed, and what stands under a condition that names it.
* Of the added lines' texts, those that still stand in such a function.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from reviewbot.generate.csource import Function, functions, parse_body
from reviewbot.generate.mutant_expressions import rows_of
from reviewbot.generate.mutants import NOT_KERNEL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tree_sitter import Node

_DISTINCT_LENGTH, _DISTINCT_COUNT, _GAP_MAX = 12, 3, 8
_STRUCT = re.compile(r"struct\s+(\w+)\s*\{")
_AT_MARGIN = re.compile(r"(?:[\w*][\w\s*]*?\b)?(\w+)\s*\(|#\s*define\s+(\w+)\(")
_HUNK = re.compile(r"@@ .* @@ [\w*][\w\s*]*?\b(\w+)\s*\(")
_SAMPLE_TYPE = re.compile(r"\bPERF_SAMPLE_\w+")
_SIMPLE = ("expression_statement", "declaration", "return_statement")
_JUMPS = ("return_statement", "break_statement", "continue_statement", "goto_statement")
_TARGET = {"assignment_expression": "left", "init_declarator": "declarator"}
_CONTROLS = ("if_statement", "while_statement", "do_statement", "for_statement", "switch_statement")


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """What a series is known by.

    names are the functions and macros that it defines, structs what it defines or extends, types the sample types whose
    code it changes, and changed the functions in which that is.
    """

    names: frozenset[str]
    structs: frozenset[str]
    types: frozenset[str]
    changed: frozenset[str]


def evolved_lines(diffs: Iterable[str], files: Mapping[str, bytes]) -> dict[str, frozenset[int]]:
    """Return path to the numbers (1-based) of the lines of the series in files; a path without any is not there."""
    texts = list(diffs)
    known = {path: functions(text) for path, text in files.items()}
    marks = _marks(texts, {f.name for here in known.values() for f in here})
    found = {}
    for path, standing in _standing(texts, files).items():
        own = {f.first: _own(files[path], f, marks) for f in known[path]}
        lines = {n for here in own.values() for n in here}
        spans = [range(f.first, f.last + 1) for f in known[path] if own[f.first]]
        kept = {n for n in standing if not spans or any(n in span for span in spans)}
        if lines | kept:
            found[path] = frozenset(lines | kept)
    return found


def _marks(diffs: Iterable[str], defined: set[str]) -> Marks:
    names: set[str] = set()
    structs: set[str] = set()
    types: set[str] = set()
    changed: set[str] = set()
    for diff in diffs:
        under: set[str] = set()
        for line in _kernel_lines(diff):
            text = line[1:]
            if heading := _HUNK.match(line):
                changed.add(heading[1])
            if line[0] == " " and text.lstrip().startswith("if "):
                under = set(_SAMPLE_TYPE.findall(text))
            if line[0] in " +" and (struct := _STRUCT.match(text)):
                structs.add(struct[1])
            if line[0] == "+":
                types |= under
                if match := _AT_MARGIN.match(text):
                    names.add(match[1] or match[2])
            elif line[0] == "@":
                under = set()
    return Marks(
        names=frozenset(names & defined),
        structs=frozenset(structs),
        types=frozenset(types),
        changed=frozenset(changed),
    )


def _kernel_lines(diff: str) -> Iterator[str]:
    # The lines of the hunks of kernel files, with what stands before each: space, plus, minus, or @ for a hunk.
    kernel = False
    for line in diff.split("\n"):
        if line.startswith("+++ "):
            name = line[4:].split("\t")[0].removeprefix("b/")
            kernel = name.endswith((".c", ".h")) and not name.startswith(NOT_KERNEL)
        elif kernel and line[:1] in (" ", "+", "-", "@") and not line.startswith("--- "):
            yield line


def _own(text: bytes, function: Function, marks: Marks) -> set[int]:
    # The lines of one function that are the series' own.
    if function.name in marks.names:
        return set(range(function.first, function.last + 1))
    lines = text.split(b"\n")[function.first - 1 : function.last]
    whole = b"\n".join(lines).decode("utf-8", "replace")
    if not {*marks.structs, *marks.names, *marks.types} & set(re.findall(r"\w+", whole)):
        return set()
    body, _ = parse_body(text, function)
    given = _variables(whole.partition("{")[0], marks.structs)
    flow = _Flow(marks if given or function.name in marks.changed else replace(marks, types=frozenset()), given)
    flow.settle(body)
    base = text.count(b"\n", 0, function.start) + 1
    return {row + base for row in flow.rows}


def _variables(text: str, structs: Iterable[str]) -> set[str]:
    # The names that are declared with one of the structs.
    return {name for struct in structs for name in re.findall(rf"struct\s+{re.escape(struct)}\s*\**\s*(\w+)", text)}


class _Flow:
    # Follows the variables of the series' structs through a function, and what is computed from them.
    def __init__(self, marks: Marks, variables: set[str]) -> None:
        self.marks = marks
        self.tainted = variables
        self.rows: set[int] = set()

    def settle(self, body: Node) -> None:
        before = -1
        while before != len(self.tainted) + len(self.rows):
            before = len(self.tainted) + len(self.rows)
            self.block(body, whole=False)

    def block(self, node: Node, *, whole: bool) -> bool:
        """Take the statements below node, all of them with whole; return whether one counts."""
        found = False
        for child in node.named_children:
            found = self.statement(child, whole=whole) or found
        return found

    def statement(self, node: Node, *, whole: bool) -> bool:
        if node.type in _CONTROLS:
            return self.control(node, whole=whole)
        if node.type in _SIMPLE:
            return self.take(node, whole=whole)
        if node.type in _JUMPS:
            self.rows.update(rows_of(node) if whole else ())
            return whole
        if node.type == "compound_statement":
            return self.block(node, whole=whole or self.begins(node))
        return self.block(node, whole=whole)

    def control(self, node: Node, *, whole: bool) -> bool:
        condition = node.child_by_field_name("condition")
        asked = condition is not None and self.take(condition, whole=whole)
        typed = condition is not None and bool(self.marks.types & _names(condition))
        found = asked
        for child in node.named_children:
            if condition is not None and child.id == condition.id:
                continue
            inner = child.named_children[0] if child.type == "else_clause" and child.named_children else child
            jump = inner.type in _JUMPS and asked
            found = self.statement(inner, whole=whole or typed or jump) or found
        if found and condition is not None and (node.type != "if_statement" or any(map(self.begins, node.children))):
            self.rows.update(rows_of(condition))
        return found

    def begins(self, node: Node) -> bool:
        """Return whether a block declares a variable of one of the structs."""
        if node.type != "compound_statement":
            return False
        return any(c.type == "declaration" and self.typed(c) for c in node.named_children)

    def typed(self, declaration: Node) -> bool:
        kind = declaration.child_by_field_name("type")
        name = kind.child_by_field_name("name") if kind is not None else None
        return _text(name) in self.marks.structs

    def take(self, node: Node, *, whole: bool) -> bool:
        """Keep the rows of a statement or condition that works on something of the series."""
        read, written = _names(node), set[str]()
        for name, alone in _assigned(node):
            written.add(name)
            if alone:
                read.discard(name)
        own = self.tainted | self.marks.names | self.marks.types
        declared = node.type == "declaration" and self.typed(node)
        if not (whole or declared or read & own):
            # What a variable starts with is part of what is computed in it.
            if node.type == "declaration" and written & self.tainted:
                self.rows.update(rows_of(node))
            return False
        self.rows.update(rows_of(node))
        self.tainted |= written
        return True


def _text(node: Node | None) -> str:
    return node.text.decode("utf-8", "replace") if node is not None and node.text is not None else ""


def _walk(node: Node) -> Iterator[Node]:
    left = [node]
    while left:
        here = left.pop()
        yield here
        left += here.named_children


def _names(node: Node) -> set[str]:
    return {_text(n) for n in _walk(node) if n.type == "identifier"}


def _assigned(node: Node) -> Iterator[tuple[str, bool]]:
    # The plain variables that a statement writes, and whether it does nothing else with them.
    for here in _walk(node):
        target = here.child_by_field_name(_TARGET.get(here.type, ""))
        while target is not None and target.type == "pointer_declarator":
            target = target.child_by_field_name("declarator")
        if target is None or target.type != "identifier":
            continue
        value = here.child_by_field_name("right") or here.child_by_field_name("value")
        plain = here.type == "init_declarator" or _text(here.child_by_field_name("operator")) == "="
        yield _text(target), plain and (value is None or _text(target) not in _names(value))


def _standing(diffs: Iterable[str], files: Mapping[str, bytes]) -> dict[str, frozenset[int]]:
    """Return the numbers of the added lines that still stand in each file, by their text.

    A line counts when its text is long and rare enough to be that line, or when it stands next to one that counts;
    and so do the few lines between two that count.
    """
    wanted: dict[str, set[bytes]] = {}
    for diff in diffs:
        for path, lines in _added_texts(diff):
            wanted.setdefault(path, set()).update(lines)
    found = {}
    for path in wanted.keys() & files.keys():
        texts = [b" ".join(line.split()) for line in files[path].split(b"\n")]
        counts = Counter(texts)
        match = [text in wanted[path] for text in texts]
        sure = [
            m and len(t) >= _DISTINCT_LENGTH and counts[t] <= _DISTINCT_COUNT for m, t in zip(match, texts, strict=True)
        ]
        for order in (range(1, len(texts)), range(len(texts) - 2, -1, -1)):
            step = -1 if order.step > 0 else 1
            for at in order:
                sure[at] = sure[at] or (match[at] and bool(texts[at]) and sure[at + step])
        found[path] = _with_gaps(frozenset(n for n, yes in enumerate(sure, 1) if yes), functions(files[path]))
    return found


def _with_gaps(lines: frozenset[int], known: Iterable[Function]) -> frozenset[int]:
    # What has evolved between two lines of the series that stand close together in one function is its code too.
    found = set(lines)
    for function in known:
        here = sorted(n for n in lines if function.first <= n <= function.last)
        for one, two in pairwise(here):
            if two - one <= _GAP_MAX:
                found.update(range(one, two))
    return frozenset(found)


def _added_texts(diff: str) -> Iterator[tuple[str, list[bytes]]]:
    # The added lines of each C file of a diff, white space normalised. Lines outside hunks do not start with one "+".
    path, lines = "", list[bytes]()
    for line in diff.split("\n"):
        if line.startswith("+++ "):
            yield path, lines
            name = line[4:].split("\t")[0]
            kernel = name.endswith((".c", ".h")) and not name.removeprefix("b/").startswith(NOT_KERNEL)
            path, lines = (name.removeprefix("b/") if kernel else ""), []
        elif line.startswith("+"):
            lines.append(b" ".join(line[1:].encode("utf-8", "surrogateescape").split()))
    yield path, lines
