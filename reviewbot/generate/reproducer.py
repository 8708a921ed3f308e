"""One case of the generated tests as a C file of its own (pure).

In: the scope and the specs that the tests were rendered from, the UAPI header of the patched tree, and the case with
the rule that it broke. Out: one C file that compiles with ``gcc -static -O2`` and nothing of ours or of the tree, runs
that case alone, and exits with 1 when the rule is broken, 0 when it is not, 4 when that cannot be told. It is made of
the same sources as the tests: what the case does not reach is left out, and so are the sample types that it does not
name.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from reviewbot.generate.amalgam import Amalgam
from reviewbot.generate.csplit import Item, resolve, split_items, words_of
from reviewbot.generate.kselftest import CONFIG, load_specs, render_kselftest
from reviewbot.generate.one_case import one_case
from reviewbot.generate.rules import rule_macro
from reviewbot.model import main_breach
from reviewbot.resources import data_dir

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from reviewbot.generate.scope import Scope
    from reviewbot.generate.spec import SampleSpec, Specs
    from reviewbot.model import Case, Finding

UAPI = "linux/perf_event.h"
# What comes whatever was asked for.
_ALWAYS = frozenset({"PERF_RECORD_LOST", "PERF_RECORD_THROTTLE", "PERF_RECORD_UNTHROTTLE"})
_COMMENT = re.compile(r"[ \t]*/\*.*?\*/[ \t]*", re.DOTALL)
_GUARD = re.compile(r"#ifndef (\w+)\n#define \1\s*\n")
_KNOWN = re.compile(r"^#define (HAVE_\w+|SCOPE_\w+)[ \t]*(.*)$", re.MULTILINE)
_SAMPLE_MEMBER = re.compile(r"\b(?:sample|s)\s*(?:->|\.)\s*([a-z]\w*)")
_RECORD_MEMBER = re.compile(r"\b(?:record|r)\s*(?:->|\.)\s*([a-z]\w*)")
_ID_MEMBER = re.compile(r"\bid\s*(?:->|\.)\s*([a-z]\w*)")
# The tests are for x86-64.
_X86 = {"__LITTLE_ENDIAN_BITFIELD": "1", "__BIG_ENDIAN_BITFIELD": ""}
# A program that goes through one of these asks for types that it does not name.
_TABLES = frozenset({"combinations", "scope_types", "sample_types"})
_ROUNDS_MAX = 10
_WIDTH = 90


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
    narrow = whole
    text = render_kselftest(scope, whole).get(source)
    if text is None:
        msg = f"{subject.case}: the tests have no program {program}"
        raise ValueError(msg)
    for number in range(_ROUNDS_MAX):
        files = {**render_kselftest(scope, narrow), source: text}
        amalgam = Amalgam(items=tuple(_items(files, header, source, case)))
        reached = amalgam.reach(["main"], source)
        before, narrow = (
            narrow,
            _asked(whole, amalgam, reached, source, rule_macro(subject.rule))
            if number == 0
            else _read(whole, narrow, reached),
        )
        if number and narrow == before:
            break
    return _head(subject, case) + amalgam.render()


def _asked(specs: Specs, amalgam: Amalgam, reached: tuple[Item, ...], source: str, rule: str) -> Specs:
    """Return the specs of what the program itself names, and of what comes whatever it asks for.

    Only values whose oracle can find the rule broken are checked; all, where the program itself looks at what the
    oracles counted.
    """
    own = [item for item in reached if item.file == source]
    text = "\n".join(item.text for item in reached if item.file in (source, "event.c"))
    words = {word for item in own for word in words_of(item)}
    every = not _TABLES.isdisjoint(words)
    samples = frozenset(s.name for s in specs.samples if every or s.name in words)
    records = frozenset(
        r.name
        for r in specs.records
        if r.name in words or r.name in _ALWAYS or (r.asked_by and re.search(rf"(?:\.|->){r.asked_by}\b", text))
    )
    checked = frozenset(
        s.name for s in specs.samples if s.name in samples and (rule in words or _finds(amalgam, s.oracle, rule))
    )
    checks = any("check_sample" in item.names for item in reached)
    return _narrowed(specs, samples, checked if checks else frozenset(), records)


def _finds(amalgam: Amalgam, oracle: str, rule: str) -> bool:
    """Tell whether an oracle, or a function of the oracles that it calls, names the rule."""
    seen: set[str] = set()
    ahead = [f"oracle_{oracle}"]
    while ahead:
        name = ahead.pop()
        item = next((i for i in amalgam.items if name in i.names and i.file.startswith("oracle")), None)
        if name == rule:
            return True
        if item is not None and name not in seen:
            seen.add(name)
            ahead += words_of(item)
    return False


def _read(specs: Specs, narrow: Specs, reached: tuple[Item, ...]) -> Specs:
    """Return narrow with the specs of the members that the library reads; their values are not checked."""
    text = "\n".join(item.text for item in reached if item.file != UAPI)
    members = {*_SAMPLE_MEMBER.findall(text), *_ID_MEMBER.findall(text)}
    in_records = set(_RECORD_MEMBER.findall(text))
    asked = frozenset(s.name for s in narrow.samples if s.oracle or not _spec(specs, s.name).oracle)
    samples = {s.name for s in narrow.samples} | {s.name for s in specs.samples if s.member in members}
    records = {r.name for r in narrow.records} | {r.name for r in specs.records if r.member in in_records}
    return _narrowed(specs, frozenset(samples), asked, frozenset(records))


def _spec(specs: Specs, name: str) -> SampleSpec:
    return next(s for s in specs.samples if s.name == name)


def _narrowed(specs: Specs, samples: frozenset[str], checked: frozenset[str], records: frozenset[str]) -> Specs:
    kept = tuple(
        replace(
            s,
            excludes=tuple(name for name in s.excludes if name in samples),
            oracle=s.oracle if s.name in checked else "",
        )
        for s in specs.samples
        if s.name in samples
    )
    return replace(specs, samples=kept, records=tuple(r for r in specs.records if r.name in records))


def _items(files: Mapping[str, str], header: str, source: str, case: str) -> Iterator[Item]:
    known = dict.fromkeys((f"SCOPE_{name}" for name in _oracles()), "")
    known |= {name: value.strip() or "1" for name, value in _KNOWN.findall(files["compat.h"] + files["scope.h"])}
    bare = "\n".join(line for line in _COMMENT.sub("", header).split("\n") if line.strip())
    yield from split_items(resolve(bare, _X86 | dict.fromkeys(_GUARD.findall(bare), "")), UAPI)
    runtime = (data_dir("selftests") / "single" / "ktap.c").read_text(encoding="utf-8")
    library = {n: t for n, t in files.items() if n.endswith((".h", ".c")) and not _is_program(n, files)}
    for name, text in {**library, "ktap.c": runtime, source: one_case(files[source], case)}.items():
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


def about(case: Case, finding: Finding, kernel: str) -> tuple[str, ...]:
    """Return the lines at the head of a reproducer: what it shows, the rule, how to compile and run it."""
    breach = main_breach(case)
    name = file_name(case.name)
    lines = [f"{case.name}: {breach.seen}", *([f"Expected: {breach.expected}"] if breach.expected else []), ""]
    if breach.text:
        lines += [f"The rule, {breach.rule}: {breach.text}.", *(f"- {source}" for source in breach.sources), ""]
    lines += [f"{line.file}:{line.line}: {line.text.strip()}" for line in finding.lines if line.writes]
    lines += [
        "",
        f"Seen on {kernel}, with {', '.join(CONFIG)}.",
        "Compile it, and run it as root on that kernel, for example in a guest:",
        "",
        f"  gcc -static -O2 -o r {name}",
        "  vng -r arch/x86/boot/bzImage --user root -- ./r",
        "",
        "Exit status: 1 the fault is there, 0 it is not, 4 it cannot be told (a bit is refused, something is missing).",
        "Made by reviewbot from its tests: what the case does not need is left out; main() stands at the end.",
    ]
    return tuple(wrapped for line in lines for wrapped in (textwrap.wrap(line, _WIDTH, subsequent_indent="  ") or [""]))


def file_name(case: str) -> str:
    """Return the name of the reproducer of ``program/case``."""
    return re.sub(r"[^\w.-]", "-", case) + ".c"


def _head(subject: Subject, case: str) -> str:
    # Text from a kernel's records and from mails: nothing in it ends the comment, or continues a line.
    lines = [line.replace("*/", "* /").replace("/*", "/ *").rstrip(" \\\t") for line in subject.about]
    comment = "\n".join(f" * {line}".rstrip() for line in lines)
    return f"""// SPDX-License-Identifier: GPL-2.0
/*
{comment}
 */
#define _GNU_SOURCE
#pragma GCC optimize("no-omit-frame-pointer", "no-optimize-sibling-calls")

#define CASE		"{case}"
#define CASE_RULE	"{subject.rule}"

"""
