"""The line grammar of KTAP, before any nesting.

In: one line of a log. Out: a Version, Plan, Result, Bail or Subtest with the prefix that says how deep it stands,
or None for everything else (diagnostics and unknown lines). Refused: a result without a number, numbers above
nine digits.

Source: Documentation/dev-tools/ktap.rst; the ``# `` prefix is tools/testing/selftests/kselftest/prefix.pl.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_MAX_CHARS = 4000  # of a line; a longer one holds data, not a result
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
_PRINTK = re.compile(r"^(?:<\d{1,3}>)?(?:\[ *\d+\.\d+\](?:\[ *[TC]\d+\])? ?|\[ *[TC]\d+\] ?)")
_PREFIX = r"^(?P<prefix>(?:# | )*)"
_VERSION = re.compile(_PREFIX + r"(?:KTAP version \d+|TAP version \d+)\s*$")
_PLAN = re.compile(_PREFIX + r"1\.\.(?P<count>\d{1,9})\s*(?:#\s*(?P<data>.*))?$")
_RESULT = re.compile(_PREFIX + r"(?P<result>ok|not ok)\s+(?P<number>\d{1,9})(?:\s+(?P<rest>.*))?$")
_BAIL = re.compile(_PREFIX + r"Bail out!\s*(?P<data>.*)$")
_SUBTEST = re.compile(r"^(?P<prefix>(?:# | )*?)# Subtest: (?P<name>.*)$")
_DIRECTIVE = re.compile(r"(?i)^(SKIP|TODO|XFAIL|TIMEOUT|ERROR)\b[:\s]*(.*)$")
_HASH = re.compile(r"(?:^|(?<=\s))#\s*")


@dataclass(frozen=True, slots=True)
class Version:
    """``KTAP version 1``: opens a level."""

    prefix: str


@dataclass(frozen=True, slots=True)
class Plan:
    """``1..N``; skip is the reason of ``1..0 # SKIP reason`` (``no reason given`` when it has none), else empty."""

    prefix: str
    count: int
    skip: str


@dataclass(frozen=True, slots=True)
class Result:
    """``ok`` or ``not ok``; directive is upper case or empty, data is what stands after it."""

    prefix: str
    ok: bool
    number: int
    name: str
    directive: str
    data: str


@dataclass(frozen=True, slots=True)
class Bail:
    """``Bail out!`` and its reason."""

    prefix: str
    reason: str


@dataclass(frozen=True, slots=True)
class Subtest:
    """``# Subtest: name``: names the level that it stands in."""

    prefix: str
    name: str


Line = Version | Plan | Result | Bail | Subtest


def clean(line: str) -> str:
    """Return line without terminal escapes, a carriage return and a printk time stamp; indentation stays.

    A line is cut after 4,000 characters.
    """
    return _PRINTK.sub("", _ANSI.sub("", line[:_MAX_CHARS].rstrip("\r\n")), count=1)


def read_line(line: str) -> Line | None:
    """Return what a cleaned line says, or None when it is not one of the KTAP lines."""
    if match := _VERSION.match(line):
        return Version(match["prefix"])
    if match := _PLAN.match(line):
        data = _DIRECTIVE.match(match["data"] or "")
        skip = (data[2].strip() or "no reason given") if data and data[1].upper() == "SKIP" else ""
        return Plan(match["prefix"], int(match["count"]), skip)
    if match := _RESULT.match(line):
        return _result(match)
    if match := _BAIL.match(line):
        return Bail(match["prefix"], match["data"].strip())
    if match := _SUBTEST.match(line):
        return Subtest(match["prefix"], match["name"].strip())
    return None


def _result(match: re.Match[str]) -> Result:
    # The description ends at the first "#" that a space or the line's start precedes ("foo#1" is a name).
    name, hash_, data = _split(match["rest"] or "")
    directive = _DIRECTIVE.match(data) if hash_ else None
    word, rest = (directive[1].upper(), directive[2].strip()) if directive else ("", data)
    name = name.removeprefix("- ").strip()
    if not name and word == "SKIP":
        # ksft_test_result_skip() prints the test's name where its reason should stand (kselftest.h).
        name = rest
    return Result(match["prefix"], match["result"] == "ok", int(match["number"]), _short(name), word, rest)


def _split(rest: str) -> tuple[str, bool, str]:
    if match := _HASH.search(rest):
        return rest[: match.start()].strip(), True, rest[match.end() :].strip()
    return rest.strip(), False, ""


def _short(name: str) -> str:
    # "selftests: perf_events: mmap" is the runner's name for program mmap of collection perf_events.
    parts = name.split(": ")
    return ":".join(parts[1:]) if len(parts) == 3 and parts[0] == "selftests" else name
