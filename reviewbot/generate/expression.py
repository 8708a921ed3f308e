"""Expressions in specs in, C out: counts and conditions of fields.

An expression holds earlier fields of the layout, ``attr.NAME`` (struct perf_event_attr), ``misc`` (of the record's
header), constants in capitals, numbers, hweight64() and the operators in _TOKEN. Anything else is refused.
"""

from __future__ import annotations

import re

_TOKEN = re.compile(r"\s*(?:(attr\.[a-z]\w*)|([A-Za-z_]\w*)|(0x[0-9a-fA-F]+|\d+)|(\|\||&&|[!&|()*+-]))")
_FUNCTIONS = {"hweight64"}


class SpecError(ValueError):
    """A spec that does not say what it must, or says it twice."""


def c_expression(text: str, fields: frozenset[str], owner: str) -> str:
    """Return text as C where owner is the C expression of the decoded struct; fields may be named.

    Raises SpecError for anything outside the grammar in the module docstring.
    """
    out, position = [], 0
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None:
            msg = f"cannot read {text[position:]!r} in {text!r}"
            raise SpecError(msg)
        out.append(_c_token(token, fields, owner, text))
        position = token.end()
    return _tidy(" ".join(out))


def _tidy(expression: str) -> str:
    for old, new in (("( ", "("), (" )", ")"), ("! ", "!"), ("hweight64 (", "hweight64(")):
        expression = expression.replace(old, new)
    return expression


def _c_token(token: re.Match[str], fields: frozenset[str], owner: str, text: str) -> str:
    attr, word, number, operator = token.groups()
    if attr:
        return f"attr->{attr.removeprefix('attr.')}"
    if number or operator:
        return str(number or operator)
    if word == "misc":
        return "header->misc"
    if word in fields:
        return f"{owner}.{word}"
    if word in _FUNCTIONS or word.isupper():
        return str(word)
    msg = f"{word!r} in {text!r} is no earlier field, attr field or constant"
    raise SpecError(msg)
