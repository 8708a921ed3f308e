"""Kconfig symbols on which the added lines of a series depend, and what turning each the other way would compile.

In: the text of C files and headers, the numbers of their added lines, and a configuration. Out: a Flip for each symbol.
Preprocessor conditions are evaluated with three values: a macro that is no Kconfig symbol is unknown, and a line that
hangs on it counts as compiled. Refused: nothing; unbalanced directives are read as far as they go.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_DIRECTIVE = re.compile(r"[ \t]*#[ \t]*(ifdef|ifndef|if|elifdef|elifndef|elif|else|endif)\b(.*)", re.DOTALL)
_COMMENT = re.compile(r"/\*.*?(?:\*/|$)|//.*", re.DOTALL)
_TOKEN = re.compile(r"defined|&&|\|\||[!()]|[A-Za-z_]\w*|\d\w*|\S")
_ENABLED = {"IS_ENABLED": "ym", "IS_BUILTIN": "y", "IS_MODULE": "m", "IS_REACHABLE": "y"}
_IN_CODE = re.compile(rf"\b(?:{'|'.join(_ENABLED)})\s*\(\s*CONFIG_(\w+)\s*\)")
_SYMBOL = re.compile(r"\bCONFIG_(\w+)")
_MAX_TOKENS = 400
_MAX_DEPTH = 50

Truth = bool | None  # None: cannot be told


@dataclass(frozen=True, slots=True, kw_only=True)
class Flip:
    """A symbol that can be tried the other way.

    value is what to give it: ``n`` when the configuration has it on, ``y`` when it is off. gained and lost count the
    added lines that would be compiled in addition and those that would not; named counts those that ask for it in an
    expression (``IS_ENABLED()``). enclosing: an older condition is around added lines and the series touches none that
    names it. file and line are the first place.
    """

    symbol: str
    value: str
    gained: int = 0
    lost: int = 0
    named: int = 0
    enclosing: bool = False
    file: str = ""
    line: int = 0

    @property
    def turned(self) -> str:
        """``CONFIG_X=n``, as a reader writes it."""
        return f"CONFIG_{self.symbol}={self.value}"


def find_flips(files: Mapping[str, tuple[str, Iterable[int]]], config: Mapping[str, str]) -> tuple[Flip, ...]:
    """Return the symbols that change what becomes of the added lines, most important first.

    files maps a path to its text and the 1-based numbers of its added lines; config is symbol -> value of the
    ``.config`` of the review. Code that is not compiled now comes before code that a flip takes away, then mere use,
    then conditions that only stand around what the series adds.
    """
    found: dict[str, Flip] = {}
    for file, (text, added) in files.items():
        numbers = set(added)
        for number, line, stack in _lines(text):
            if number in numbers:
                for flip in _flips_of(line, stack, numbers, config):
                    found[flip.symbol] = _add(found.get(flip.symbol), replace(flip, file=file, line=number))
    return tuple(sorted(found.values(), key=lambda f: (f.enclosing, not f.gained, not f.lost, -f.gained - f.lost)))


def _add(old: Flip | None, new: Flip) -> Flip:
    if old is None:
        return new
    return replace(
        old,
        gained=old.gained + new.gained,
        lost=old.lost + new.lost,
        named=old.named + new.named,
        enclosing=old.enclosing and new.enclosing,
    )


@dataclass(frozen=True, slots=True)
class _Branch:
    # One branch of a conditional: what must not hold (the branches before it), what must, and where it stands.
    before: tuple[str, ...]
    condition: str
    numbers: tuple[int, ...]

    def active(self, config: Mapping[str, str]) -> Truth:
        values = [*(_not(_truth(c, config)) for c in self.before), _truth(self.condition, config)]
        return _and(values)

    @property
    def symbols(self) -> set[str]:
        return {name for text in (*self.before, self.condition) for name in _SYMBOL.findall(text)}


def _lines(text: str) -> Iterator[tuple[int, str, tuple[_Branch, ...]]]:
    # Each line with the branches around it. A directive stands in the branches that are around its conditional.
    stack: list[_Branch] = []
    for first, last, line in _logical(text):
        directive = _DIRECTIVE.match(line)
        if directive is None:
            for number in range(first, last + 1):
                yield number, line, tuple(stack)
            continue
        word, rest = directive[1], _COMMENT.sub(" ", directive[2])
        condition = {"ifdef": f"defined({rest})", "ifndef": f"!defined({rest})"}.get(word.removeprefix("el"), rest)
        if word.startswith("if"):
            stack.append(_Branch((), condition, (first,)))
        elif word == "endif":
            if stack:
                stack.pop()
        elif stack:
            old = stack[-1]
            stack[-1] = _Branch(
                (*old.before, old.condition), condition if word != "else" else "1", (*old.numbers, first)
            )
        yield first, line, tuple(stack[:-1] if word != "endif" else stack)


def _logical(text: str) -> Iterator[tuple[int, int, str]]:
    # (first, last, text) of logical lines: a backslash joins a line with the next.
    first, parts = 0, list[str]()
    number = 0
    for number, line in enumerate(text.split("\n"), start=1):
        first = first or number
        parts.append(line.removesuffix("\\"))
        if not line.endswith("\\"):
            yield first, number, " ".join(parts)
            first, parts = 0, []
    if parts:
        yield first, number, " ".join(parts)


def _flips_of(line: str, stack: tuple[_Branch, ...], added: set[int], config: Mapping[str, str]) -> Iterator[Flip]:
    if not line.strip():
        return
    used = set(_IN_CODE.findall(line)) if not _DIRECTIVE.match(line) else set()
    around = {_plain(name, config) for branch in stack for name in branch.symbols}
    now = _and([b.active(config) for b in stack])
    for symbol in sorted(used | around):
        flipped = "n" if config.get(symbol, "n") in ("y", "m") else "y"
        if config.get(symbol, "n") not in ("y", "m", "n"):
            continue  # a number or a text
        then = _and([b.active({**config, symbol: flipped}) for b in stack])
        gained, lost = now is False and then is not False, now is not False and then is False
        if gained or lost or symbol in used:
            ours = symbol in used or any(
                symbol in {_plain(n, config) for n in b.symbols} and added & set(b.numbers) for b in stack
            )
            yield Flip(
                symbol=symbol,
                value=flipped,
                gained=int(gained),
                lost=int(lost),
                named=int(symbol in used),
                enclosing=not ours,
            )


def _plain(name: str, config: Mapping[str, str]) -> str:
    # CONFIG_X_MODULE is defined where X is a module, unless there is a symbol of that name.
    return name.removesuffix("_MODULE") if name not in config else name


def _and(values: list[Truth]) -> Truth:
    if any(v is False for v in values):
        return False
    return None if any(v is None for v in values) else True


def _not(value: Truth) -> Truth:
    return None if value is None else not value


def _truth(condition: str, config: Mapping[str, str]) -> Truth:
    tokens = _TOKEN.findall(condition)
    return None if len(tokens) > _MAX_TOKENS else _Reader(tokens, config).either(0)


class _Reader:
    # A recursive-descent reader of #if expressions; what it does not know is None.
    def __init__(self, tokens: list[str], config: Mapping[str, str]) -> None:
        self._tokens = tokens
        self._config = config
        self._place = 0

    def _peek(self) -> str:
        return self._tokens[self._place] if self._place < len(self._tokens) else ""

    def _take(self) -> str:
        token = self._peek()
        self._place += 1
        return token

    def either(self, depth: int) -> Truth:
        value = self._both(depth)
        while self._peek() == "||":
            self._take()
            other = self._both(depth)
            value = _not(_and([_not(value), _not(other)]))
        return value

    def _both(self, depth: int) -> Truth:
        value = self._operand(depth)
        while self._peek() == "&&":
            self._take()
            value = _and([value, self._operand(depth)])
        return value

    def _operand(self, depth: int) -> Truth:
        value = self._unary(depth)
        if self._peek() in ("", "&&", "||", ")"):
            return value
        # A comparison or a sum: skipped to the next word that ends an operand.
        level = 0
        while (token := self._peek()) and (level or token not in ("&&", "||", ")")):
            level += (token == "(") - (token == ")")
            self._take()
        return None

    def _unary(self, depth: int) -> Truth:
        token = self._take()
        if depth > _MAX_DEPTH:
            return None
        if token == "!":
            return _not(self._unary(depth + 1))
        if token == "(":
            value = self.either(depth + 1)
            if self._peek() == ")":
                self._take()
            return value
        if token == "defined" or token in _ENABLED:
            return self._has(_ENABLED.get(token, "defined"))
        if token.isdecimal():
            return int(token[:9]) != 0
        return self._value(token, "ym") if token.startswith("CONFIG_") else None

    def _has(self, values: str) -> Truth:
        bracket = self._peek() == "("
        if bracket:
            self._take()
        name = self._take()
        if bracket and self._peek() == ")":
            self._take()
        return self._value(name, "y" if values == "defined" else values)

    def _value(self, name: str, values: str) -> Truth:
        written = name.removeprefix("CONFIG_")
        if written == name:
            return None
        symbol = _plain(written, self._config)
        tail = "m" if symbol != written else ""
        value = self._config.get(symbol, "n")
        if value not in ("y", "m", "n"):
            return True if values == "y" else None
        return value in (tail or values) and value != "n"
