"""Names that added C code uses but does not define: evidence for a part or a prerequisite that is missing.

In: the files of all patches that are applied. Out: candidates; whether the tree knows them is for the caller to look
up.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from reviewbot.parse.merged import introduced_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from reviewbot.parse.diff import FileDiff

# Past this, a line is data.
_MAX_LINE = 300
_C = (".c", ".h", ".S")
_NOT_TYPES = "return|else|goto|case|sizeof|typeof|__typeof__|in|if|while|do|and|or|not|defined"
# A type or another specifier in front, or a star: a declaration. Only what may follow a declared name counts.
_DECLARED = re.compile(
    rf"(?:\b(?!(?:{_NOT_TYPES})\b)[A-Za-z_]\w*[ \t]+\**|[ \t(,]\*+)([A-Za-z_]\w*)[ \t]*(?=[;=,\[(){{:]|\)|$|__)"
)
_DEFINED = (
    re.compile(r"#[ \t]*define[ \t]+([A-Za-z_]\w*)"),
    re.compile(r"\b(?:struct|union|enum)[ \t]+([A-Za-z_]\w*)"),
    re.compile(r"^[ \t]*([A-Za-z_]\w*)[ \t]*(?:=[^=;]*)?,[ \t]*(?:/\*.*)?$"),
    re.compile(r"^[ \t]*([A-Za-z_]\w*)[ \t]*:(?!:)"),
    re.compile(r"#[ \t]*define[ \t]+\w+\(([^)]*)\)"),
    # A definition whose type stands on the line before, and the further names of a declaration.
    re.compile(r"^([A-Za-z_]\w*)\("),
    re.compile(r"^[ \t]+(?:\w+[ \t]+)+\**\w+(?:[ \t]*=[^,;]*)?((?:,[ \t]*\**\w+(?:[ \t]*=[^,;]*)?)+);"),
    re.compile(r"\b[A-Z][A-Z0-9_]{3,}\(\s*(?:\w[\w \t*]*,\s*)?([A-Za-z_]\w*)\s*[,)]"),
)


def undefined_candidates(files: Sequence[FileDiff]) -> tuple[str, ...]:
    """Return the names that the added lines bring in and that no added line declares or defines, sorted.

    Kconfig symbols (CONFIG_…) are left out: an unknown one is simply off.
    """
    code = [file for file in files if file.path.endswith(_C)]
    names = {name for name in introduced_names(code) if not name.startswith("CONFIG_")}
    defined = _defined(line for file in code for line in file.lines("+"))
    return tuple(sorted(names - defined))


def _defined(lines: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for whole in lines:
        line = whole[:_MAX_LINE]
        for match in _DECLARED.finditer(line):
            found.add(match[1])
        for pattern in _DEFINED:
            for match in pattern.finditer(line):
                found.update(re.findall(r"\w+", match[1]))
    return found
