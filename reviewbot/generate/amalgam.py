"""Several C sources in, one source with only what is reached from given names out (pure).

In: sources in kernel style (a definition begins in the first column and ends with a line that begins with ``}`` or ends
with ``;``), and the macros whose value is known. Out: the text of one C file: includes, macros, types, then functions
and data, each behind what it uses. Declarations of functions are left out and made anew where two use each other.
Static names that two files have are told apart. No preprocessor runs: a condition that nothing decides stays.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

_LITERAL = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'", re.DOTALL)
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_WORD = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
_CONDITION = re.compile(r"#\s*(if|ifdef|ifndef|elif|else|endif)\b\s*(.*)")
_TAGGED = re.compile(r"(?:struct|union|enum)\s+(\w+)\s*\{")
_TYPE = re.compile(r"(?:struct|union|enum)(?:\s+\w+)?\s*(?:\{.*\}[^;=]*;\s*\Z|;)|(?:struct|union)\s+\w+;", re.DOTALL)
_USED_TAG = re.compile(r"\b(?:struct|union|enum)\s+(\w+)")
_NAME = re.compile(r"(?<![\w.>])(?:struct )?[A-Za-z_]\w*")
_TAG = "struct "  # in front of a name of a struct, union or enum, which C keeps apart
_FUNCTION = re.compile(r"(\w+)\s*\(")
_DECLARED = re.compile(r"(\w+)\s*(?:\[[^\]]*\]\s*)*(?:__\w+\s*)?;?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One definition: what it defines and its text, with the comment above it.

    kind is include, macro, type, data or function. head is a function's text before its body.
    """

    kind: str
    names: tuple[str, ...]
    text: str
    file: str
    head: str = ""

    @property
    def private(self) -> bool:
        """True for what another file cannot name."""
        if self.kind == "type":
            return self.file.endswith(".c")
        return (
            self.kind in ("data", "function")
            and self.file.endswith(".c")
            and bool(re.search(r"^static\b", self.text, re.MULTILINE))
        )


def resolve(text: str, known: Mapping[str, str]) -> str:
    """Return text without the conditions that known macros decide; known maps a name to its value, "" for undefined."""
    out: list[str] = []
    stack: list[tuple[bool | None, bool]] = []  # decided: take this branch, None: keep the lines; was one taken
    for line in text.split("\n"):
        match = _CONDITION.match(line.strip())
        if match is None:
            if all(take is not False for take, _ in stack):
                out.append(line)
            continue
        word, condition = match[1], _COMMENT.sub("", match[2]).strip()
        if word in ("if", "ifdef", "ifndef"):
            take = _decide(word, condition, known)
            if take is None and all(t is not False for t, _ in stack):
                out.append(line)
            stack.append((take, bool(take)))
        elif stack:
            take, done = stack[-1]
            if take is None:
                if all(t is not False for t, _ in stack):
                    out.append(line)
            elif word != "endif":
                stack[-1] = (not done, True)
            if word == "endif":
                stack.pop()
    return "\n".join(out)


def _decide(word: str, condition: str, known: Mapping[str, str]) -> bool | None:
    name = condition.removeprefix("defined(").removesuffix(")") if word == "if" else condition
    if not name.isidentifier() or name not in known:
        return None
    if word == "if" and name == condition:
        return known[name] not in ("", "0")
    return (known[name] != "") != (word == "ifndef")


def split_items(text: str, file: str) -> Iterator[Item]:
    """Yield the definitions of a source in their order; declarations of functions and of extern data are left out."""
    lines = text.split("\n")
    at = 0
    comment: list[str] = []
    while at < len(lines):
        line = lines[at]
        if not line.strip():
            comment, at = [], at + 1
            continue
        if line.startswith(("/*", "//")):
            end = at
            while line.startswith("/*") and "*/" not in lines[end]:
                end += 1
            comment, at = lines[at : end + 1], end + 1
            continue
        end = _end(lines, at)
        yield from _items("\n".join(lines[at : end + 1]), "\n".join(comment), file)
        comment, at = [], end + 1


def _end(lines: Sequence[str], at: int) -> int:
    if lines[at].startswith("#"):
        if _CONDITION.match(lines[at]) and re.match(r"#\s*if", lines[at]):
            return _end_of_condition(lines, at)
        while lines[at].endswith("\\"):
            at += 1
        return at
    depth = 0
    text = ""
    for end in range(at, len(lines)):
        text += lines[end] + "\n"
        code = _code(lines[end])
        depth += code.count("{") - code.count("}")
        stripped = code.rstrip()
        if depth == 0 and (stripped.endswith(";") or (stripped == "}" and lines[end].startswith("}"))):
            return end
    return len(lines) - 1


def _end_of_condition(lines: Sequence[str], at: int) -> int:
    depth = 0
    for end in range(at, len(lines)):
        if match := _CONDITION.match(lines[end].strip()):
            depth += match[1].startswith("if") - (match[1] == "endif")
            if depth == 0:
                return end
    return len(lines) - 1


