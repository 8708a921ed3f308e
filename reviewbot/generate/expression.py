"""Expressions in specs in, C out: counts, conditions and proofs of fields.

An expression holds earlier fields of the layout, ``attr.NAME`` (struct perf_event_attr), ``misc`` (of the record's
header), constants in capitals, numbers, hweight64() and the operators in _TOKEN; a proof's also the dotted names that
its caller knows. Anything else is refused.
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_TOKEN = re.compile(
    r"\s*(?:([A-Za-z]\w*\.[a-z]\w*)|([A-Za-z_]\w*)|(0x[0-9a-fA-F]+|\d+)|(\|\||&&|[=!<>]=|[!&|()*+<>-]))"
)
_FUNCTIONS = {"hweight64"}
_NO_NAMES: Mapping[str, str] = MappingProxyType({})


class SpecError(ValueError):
    """A spec that does not say what it must, or says it twice."""


def c_expression(text: str, fields: frozenset[str], owner: str, names: Mapping[str, str] = _NO_NAMES) -> str:
    """Return text as C where owner is the C expression of the decoded struct; fields may be named.

    names maps further dotted names (``task.pid``) to C. Raises SpecError for anything outside the grammar in the module
    docstring.
    """
    out = [_c_token(token, fields, owner, text, names) for token in _tokens(text)]
    return _tidy(" ".join(out))


def dotted_names(text: str) -> tuple[str, ...]:
    """Return the dotted names in an expression, in order. Raises SpecError for what is no expression."""
    return tuple(token[1] for token in _tokens(text) if token[1])


def _tokens(text: str) -> list[re.Match[str]]:
    out, position = [], 0
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None:
            msg = f"cannot read {text[position:]!r} in {text!r}"
            raise SpecError(msg)
        out.append(token)
        position = token.end()
    return out


def _tidy(expression: str) -> str:
    for old, new in (("( ", "("), (" )", ")"), ("! ", "!"), ("hweight64 (", "hweight64(")):
        expression = expression.replace(old, new)
    return expression


def _c_token(token: re.Match[str], fields: frozenset[str], owner: str, text: str, names: Mapping[str, str]) -> str:
    dotted, word, number, operator = token.groups()
    if dotted and dotted.startswith("attr."):
        return f"attr->{dotted.removeprefix('attr.')}"
    if dotted and dotted in names:
        return names[dotted]
    if number or operator:
        return str(number or operator)
    if word == "misc":
        return "header->misc"
    if word in fields:
        return f"{owner}.{word}"
    if word and (word in _FUNCTIONS or word.isupper()):
        return str(word)
    msg = f"{dotted or word!r} in {text!r} is no earlier field, attr field or constant"
    raise SpecError(msg)
