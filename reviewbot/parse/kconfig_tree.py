"""The Kconfig files of a tree, read just well enough to say why a symbol cannot be set.

In: a callable that gives the text of a file of the tree (None where there is none). Out: Symbols with what they depend
on, by themselves and through enclosing ``if`` and ``menu`` blocks. Refused: evaluation of macros; defaults and ranges
are not read.

Source: Documentation/kbuild/kconfig-language.rst
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from reviewbot.parse.kconfig_expr import unmet_terms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_CONFIG = re.compile(r"(?:menu)?config\s+(\w+)")
_SOURCE = re.compile(r"source\s+\"([^\"]+)\"")
_PROMPT = re.compile(r"(?:bool|tristate|string|int|hex|prompt)\s+[\"'](?:.*?)[\"'](?:\s+if\s+(.*))?$")
_SELECT = re.compile(r"(select|imply)\s+(\w+)(?:\s+if\s+(.*))?$")
_MAX_FILES = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One ``config`` entry: its file, the expressions that must all hold, and whether a user can set it."""

    file: str
    depends: tuple[str, ...]
    prompt: bool


@dataclass(slots=True)
class KconfigTree:
    """All symbols of a tree: definitions of each, who selects or implies it, and who selects it if what holds."""

    definitions: dict[str, list[Definition]] = field(default_factory=dict)
    selectors: dict[str, list[str]] = field(default_factory=dict)
    forced: dict[str, list[tuple[str, str]]] = field(default_factory=dict)


def read_tree(read: Callable[[str], str | None], *, arch: str = "x86", root: str = "Kconfig") -> KconfigTree:
    """Return the symbols of the tree that starts at root; ``$(SRCARCH)`` in a path is arch."""
    tree = KconfigTree()
    _Reader(read, arch, tree).file(root, [])
    return tree


def why_not(symbol: str, tree: KconfigTree, config: Mapping[str, str]) -> tuple[str, ...]:
    """Return the reasons, one line each, for which symbol cannot have the wanted value in config.

    Empty when nothing stands against it that can be seen here (a choice, a macro, a symbol forced on by a select).
    """
    found = tree.definitions.get(symbol, [])
    if not found:
        return (f"no Kconfig file of this tree defines {symbol}",)
    reasons = min(([*_unmet(d, config)] for d in found), key=len)
    if not reasons and not any(d.prompt for d in found):
        selectors = sorted(set(tree.selectors.get(symbol, [])))
        return (f"{symbol} has no prompt; it is selected by {', '.join(selectors[:8]) or 'nothing'}",)
    return tuple(f"depends on {reason}" for reason in reasons)


def why_on(symbol: str, tree: KconfigTree, config: Mapping[str, str]) -> str:
    """Return in a few words why symbol, on in config, cannot be turned off; empty when nothing is seen against it."""
    found = tree.definitions.get(symbol, [])
    if not found:
        return "no Kconfig file of this tree defines it"
    holders = sorted(
        {
            holder
            for holder, condition in tree.forced.get(symbol, [])
            if config.get(holder) in ("y", "m") and not (condition and unmet_terms(condition, config))
        }
    )
    if holders:
        return f"selected by {', '.join(holders[:4])}" + (f" and {len(holders) - 4} more" if len(holders) > 4 else "")
    return "" if any(d.prompt for d in found) else "it has no prompt"


def _unmet(definition: Definition, config: Mapping[str, str]) -> list[str]:
    return list(dict.fromkeys(term for e in definition.depends for term in unmet_terms(e, config)))


class _Reader:
    def __init__(self, read: Callable[[str], str | None], arch: str, tree: KconfigTree) -> None:
        self._read = read
        self._arch = arch
        self._tree = tree
        self._seen: set[str] = set()

    def file(self, path: str, outer: list[str]) -> None:
        if path in self._seen or len(self._seen) >= _MAX_FILES or len(outer) > 200:
            return
        self._seen.add(path)
        text = self._read(path)
        if text is None:
            return
        _File(path, outer, self._tree, self.source).run(_statements(text))

    def source(self, path: str, outer: list[str]) -> None:
        self.file(path.replace("$(SRCARCH)", self._arch).replace("$SRCARCH", self._arch), outer)


class _File:
    # One file: a stack of blocks, each with the expressions that hold in it, and the entry that is being read.
    def __init__(
        self, path: str, outer: list[str], tree: KconfigTree, source: Callable[[str, list[str]], None]
    ) -> None:
        self._path, self._tree, self._source = path, tree, source
        self._blocks: list[list[str]] = [list(outer)]
        self._symbol = ""
        self._depends: list[str] = []
        self._prompt = False

    def run(self, statements: Iterator[str]) -> None:
        for line in statements:
            self._statement(line)
        self._end_entry()

    def _end_entry(self) -> None:
        if self._symbol:
            depends = tuple(e for block in self._blocks for e in block) + tuple(self._depends)
            entry = Definition(file=self._path, depends=depends, prompt=self._prompt)
            self._tree.definitions.setdefault(self._symbol, []).append(entry)
        self._symbol, self._depends, self._prompt = "", [], False

    def _statement(self, line: str) -> None:
        word = line.split(None, 1)[0]
        if match := _CONFIG.match(line):
            self._end_entry()
            self._symbol = match[1]
        elif word in {"if", "menu", "choice"}:
            self._end_entry()
            self._blocks.append([line.removeprefix("if").strip()] if word == "if" else [])
        elif word in {"endif", "endmenu", "endchoice"}:
            self._end_entry()
            if len(self._blocks) > 1:
                self._blocks.pop()
        elif match := _SOURCE.match(line):
            self._end_entry()
            self._source(match[1], [e for block in self._blocks for e in block])
        elif word == "comment":
            self._end_entry()
            self._symbol = ""
        else:
            self._attribute(line)

    def _attribute(self, line: str) -> None:
        if line.startswith("depends on "):
            expression = line.removeprefix("depends on ").strip()
            (self._depends if self._symbol else self._blocks[-1]).append(expression)
        elif line.startswith("visible if "):
            return
        elif match := _PROMPT.match(line):
            self._prompt = True
            if match[1]:
                self._depends.append(match[1])
        elif (match := _SELECT.match(line)) and self._symbol:
            self._tree.selectors.setdefault(match[2], []).append(self._symbol)
            if match[1] == "select":
                self._tree.forced.setdefault(match[2], []).append((self._symbol, match[3] or ""))


def _statements(text: str) -> Iterator[str]:
    # Logical lines without comments and help texts.
    lines = iter(text.replace("\\\n", " ").splitlines())
    help_indent = -1
    in_help = False
    for line in lines:
        stripped = line.strip()
        indent = len(line.expandtabs()) - len(line.expandtabs().lstrip())
        if in_help:
            if not stripped or (help_indent < 0 and indent > 0) or (help_indent >= 0 and indent >= help_indent):
                if stripped and help_indent < 0:
                    help_indent = indent
                continue
            in_help, help_indent = False, -1
        if stripped in {"help", "---help---"}:
            in_help = True
        elif stripped and not stripped.startswith("#"):
            yield _without_comment(stripped)


def _without_comment(line: str) -> str:
    return re.sub(r"\s+#[^\"]*$", "", line)
