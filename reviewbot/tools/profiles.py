"""Build profiles: what an old tree needs so that today's toolchain builds it, as data in profiles.toml.

In: the text of the tree's top Makefile. Out: a Profile, empty for a tree that builds as it is. A symbol that a tree
does not know is replaced or dropped only when profiles.toml says so, with a reason that the report shows.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec

from reviewbot.parse.kconfig import Wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The profiles that hold for a tree, put together.

    cc_flags follow the compiler's name in CC. make are further make variables. headers is the target that exports
    UAPI headers to usr/include. wanted are symbols that every configuration of the tree has. facts are (name, reason).
    """

    names: tuple[str, ...] = ()
    cc_flags: str = ""
    make: tuple[str, ...] = ()
    headers: str = "headers"
    wanted: tuple[Wanted, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StandIn:
    """What is asked for where a tree does not know a symbol; instead is empty when nothing is."""

    instead: str
    reason: str


class _Entry(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    before: str
    reason: str
    cc_flags: str = ""
    make: list[str] = []
    headers: str = ""
    symbols: dict[str, str] = {}


class _Symbol(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    reason: str
    instead: str = ""


class _Data(msgspec.Struct, forbid_unknown_fields=True):
    profile: list[_Entry]
    symbol: list[_Symbol]


def choose_profile(makefile: str) -> Profile:
    """Return the profile for a tree with this top Makefile; an empty one when it does not say VERSION."""
    version = _version(makefile)
    entries = [e for e in _data().profile if version and version < _numbers(e.before)]
    return Profile(
        names=tuple(e.name for e in entries),
        cc_flags=" ".join(e.cc_flags for e in entries if e.cc_flags),
        make=tuple(v for e in entries for v in e.make),
        headers=next((e.headers for e in entries if e.headers), "headers"),
        wanted=tuple(Wanted(symbol=s, value=v, reason=e.reason) for e in entries for s, v in e.symbols.items()),
        facts=tuple((f"build profile {e.name}", f"{_settings(e)}: {e.reason}") for e in entries),
    )


def stand_ins() -> dict[str, StandIn]:
    """Return symbol -> what is asked for in a tree that does not know the symbol."""
    return {s.name: StandIn(instead=s.instead, reason=s.reason) for s in _data().symbol}


def _settings(entry: _Entry) -> str:
    words = [f'CC="gcc {entry.cc_flags}"'] if entry.cc_flags else []
    words += [f'{name}="{value}"' for name, _, value in (v.partition("=") for v in entry.make)]
    words += [f"make {entry.headers}"] if entry.headers else []
    return ", ".join([*words, *(f"CONFIG_{s}={v}" for s, v in entry.symbols.items())])


def _version(makefile: str) -> tuple[int, ...]:
    found = dict(re.findall(r"^(VERSION|PATCHLEVEL) *= *(\d{1,4})[ \t]*$", makefile, re.MULTILINE))
    return (int(found["VERSION"]), int(found.get("PATCHLEVEL", 0))) if "VERSION" in found else ()


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


@cache
def _data() -> _Data:
    text = (Path(__file__).parent / "profiles.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), type=_Data)
