"""Kconfig expressions: ``A && (B || !C) && D != "x"``, evaluated over a configuration.

In: the text after ``depends on``. Out: which of its terms do not hold. A macro, ``$(cc-option,...)``, cannot be told
here and is taken as true.

Source: Documentation/kbuild/kconfig-language.rst ("Menu dependencies")
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

_TOKEN = re.compile(r"""\s*(\|\||&&|!=|<=|>=|[!=<>()]|"(?:[^"\\]|\\.)*"|'[^']*'|\$\(macro\)|[\w./-]+)""")
_MACRO = "$(macro)"
_NUMBER = re.compile(r"[0-9]+|0[xX][0-9a-fA-F]+")
_LEVEL = {"n": 0, "m": 1, "y": 2}
_MAX_TOKENS = 2000
_MAX_DEPTH = 60


@dataclass(frozen=True, slots=True)
class _Node:
    # op is "&&", "||", "!" or a comparison; a leaf has op "" and its text in name.
    op: Literal["&&", "||", "!", "=", "!=", "<", ">", "<=", ">=", ""]
    left: _Node | None = None
    right: _Node | None = None
    name: str = ""


def unmet_terms(expression: str, config: Mapping[str, str]) -> tuple[str, ...]:
    """Return the terms for which expression is not met, as ``NET (not set)``; empty when it holds.

    An expression that cannot be read is one term by itself.
    """
    expression, _, condition = expression.partition(" if ")
    if condition:
        expression = f"!({condition}) || ({expression})"
    try:
        node = _Parser(expression).parse()
    except ValueError:
        return (f"{expression.strip()} (not understood)",)
    return tuple(dict.fromkeys(_unmet(node, config)))


def _tokens(text: str) -> list[str]:
    text = _without_macros(text).strip()
    tokens: list[str] = []
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None or len(tokens) == _MAX_TOKENS:
            msg = f"cannot read {text[place : place + 20]!r}"
            raise ValueError(msg)
        tokens.append(match[1])
        place = match.end()
    return tokens


def _without_macros(text: str) -> str:
    # A macro, with everything that is nested in it, becomes the one token $(macro).
    parts: list[str] = []
    depth = 0
    for place, char in enumerate(text):
        if char == "$" and text[place + 1 : place + 2] == "(" and not depth:
            parts.append(_MACRO)
            depth = -1  # the next "(" opens it
        elif depth:
            depth += {"(": 1 if depth > 0 else 2, ")": -1}.get(char, 0)
        else:
            parts.append(char)
    return "".join(parts)


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._place = 0
        self._depth = 0

    def _peek(self) -> str:
        return self._tokens[self._place] if self._place < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        self._place += 1
        return token

    def parse(self) -> _Node:
        node = self._or()
        if self._peek():
            msg = f"left over: {self._peek()}"
            raise ValueError(msg)
        return node

    def _or(self) -> _Node:
        node = self._and()
        while self._peek() == "||":
            self._next()
            node = _Node("||", node, self._and())
        return node

    def _and(self) -> _Node:
        node = self._not()
        while self._peek() == "&&":
            self._next()
            node = _Node("&&", node, self._not())
        return node

    def _not(self) -> _Node:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            msg = "nested too deep"
            raise ValueError(msg)
        try:
            if self._peek() == "!":
                self._next()
                return _Node("!", self._not())
            if self._peek() == "(":
                self._next()
                node = self._or()
                if self._next() != ")":
                    msg = "no closing parenthesis"
                    raise ValueError(msg)
                return node
            return self._leaf()
        finally:
            self._depth -= 1

    def _leaf(self) -> _Node:
        name = self._next()
        if not name or name in {"&&", "||", ")", "=", "!=", "<", ">", "<=", ">="}:
            msg = f"a symbol was due, not {name!r}"
            raise ValueError(msg)
        leaf = _Node("", name=name)
        match self._peek():
            case "=" | "!=" | "<" | ">" | "<=" | ">=" as op:
                self._next()
                return _Node(op, leaf, _Node("", name=self._next()))
        return leaf


def _value(node: _Node, config: Mapping[str, str]) -> int:
    # 0, 1 or 2 for n, m and y.
    left, right = node.left, node.right
    if left is None:
        return 2 if node.name == _MACRO else _LEVEL.get(_text(node, config), 0)
    if node.op == "!" or right is None:
        return 2 - _value(left, config)
    if node.op in {"&&", "||"}:
        both = (_value(left, config), _value(right, config))
        return min(both) if node.op == "&&" else max(both)
    if _MACRO in left.name or _MACRO in right.name:
        return 2
    return 2 if _compares(node.op, _text(left, config), _text(right, config)) else 0


def _compares(op: str, left: str, right: str) -> bool:
    if op in {"=", "!="}:
        return (left == right) == (op == "=")
    try:
        difference = int(left, 0) - int(right, 0)
    except ValueError:
        return False
    return {"<": difference < 0, ">": difference > 0, "<=": difference <= 0, ">=": difference >= 0}[op]


def _text(leaf: _Node, config: Mapping[str, str]) -> str:
    name = leaf.name
    if name in _LEVEL or name[:1] in {'"', "'"} or _NUMBER.fullmatch(name):
        return name.strip("\"'")
    return config.get(name, "n").strip('"')


def _unmet(node: _Node, config: Mapping[str, str]) -> list[str]:
    left, right = node.left, node.right
    if _value(node, config) > 0:
        return []
    if left is None:
        return [f"{node.name} (not set)"]
    if node.op in {"&&", "||"} and right is not None:
        terms = _unmet(left, config) + _unmet(right, config)
        return terms if node.op == "&&" else [" or ".join(terms)]
    if node.op == "!" and left.left is not None:
        return [_shown(node)]
    return [f"{_shown(node)} (is {_text(left, config)})"]


def _shown(node: _Node) -> str:
    if node.left is None:
        return node.name
    if node.op == "!":
        inner = _shown(node.left)
        return f"!{inner}" if node.left.left is None else f"!({inner})"
    right = _shown(node.right) if node.right else ""
    spaced = f" {node.op} " if node.op in {"&&", "||"} else node.op
    return f"{_shown(node.left)}{spaced}{right}"
