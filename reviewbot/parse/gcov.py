"""Counters of gcov and the lines that the preprocessor kept: which lines of a file have code, and how often they ran.

In: the text of gcov's JSON intermediate format (gcov(1), --json-format) and of preprocessed C. Out: Counters, by file
and 1-based line. File names are relative to the source tree where they stand in it, else as they were given. Refused:
text that is not that format (GcovError); it may come from a kernel that went wrong.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Counters = dict[str, dict[int, int]]
_MARKER = re.compile(r'# (\d{1,9}) "((?:[^"\\]|\\.)*)"')


class GcovError(ValueError):
    """The text is not gcov's JSON."""


class _Line(msgspec.Struct):
    line_number: int
    count: int


class _File(msgspec.Struct):
    file: str
    lines: list[_Line]


class _Document(msgspec.Struct):
    files: list[_File]
    current_working_directory: str = ""


def parse_gcov(text: str | bytes, *, source: str = "") -> Counters:
    """Return file -> line -> how often it ran. A line stands several times for inlined or cloned code: the sum counts.

    source is the absolute path of the source tree, which is taken off the names. Raises GcovError.
    """
    try:
        document = msgspec.json.decode(text, type=_Document)
    except msgspec.MsgspecError as error:
        msg = f"not gcov's JSON: {error}"
        raise GcovError(msg) from error
    found: Counters = {}
    for file in document.files:
        lines = found.setdefault(_relative(file.file, source), {})
        for line in file.lines:
            lines[line.line_number] = lines.get(line.line_number, 0) + max(line.count, 0)
    return found


def merge(parts: Iterable[Mapping[str, Mapping[int, int]]]) -> Counters:
    """Return the sums of several objects' counters: a header's lines are counted in each that includes it."""
    total: Counters = {}
    for part in parts:
        for name, lines in part.items():
            into = total.setdefault(name, {})
            for line, count in lines.items():
                into[line] = into.get(line, 0) + count
    return total


def parse_preprocessed(text: str, *, source: str = "") -> dict[str, set[int]]:
    """Return file -> the lines of which something is left in preprocessed C (``make file.i``), by its line markers."""
    found: dict[str, set[int]] = {}
    lines: set[int] = set()
    number = 0
    for entry in text.split("\n"):
        if marker := _MARKER.match(entry):
            number = int(marker[1])
            lines = found.setdefault(_relative(marker[2], source), set())
            continue
        if entry.strip():
            lines.add(number)
        number += 1
    return found


def _relative(name: str, source: str) -> str:
    path = PurePosixPath(name)
    return str(path.relative_to(source)) if source and path.is_relative_to(source) else str(path)
