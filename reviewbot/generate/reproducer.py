"""One case of the generated tests as a C file of its own (pure).

In: the scope and the specs that the tests were rendered from, the UAPI header of the patched tree, and the case with the
rule that it broke. Out: one C file that compiles with ``gcc -static -O2`` and nothing of ours or of the tree, runs that
case alone, and exits with 1 when the rule is broken, 0 when it is not, 4 when that cannot be told. It is made of the
same sources as the tests: what the case does not reach is left out, and so are the sample types that it does not name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from reviewbot.generate.amalgam import Amalgam, Item, resolve, split_items, words_of
from reviewbot.generate.csource import functions, parse_body
from reviewbot.generate.kselftest import load_specs, render_kselftest
from reviewbot.resources import data_dir

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tree_sitter import Node

    from reviewbot.generate.scope import Scope
    from reviewbot.generate.spec import Specs

UAPI = "linux/perf_event.h"
# What comes whatever was asked for.
_ALWAYS = frozenset({"PERF_RECORD_LOST"})
_COMMENT = re.compile(r"[ \t]*/\*.*?\*/[ \t]*", re.DOTALL)
_GUARD = re.compile(r"#ifndef (\w+)\n#define \1\s*\n")
_KNOWN = re.compile(r"^#define (HAVE_\w+|SCOPE_\w+)[ \t]*(.*)$", re.MULTILINE)
_SAMPLE_MEMBER = re.compile(r"\b(?:sample|s)\s*(?:->|\.)\s*([a-z]\w*)")
_RECORD_MEMBER = re.compile(r"\b(?:record|r)\s*(?:->|\.)\s*([a-z]\w*)")
_ID_MEMBER = re.compile(r"\bid\s*(?:->|\.)\s*([a-z]\w*)")
_ROUNDS_MAX = 10
DEBUG = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a reproducer is about: ``program/case``, the name of the rule, and lines for the comment at its head."""

    case: str
    rule: str
    about: tuple[str, ...] = ()


def render_reproducer(scope: Scope, header: str, subject: Subject, specs: Specs | None = None) -> str:
    """Return the C file. header is include/uapi/linux/perf_event.h of the patched tree.

    Raises ValueError when the tests for scope have no such program or case.
    """
    whole = specs or load_specs()
    program, _, case = subject.case.partition("/")
    source = f"{program}.c"
    chosen: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())
    for _ in range(_ROUNDS_MAX):
        narrow = _narrowed(whole, *chosen)
        files = render_kselftest(scope, narrow if chosen[0] else whole)
        if source not in files:
            msg = f"{subject.case}: the tests have no program {program}"
            raise ValueError(msg)
        amalgam = Amalgam(items=tuple(_items(files, header, source, case)))
        reached = amalgam.reach(["main"], source)
        needed = _needed(whole, reached, source, first=not chosen[0])
        if chosen[0] and needed[0] <= chosen[0] and needed[1] <= chosen[1]:
            break
        chosen = (chosen[0] | needed[0], chosen[1] | needed[1])
    if DEBUG: print(chosen)
    return _head(subject, case) + amalgam.render()


def _needed(
    specs: Specs, reached: tuple[Item, ...], source: str, *, first: bool
) -> tuple[frozenset[str], frozenset[str]]:
    # At first, what the program itself names; then also what the library reads of a decoded sample or record.
    own = [item for item in reached if item.file == source] if first else reached
    text = "\n".join(item.text for item in own if item.file != UAPI)
    words = {word for item in own if item.file != UAPI for word in words_of(item)} if first else set()
    members = set(_SAMPLE_MEMBER.findall(text))
    members |= set(_ID_MEMBER.findall(text))
    samples = {s.name for s in specs.samples if s.name in words or s.member in members}
    in_records = set(_RECORD_MEMBER.findall(text))
    records = {r.name for r in specs.records if r.name in words or r.member in in_records} | _ALWAYS
    return frozenset(samples), frozenset(records)


def _narrowed(specs: Specs, samples: frozenset[str], records: frozenset[str]) -> Specs:
    kept = tuple(
        replace(s, excludes=tuple(name for name in s.excludes if name in samples))
        for s in specs.samples
        if s.name in samples
    )
    return replace(specs, samples=kept, records=tuple(r for r in specs.records if r.name in records))


