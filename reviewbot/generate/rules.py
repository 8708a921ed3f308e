"""The rules that the generated tests hold a kernel to, and where each of them stands (pure).

In: the text of selftests/rules.toml; the UAPI header of the tree under test; the commit messages of the series. Out:
Rule values, and the source of one in words that a reader can look up: a quoted line of the header, a quoted sentence of
a message, a manual page, another field. A source that this tree and this series do not have is not cited.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from reviewbot.generate.expression import SpecError
from reviewbot.model import Status
from reviewbot.resources import data_dir

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reviewbot.generate.spec import Specs

_NAME = re.compile(r"[a-z][a-z0-9-]*(\.[a-z0-9-]+)?\Z")
_SENTENCE = re.compile(r"(?<=[.:;])\s+(?=[A-Z])|\n\s*\n")
_HEADER = "include/uapi/linux/perf_event.h"
_SOURCES = ("uapi", "message", "man", "document", "field", "evident")
_KEYS = {"text", "level", "writes", *_SOURCES}
_QUOTE_MAX = 300
_LINES_MAX = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule: what it asks for, how a breach counts (FAIL, or WARN: a reader should judge) and where it may stand.

    uapi and message are regular expressions; writes names members (``struct.member``) and functions (``name()``) of the
    kernel that hold what the rule is about.
    """

    name: str
    text: str
    level: Status = Status.FAIL
    uapi: str = ""
    message: str = ""
    man: str = ""
    document: str = ""
    field: str = ""
    evident: str = ""
    writes: tuple[str, ...] = ()

    @property
    def macro(self) -> str:
        """Name of its macro in the generated rules.h."""
        return rule_macro(self.name)


def rule_macro(name: str) -> str:
    """Return the name of the macro that rules.h has for a rule."""
    return "RULE_" + re.sub(r"[.-]", "_", name).upper()


def parse_rules(text: str) -> dict[str, Rule]:
    """Read the rules, one TOML table each, by name. Raises SpecError for one that says too little or too much."""
    return {name: _rule(name, table) for name, table in tomllib.loads(text).items()}


def _rule(name: str, table: Mapping[str, object]) -> Rule:
    if unknown := set(table) - _KEYS:
        msg = f"{name}: unknown keys {', '.join(sorted(unknown))}"
        raise SpecError(msg)
    try:
        rule = msgspec.convert({**table, "name": name}, Rule)
    except msgspec.ValidationError as error:
        msg = f"{name}: {error}"
        raise SpecError(msg) from error
    if not _NAME.match(name) or rule.level not in (Status.FAIL, Status.WARN):
        msg = f"{name}: a rule is named in small letters, and its level is fail or warn"
        raise SpecError(msg)
    if not any(getattr(rule, source) for source in _SOURCES):
        msg = f"{name}: a rule has a source"
        raise SpecError(msg)
    return rule


@cache
def load_rules() -> dict[str, Rule]:
    """Return the rules that travel with reviewbot, by name."""
    return parse_rules((data_dir("selftests") / "rules.toml").read_text(encoding="utf-8"))


def rules_for(specs: Specs) -> dict[str, Rule]:
    """Return load_rules() and the rules of the sample types with proofs that bring their own.

    Raises SpecError for a spec that names a rule which is nowhere described.
    """
    rules = dict(load_rules())
    for spec in (s for s in specs.samples if s.proofs):
        if spec.own_rule:
            rules[spec.rule] = _rule(spec.rule, dict(spec.own_rule))
        elif spec.rule not in rules:
            msg = f"{spec.name}: rules.toml has no {spec.rule}; describe it in a table [rule], with text and a source"
            raise SpecError(msg)
    return rules


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """What rules may stand in: the UAPI header of the tree under test, and (title, message) of each patch."""

    header: str = ""
    messages: tuple[tuple[str, str], ...] = ()


def sources(rule: Rule, tree: Tree) -> tuple[str, ...]:
    """Return where the rule stands, one line each, in the order in which a reader should look; none when nowhere."""
    found = [
        _uapi(rule.uapi, tree.header) if rule.uapi else "",
        _message(rule.message, tree.messages) if rule.message else "",
        rule.man,
        rule.document,
        f"the same value elsewhere: {rule.field}" if rule.field else "",
        f"self-evident: {rule.evident}" if rule.evident else "",
    ]
    return tuple(filter(None, found))


def _uapi(pattern: str, header: str) -> str:
    hits = [(n, line) for n, line in enumerate(header.split("\n"), 1) if re.search(pattern, line)]
    if not hits:
        return ""
    quoted = "; ".join(dict.fromkeys(f'"{_tidy(line)}"' for _, line in hits[:_LINES_MAX]))
    return f"{_HEADER}:{hits[0][0]}: {quoted}"


def _message(pattern: str, messages: Sequence[tuple[str, str]]) -> str:
    for title, text in messages:
        for sentence in _SENTENCE.split(text):
            if re.search(pattern, " ".join(sentence.split())):
                return f'commit message of "{title}": "{_tidy(sentence)}"'
    return ""


def _tidy(text: str) -> str:
    line = " ".join(text.split()).removeprefix("* ").removeprefix("{ ")
    return line if len(line) <= _QUOTE_MAX else line[: _QUOTE_MAX - 2] + " …"
