"""Kernel configuration: what a ``.config`` holds, what a fragment wants, and what did not stick.

In: the text of a ``.config`` or of a fragment. Out: symbol -> value, and Wanted values. Symbols stand without their
``CONFIG_`` prefix; a value is as it is written (``y``, ``m``, ``n``, ``"text"``, ``0x10``). Refused: a fragment in
which a symbol has no reason, stands twice, or a line that is neither (UsageError).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reviewbot.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_SET = re.compile(r"CONFIG_(\w+)=(.*)")
_NOT_SET = re.compile(r"# CONFIG_(\w+) is not set")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """One symbol that a fragment sets, and the reason that stands above it."""

    symbol: str
    value: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A wanted symbol that the final configuration does not have; actual is ``n`` when it is not set at all."""

    wanted: Wanted
    actual: str


def parse_config(text: str) -> dict[str, str]:
    """Return symbol -> value of a ``.config``; a later line wins, a symbol that is not set is ``n`` or absent."""
    values = {}
    for line in text.splitlines():
        if found := _read(line):
            values[found[0]] = found[1]
    return values


def parse_fragment(text: str, *, name: str = "fragment") -> tuple[Wanted, ...]:
    """Return what a fragment wants, in its order. The comment lines right above a symbol are its reason.

    Raises UsageError that names the line: a symbol without a reason (one reason a symbol; a blank line ends a comment),
    a symbol twice, a line that is neither a comment nor a symbol.
    """
    wanted: dict[str, Wanted] = {}
    reason: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        found = _read(line.strip())
        if found:
            symbol, value = found
            if not reason or symbol in wanted:
                problem = f"CONFIG_{symbol} stands twice" if symbol in wanted else f"CONFIG_{symbol} has no reason"
                msg = f"{name}:{number}: {problem}"
                raise UsageError(msg)
            wanted[symbol] = Wanted(symbol=symbol, value=value, reason=" ".join(reason))
            reason = []
        elif line.startswith("#"):
            reason.append(line.lstrip("#").strip())
            reason = [part for part in reason if part]
        elif line.strip():
            msg = f"{name}:{number}: neither a comment nor a symbol: {line.strip()[:80]}"
            raise UsageError(msg)
        else:
            reason = []
    return tuple(wanted.values())


def missing(wanted: Iterable[Wanted], config: Mapping[str, str]) -> tuple[Missing, ...]:
    """Return the wanted symbols whose value in config is another one; wanting ``n`` is met by absence."""
    return tuple(
        Missing(wanted=want, actual=config.get(want.symbol, "n"))
        for want in wanted
        if config.get(want.symbol, "n") != want.value
    )


def _read(line: str) -> tuple[str, str] | None:
    if found := _SET.fullmatch(line):
        return found[1], found[2].strip()
    if found := _NOT_SET.fullmatch(line):
        return found[1], "n"
    return None