def _items(text: str, comment: str, file: str) -> Iterator[Item]:
    full = f"{comment}\n{text}" if comment else text
    code = _code(text)
    if text.startswith("#"):
        if re.match(r"#\s*include\b", text):
            yield Item(kind="include", names=(), text=text, file=file)
        elif names := re.findall(r"^\s*#\s*define\s+(\w+)", text, re.MULTILINE):
            yield Item(kind="macro", names=tuple(dict.fromkeys(names)), text=full, file=file)
    elif re.search(r"\)\s*\n?\{", code) and code.rstrip().endswith("}"):
        head = text[: re.search(r"\n?\{", text[_close(code) :]).start() + _close(code)]  # type: ignore[union-attr]
        yield Item(kind="function", names=(_function_name(code),), text=full, file=file, head=head)
    elif code.startswith("typedef") or _TYPE.match(code):
        names = [f"{_TAG}{m[1]}" for m in _TAGGED.finditer(code)] or [f"{_TAG}{m}" for m in re.findall(r"(\w+);", code)]
        if re.match(r"enum\b", code):
            body = code[code.index("{") + 1 : code.rindex("}")]
            names += [part.split("=")[0].strip() for part in body.split(",") if part.strip()]
        elif code.startswith("typedef"):
            names = [_function_name(code)] if "(" in code else re.findall(r"(\w+)\s*;", code)[-1:]
        forward = re.match(r"(struct|union)\s+\w+;", code)
        yield Item(kind="forward" if forward else "type", names=tuple(names), text=full, file=file)
    elif file.endswith(".h") and not code.startswith("static") and "=" not in code:
        return  # declares what another file defines
    elif not code.startswith("extern") and ("=" in code or "(*" in code or "(" not in code):
        yield from _data(text, full, code, file)


def _close(code: str) -> int:
    # Place of the parenthesis that ends the parameters of a function.
    depth = 0
    for at in range(code.index("("), len(code)):
        depth += (code[at] == "(") - (code[at] == ")")
        if depth == 0:
            return at
    return len(code)


def _function_name(code: str) -> str:
    names = [m[1] for m in _FUNCTION.finditer(code.partition("{")[0])]
    return next((n for n in names if not n.startswith("__") or n == "__main"), names[0] if names else "")


def _data(text: str, full: str, code: str, file: str) -> Iterator[Item]:
    parts = _declarators(text, code)
    if len(parts) == 1:
        head = code.partition("=")[0] if "=" in code else code.rpartition("}")[2] or code
        names = re.findall(r"\(\*\s*(?:const\s+)?(\w+)", head) or _DECLARED.findall(head.strip())
        yield Item(kind="data", names=tuple(names[-1:]), text=full, file=file)
        return
    base = re.match(r"(?s)(.*?[\s*])\**\w+\s*(?:\[[^\]]*\]\s*)*(?:=.*)?$", parts[0])
    words = re.sub(r"[\s*]+$", "", base[1]) if base else ""
    for part in (parts[0][len(words) :].strip(), *parts[1:]):
        if name := re.search(r"\w+", part):
            yield Item(kind="data", names=(name[0],), text=f"{words} {part};", file=file)


def _declarators(text: str, code: str) -> list[str]:
    """Split a declaration of several variables at the commas between them, without the semicolon."""
    cuts, depth = [-1], 0
    for at, char in enumerate(code):
        depth += (char in "({[") - (char in ")}]")
        if char == "," and depth == 0:
            cuts.append(at)
    end = code.rindex(";") if ";" in code else len(code)
    return [text[a + 1 : b].strip() for a, b in zip(cuts, [*cuts[1:], end], strict=True)]


def _code(text: str) -> str:
    """Return text with comments, strings and characters blanked, every other character in its place."""
    return _LITERAL.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


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
        structs = {n.removeprefix(_TAG) for i in types for n in i.names if re.match(rf"(?s).*\b{n}\s*\{{", i.text)}
        # What is only pointed to may stand for itself.
        structs |= {n.removeprefix(_TAG) for i in self.items if i.kind == "forward" for n in i.names}
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
        name = _WORD.search(_code(line))
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


def words_of(item: Item, *, bodies: bool = True) -> tuple[str, ...]:
    """Return the words of a definition outside comments, strings and member accesses, in their order.

    Of an enum, bodies=False leaves out the names that it gives, and keeps those that their values are made of.
    """
    if not bodies and re.match(r"enum\b", item.text):
        given = "\n".join(line.partition("=")[2] for line in item.text.split("\n"))
        return tuple(_WORD.findall(_code(given)))
    code = re.sub(r"->\s*\w+", " ", _code(item.text))
    tags = [f"{_TAG}{name}" for name in _USED_TAG.findall(code)]
    return tuple(dict.fromkeys([*tags, *_WORD.findall(_USED_TAG.sub(" ", code))]))
