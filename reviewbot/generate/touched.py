"""A series' diff in, what its changed lines are about out: names, the conditions around them, and their functions.

The diff is the normalised ``git diff``, best with function context (``git diff -W``): a condition is found by
indentation, so that it must be among the lines of the hunk. Refused: nothing; what is not there is not found.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

# Functions that deal with every sample type, one condition for each.
FOR_ALL = frozenset(
    {
        "__perf_event_output",
        "perf_event__header_size",
        "perf_output_sample",
        "perf_prepare_header",
        "perf_prepare_sample",
        "perf_sample_data_init",
        "perf_sample_data_size",
    }
)
_WORD = re.compile(r"\b[A-Za-z_]\w*\b")
_ATTR = re.compile(r"\battr(?:\.|->)([a-z_]\w*)")
_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@(.*)")
_COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|/\*.*?(?:\*/|\Z)|//[^\n]*', re.DOTALL)
_DECLARES = re.compile(r"\s+(?:(?:const|static|struct|unsigned|union|enum)\s+)*\w+\s+\**\w+(?:\s*,\s*\**\w+)*;\s*")
_UAPI_FILES = ("include/uapi/", "tools/include/uapi/")
_STATEMENT_MAX = 12


@dataclass(slots=True)
class Touched:
    """What changed lines of C files and headers are about.

    named are the words of added lines, attr those behind ``attr.`` or ``attr->``. around are the words of conditions
    that stand around added and removed lines. owners are the functions and structs with changed lines. for_all are
    those of FOR_ALL with a changed line that no condition on a sample type is around. Comments count in
    owners alone, UAPI headers in named alone.
    """

    named: set[str] = field(default_factory=set)
    attr: set[str] = field(default_factory=set)
    around: set[str] = field(default_factory=set)
    owners: set[str] = field(default_factory=set)
    for_all: set[str] = field(default_factory=set)


def read_touched(diff: str) -> Touched:
    """Return what the changed lines of diff are about."""
    touched = Touched()
    for path, context, lines in _hunks(diff):
        if not path.endswith((".c", ".h")) or path.startswith("tools/"):
            continue
        uapi = path.startswith(_UAPI_FILES)
        for sign in "+-":
            side = _Side(context, [line for line in lines if line[:1] in (" ", "", sign)])
            for number in side.changed:
                if sign == "+":
                    touched.named.update(_WORD.findall(side.lines[number]))
                    touched.attr.update(_ATTR.findall(side.lines[number]))
                if not uapi:
                    _add_place(touched, side, number)
    return touched


def _add_place(touched: Touched, side: _Side, number: int) -> None:
    owner, line = side.owners[number], side.lines[number]
    touched.owners.update(owner)
    if not _WORD.search(line):
        return
    around = set(_WORD.findall(" ".join(side.around(number))))
    touched.around.update(around)
    own = set(_WORD.findall(side.statement(number)))
    on_a_type = any(word.startswith("PERF_SAMPLE_") for word in around | own)
    if owner & FOR_ALL and not on_a_type and not _DECLARES.fullmatch(line):
        touched.for_all.update(owner)


class _Side:
    # The old or the new text of a hunk, without comments; changed are the numbers of its lines that the other lacks.
    def __init__(self, context: str, lines: list[str]) -> None:
        text = "\n".join(_code(line[1:]) for line in lines)
        self.lines = _COMMENT.sub(_blank, text).expandtabs(8).split("\n")
        self.changed = [i for i, line in enumerate(lines) if line[:1] in ("+", "-") and line[1:].strip()]
        self.owners: list[set[str]] = []
        current = _definition(context)
        for line in self.lines:
            closed = current if line.startswith("}") else set()
            current = _definition(line) or (set() if _ends_definition(line) else current)
            self.owners.append(current | closed)

    def around(self, number: int) -> list[str]:
        """Return the statements that the line stands in, innermost first, up to the function."""
        found = []
        line = self.lines[number]
        depth, chained = _indent(line), _continues_chain(line)
        for i in range(number - 1, -1, -1):
            line = self.lines[i]
            if not line.strip() or line.startswith("#") or re.match(r"\s*\w+:\s*$", line):
                continue
            outer = _indent(line) < depth or (chained and _indent(line) == depth and re.match(r"\s*(?:\} )?\w", line))
            if not outer:
                continue
            depth = _indent(line)
            if depth == 0:
                break
            if not chained or re.match(r"\s*(?:\}\s*else\s+)?if\b", line):
                found.append(self.statement(i))
                chained = _continues_chain(line)
        return found

    def statement(self, number: int) -> str:
        """Return the line, and those after it until its brackets are closed."""
        text = ""
        for line in self.lines[number : number + _STATEMENT_MAX]:
            text += line + " "
            if text.count("(") <= text.count(")"):
                break
        return text


def _continues_chain(line: str) -> bool:
    return re.match(r"\s*(?:\}\s*)?else\b", line) is not None


def _blank(comment: re.Match[str]) -> str:
    return comment[0] if comment[0].startswith('"') else "\n" * comment[0].count("\n")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _code(line: str) -> str:
    # A line within a comment that may begin above the hunk: only its end counts.
    if re.match(r"\s*(?:\*(?:\s|/|$)|//)", line):
        return "*/" if "*/" in line else ""
    return line


def _definition(line: str) -> set[str]:
    """Name of the function or struct that a line in column 0 begins, as a set of none or one."""
    if struct := re.match(r"(?:struct|union)\s+(\w+)\s*\{", line):
        return {struct[1]}
    if (
        re.match(r"[A-Za-z_]", line)
        and (call := re.match(r"[^=;]*?\b(\w+)\s*\(", line))
        and not line.rstrip().endswith(";")
    ):
        return {call[1]}
    return set()


def _ends_definition(line: str) -> bool:
    """Tell a line in column 0 that lies outside any function from a label, brace or comment."""
    return line.startswith("}") or (re.match(r"[A-Za-z_#]", line) is not None and not re.match(r"\w+:", line))


def _hunks(diff: str) -> list[tuple[str, str, list[str]]]:
    """(path of the new file, text behind @@, lines) for every hunk; bounded by the counts in the hunk header."""
    out: list[tuple[str, str, list[str]]] = []
    path, old, new = "", 0, 0
    for line in diff.split("\n"):
        if old > 0 or new > 0:
            old -= line[:1] in (" ", "-", "")
            new -= line[:1] in (" ", "+", "")
            out[-1][2].append(line)
        elif line.startswith("+++ "):
            path = line[4:].split("\t")[0].removeprefix("b/")
        elif hunk := _HUNK.match(line):
            old, new = int(hunk[1] or 1), int(hunk[2] or 1)
            out.append((path, hunk[3].strip(), []))
    return out
