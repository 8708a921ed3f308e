"""Several C sources in, one source with only what is reached from given names out (pure).

In: the definitions of the sources, as csplit gives them. Out: the text of one C file: includes, macros, types, then
functions and data, each behind what it uses. Declarations of functions are made anew where two use each other. Static
names that two files have are told apart.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from reviewbot.generate.csplit import TAG, WORD, Item, blanked, words_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

_NAME = re.compile(r"(?<![\w.>])(?:struct )?[A-Za-z_]\w*")


@dataclass(slots=True)
class Amalgam:
    """Definitions of several files, and what of them is reached."""

    items: tuple[Item, ...]
    _own: dict[tuple[str, str], Item] = field(default_factory=dict)
    _all: dict[str, Item] = field(default_factory=dict)
    _order: list[Item] = field(default_factory=list)
    _seen: dict[int, bool] = field(default_factory=dict)  # id of an item → its text is out
    _early: list[Item] = field(default_factory=list)

    def __post_init__(self) -> None:
        for item in self.items:
            for name in item.names:
                self._own.setdefault((item.file, name), item)
                if not item.private and item.kind != "forward":
                    self._all.setdefault(name, item)

    def reach(self, names: Iterable[str], file: str) -> tuple[Item, ...]:
        """Return the items that the names of a file need, each behind those that it uses, and remember them."""
        for name in names:
            if item := self.find(name, file):
                self._visit(item)
        return tuple(self._order)

    def find(self, name: str, file: str) -> Item | None:
        """Return the item that a name in a file means, or None."""
        return self._own.get((file, name)) or self._all.get(name)

    def _visit(self, item: Item) -> None:
        stack: list[tuple[Item, Iterator[str]]] = [(item, iter(words_of(item)))]
        self._seen[id(item)] = False
        while stack:
            here, words = stack[-1]
            for word in words:
                used = self.find(word, here.file)
                if used is None or used is here or used.kind == "forward":
                    continue
                if here.kind == "type" and used.kind in ("data", "function"):
                    continue  # the name of a member
                if id(used) not in self._seen:
                    self._seen[id(used)] = False
                    stack.append((used, iter(words_of(used))))
                    break
                if not self._seen[id(used)] and used.kind in ("data", "function") and used not in self._early:
                    self._early.append(used)
            else:
                stack.pop()
                self._seen[id(here)] = True
                self._order.append(here)

    def render(self) -> str:
        """Return what was reached as one source, without a head."""
        files = {item.file for item in self._order}
        includes = sorted({i.text for i in self.items if i.kind == "include" and i.file in files and "<" in i.text})
        renamed = self._renamed()
        parts = ["\n".join(includes)]
        macros = [renamed(i) for i in self._order if i.kind == "macro"]
        parts.append("\n".join(dict.fromkeys(macros)))
        used = {word for item in self._order for word in words_of(item, bodies=False)}
        types = [replace(i, text=_fewer(i.text, used)) for i in self._order if i.kind == "type"]
        structs = {n.removeprefix(TAG) for i in types for n in i.names if re.match(rf"(?s).*\b{n}\s*\{{", i.text)}
        # What is only pointed to may stand for itself.
        structs |= {n.removeprefix(TAG) for i in self.items if i.kind == "forward" for n in i.names}
        ahead = [n for n in sorted(structs) if self._used_before(n, types)]
        parts.append("\n".join(f"struct {name};" for name in ahead))
        parts += dict.fromkeys(renamed(i) for i in types)
        parts.append("\n".join(renamed(replace(i, text=_declaration(i))) for i in self._early))
        parts += dict.fromkeys(renamed(i) for i in self._order if i.kind in ("data", "function"))
        return _spaced(part for part in parts if part)

    def _used_before(self, name: str, types: Sequence[Item]) -> bool:
        for item in types:
            if re.search(rf"\bstruct\s+{name}\b\s*\{{", item.text):
                return False
            if re.search(rf"\bstruct\s+{name}\b", item.text):
                return True
        return False

    def _renamed(self) -> Callable[[Item], str]:
        # Private names that several files give to different things.
        owners: dict[str, dict[str, str]] = {}
        for item in self._order:
            if item.kind in ("data", "function", "type"):
                for name in item.names:
                    owners.setdefault(name, {}).setdefault(item.text, item.file)
        twice: dict[str, dict[str, str]] = {}
        for name, texts in owners.items():
            for number, file in enumerate(dict.fromkeys(texts.values())):
                if number:
                    twice.setdefault(file, {})[name] = f"{name}_{file.rpartition('.')[0]}"

        def text_of(item: Item) -> str:
            names = twice.get(item.file, {})
            if not names:
                return item.text
            return _NAME.sub(lambda m: names.get(m[0], m[0]), item.text)

        return text_of


def _fewer(text: str, used: set[str]) -> str:
    """Leave out the values of an enum that nothing names and that the next value does not count on."""
    lines = text.split("\n")
    if not re.match(r"enum\b.*\{$", lines[0]):
        return text
    kept: list[str] = []
    counts = False  # the value below continues this one
    for line in reversed(lines[1:-1]):
        name = WORD.search(blanked(line))
        if name is None or name[0] in used or counts:
            kept.insert(0, line)
            counts = name is not None and "=" not in line
    return "\n".join([lines[0], *kept, lines[-1]])


def _declaration(item: Item) -> str:
    """Return what declares a function, or data that are defined further down."""
    if item.kind == "function":
        return f"{item.head.strip()};"
    head = item.text.rpartition("*/\n")[2].split("=")[0].strip()
    return f"{head};" if item.private else f"extern {head};"


def _spaced(parts: Iterable[str]) -> str:
    # A line of its own stands by its like, anything longer apart.
    out: list[str] = []
    for part in parts:
        short = "\n" not in part
        out += [] if short and out and "\n" not in out[-1] and out[-1] else [""]
        out.append(part)
    return "\n".join(out[1:]) + "\n"
