"""A C source as a list of its definitions (pure).

In: a source in kernel style (a definition begins in the first column and ends with a line that begins with ``}`` or
ends with ``;``), and the macros whose value is known. Out: one Item a definition, with the names that it gives and
those that it uses. No preprocessor runs: a condition that nothing decides stays, as one definition of all that it may
define.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_LITERAL = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'", re.DOTALL)
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
WORD = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
_CONDITION = re.compile(r"#\s*(if|ifdef|ifndef|elif|else|endif)\b\s*(.*)")
_TAGGED = re.compile(r"(?:struct|union|enum)\s+(\w+)\s*\{")
_TYPE = re.compile(r"(?:struct|union|enum)(?:\s+\w+)?\s*(?:\{.*\}[^;=]*;\s*\Z|;)|(?:struct|union)\s+\w+;", re.DOTALL)
_USED_TAG = re.compile(r"\b(?:struct|union|enum)\s+(\w+)")
TAG = "struct "  # in front of a name of a struct, union or enum, which C keeps apart
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
            while line.startswith("/*") and "*/" not in lines[end] and end + 1 < len(lines):
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
        while lines[at].endswith("\\") and at + 1 < len(lines):
            at += 1
        return at
    depth = 0
    text = ""
    for end in range(at, len(lines)):
        text += lines[end] + "\n"
        code = blanked(lines[end])
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
    code = blanked(text)
    if text.startswith("#"):
        if re.match(r"#\s*include\b", text):
            yield Item(kind="include", names=(), text=text, file=file)
        elif names := re.findall(r"^\s*#\s*define\s+(\w+)", text, re.MULTILINE):
            yield Item(kind="macro", names=tuple(dict.fromkeys(names)), text=full, file=file)
    elif re.search(r"\)\s*\n?\{", code) and code.rstrip().endswith("}"):
        head = text[: re.search(r"\n?\{", text[_close(code) :]).start() + _close(code)]  # type: ignore[union-attr]
        yield Item(kind="function", names=(_function_name(code),), text=full, file=file, head=head)
    elif code.startswith("typedef") or _TYPE.match(code):
        names = [f"{TAG}{m[1]}" for m in _TAGGED.finditer(code)] or [f"{TAG}{m}" for m in re.findall(r"(\w+);", code)]
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


def blanked(text: str) -> str:
    """Return text with comments, strings and characters blanked, every other character in its place."""
    return _LITERAL.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def words_of(item: Item, *, bodies: bool = True) -> tuple[str, ...]:
    """Return the words of a definition outside comments, strings and member accesses, in their order.

    Of an enum, bodies=False leaves out the names that it gives, and keeps those that their values are made of.
    """
    if not bodies and re.match(r"enum\b", item.text):
        given = "\n".join(line.partition("=")[2] for line in item.text.split("\n"))
        return tuple(WORD.findall(blanked(given)))
    code = re.sub(r"->\s*\w+", " ", blanked(item.text))
    tags = [f"{TAG}{name}" for name in _USED_TAG.findall(code)]
    return tuple(dict.fromkeys([*tags, *WORD.findall(_USED_TAG.sub(" ", code))]))