def _items(files: Mapping[str, str], header: str, source: str, case: str) -> Iterator[Item]:
    known = dict.fromkeys((f"SCOPE_{name}" for name in _oracles()), "")
    known |= {name: value.strip() or "1" for name, value in _KNOWN.findall(files["compat.h"] + files["scope.h"])}
    bare = "\n".join(line for line in _COMMENT.sub("", header).split("\n") if line.strip())
    yield from split_items(resolve(bare, dict.fromkeys(_GUARD.findall(bare), "")), UAPI)
    runtime = (data_dir("selftests") / "single" / "ktap.c").read_text(encoding="utf-8")
    library = {n: t for n, t in files.items() if n.endswith((".h", ".c")) and not _is_program(n, files)}
    for name, text in {**library, "ktap.c": runtime, source: _one_case(files[source], case)}.items():
        guards = dict.fromkeys(_GUARD.findall(text), "")
        for item in split_items(resolve(text, known | guards), name):
            if item.kind != "include" or "<linux/perf_event.h>" not in item.text:
                yield item


def _oracles() -> set[str]:
    return {spec.oracle.upper() for spec in load_specs().samples if spec.oracle}


def _is_program(name: str, files: Mapping[str, str]) -> bool:
    return bool(re.search(rf"^TEST_GEN_PROGS := .*\b{re.escape(name[:-2])}\b", files["Makefile"], re.MULTILINE)) and (
        name.endswith(".c")
    )


def _one_case(text: str, case: str) -> str:
    """Leave of main() only what adds the case. Raises ValueError when nothing does."""
    raw = text.encode()
    main = next(f for f in functions(raw) if f.name == "main")
    body, shift = parse_body(raw, main)
    calls = [
        n for n in _walk(body) if n.type == "call_expression" and _text(n.child_by_field_name("function")) == "ktap_add"
    ]
    wanted = _matching(calls, case)
    if not wanted:
        msg = f"main() adds no case {case}"
        raise ValueError(msg)
    kept = {(n.start_byte, n.end_byte) for n in wanted}
    cuts: list[tuple[int, int, bytes]] = []
    _cut(body, kept, cuts)
    cuts += _unused(body, cuts)
    for start, end, instead in sorted(cuts, reverse=True):
        raw = raw[: start + shift] + instead + raw[end + shift :]
    return raw.decode()


def _matching(calls: list[Node], case: str) -> list[Node]:
    # The calls whose format can give the name; of several, those that say most of it.
    found: list[tuple[int, Node]] = []
    for call in calls:
        arguments = call.child_by_field_name("arguments")
        literals = [n for n in (arguments.named_children if arguments else []) if n.type == "string_literal"]
        if not literals:
            continue
        parts = re.split(r"%[a-z]+", _text(literals[0])[1:-1])
        if re.fullmatch(".+".join(map(re.escape, parts)), case):
            found.append((sum(map(len, parts)), call))
    most = max((length for length, _ in found), default=0)
    return [call for length, call in found if length == most]


def _cut(node: Node, kept: set[tuple[int, int]], cuts: list[tuple[int, int, bytes]]) -> None:
    for child in node.named_children:
        inside = [
            n
            for n in _walk(child)
            if n.type == "call_expression" and _text(n.child_by_field_name("function")) == "ktap_add"
        ]
        if not inside:
            continue
        if any((n.start_byte, n.end_byte) in kept for n in inside):
            _cut(child, kept, cuts)
        elif node.type == "compound_statement":
            cuts.append((child.start_byte, child.end_byte, b""))
        elif child.type.endswith("_statement"):
            cuts.append((child.start_byte, child.end_byte, b"(void)0;"))


def _unused(body: Node, cuts: list[tuple[int, int, bytes]]) -> Iterator[tuple[int, int, bytes]]:
    """Yield the variables of main() that nothing names once the cuts are made."""
    left = [n for n in _walk(body) if n.type == "identifier" and not any(a <= n.start_byte < b for a, b, _ in cuts)]
    for child in body.named_children:
        if child.type == "declaration" and not any(start <= child.start_byte < end for start, end, _ in cuts):
            names = {_text(n) for n in _walk(child) if n.type == "identifier"}
            if not any(_text(n) in names for n in left if not child.start_byte <= n.start_byte < child.end_byte):
                yield (child.start_byte, child.end_byte, b"")


def _walk(node: Node) -> Iterator[Node]:
    stack = [node]
    while stack:
        here = stack.pop()
        yield here
        stack.extend(here.children)


def _text(node: Node | None) -> str:
    return (node.text or b"").decode("utf-8", "replace") if node is not None else ""


def _head(subject: Subject, case: str) -> str:
    lines = [line.replace("*/", "* /").rstrip() for line in subject.about]
    about = "\n".join(f" * {line}".rstrip() for line in lines)
    return f"""// SPDX-License-Identifier: GPL-2.0
/*
{about}
 */
#define _GNU_SOURCE
#pragma GCC optimize("no-omit-frame-pointer", "no-optimize-sibling-calls")

#define CASE		"{case}"
#define CASE_RULE	"{subject.rule}"

"""
