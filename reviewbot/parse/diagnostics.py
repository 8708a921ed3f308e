"""Build diagnostics: what compilers, linkers and kbuild said, and what of it a series introduced.

In: the text of a build log. Out: a BuildLog of Diagnostics. compare() tells introduced, pre-existing and fixed ones
apart by identity: file, function, flag and text; never a line number. A red build in which nothing is recognised gives
one diagnostic with the last lines of the log; a machine that failed (out of memory, disk full) is told apart from the
series.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from reviewbot.parse.diagnostics_lines import Head, clean, head_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_IN_FUNCTION = re.compile(r"(?:(?P<file>[^\s:][^:]*): )?In (?:member )?function '(?P<name>[^']+)'[:,]$")
_LD_FUNCTION = re.compile(r"(?:\S*ld(?:\.\w+)?: )?\S+: in function '(?P<name>[^']+)':(?P<rest>.*)$")
_INLINED = re.compile(r" +inlined from '(?P<name>[^']+)' at ")
_FROM = re.compile(r"(?:In file included from| {4,}from| +inlined from '[^']+' at) (?P<unit>[^\s:]+\.[cS])\b")
_TOP_LEVEL = re.compile(r"(?P<file>[^\s:][^:]*): At top level:$")
_CONTEXT = re.compile(
    r"In file included from |                 from |\S+: Assembler messages:|\d+ (?:warning|error)s? generated"
)
_KBUILD = re.compile(r"  [A-Z][A-Z0-9_]*(?: \[\w\])? +\S|make(?:\[\d+\])?: |(?:gcc|cc|clang|ld)\S* -")
_MAKE_FAILED = re.compile(r"make(?:\[\d+\])?: \*\*\* ")
_OBJECT = re.compile(r"\[(?P<file>[\w./-]+)\]")
_MAX_EXCERPT = 25
_MAX_TAIL = 20
_MAX_DIAGNOSTICS = 5000

_INFRA = {
    "the disk is full": r"No space left on device|Disk quota exceeded",
    "a compiler was killed (out of memory)": (
        r"fatal error: Killed signal terminated program|terminated with signal 9|unable to execute command: Killed|"
        r"^(?:/bin/\w*sh: (?:line )?\d+: +\d+ )?Killed\b"
    ),
    "out of memory": r"Cannot allocate memory|out of memory allocating|LLVM ERROR: out of memory|memory exhausted",
    "the build was ended from outside": r"^make(?:\[\d+\])?: \*\*\* \[[^\]]*\] (?:Terminated|Hangup|Interrupt)$",
    "the disk failed": r"Read-only file system|Input/output error",
    "the compiler crashed": r"internal compiler error",
    "a program that the build needs is missing": r"^/bin/\w*sh: (?:line )?\d+: \S+: (?:command )?not found$",
}
_INFRA_PATTERNS = tuple((reason, re.compile(pattern)) for reason, pattern in _INFRA.items())
# A source line that a compiler quotes, or text that the source itself prints, says nothing about the machine.
_QUOTED = re.compile(r" *\d* \|| *\+\+\+ \||.*: (?:error|warning): #")


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One complaint of a build tool.

    file is relative to the tree, line and column are 1-based (0 unknown). kind is "error" or "warning". flag is the
    warning's option (``-Wunused-variable``, also when -Werror made it an error) or the tool (``sparse``, ``ld``,
    ``modpost``, ``objtool``, ``as``, ``make``, ``kconfig``, ``kernel-doc``), empty for a plain compiler error. excerpt
    is the diagnostic as it was printed. unit is the source file that was compiled, where the compiler says it; it tells
    which compilation repeats a header's diagnostic, and is no part of what makes two of them equal.
    """

    file: str
    line: int
    column: int
    kind: str
    flag: str
    function: str
    text: str
    excerpt: str
    unit: str = field(default="", compare=False)

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """What makes diagnostics of two builds the same one."""
        text = re.sub(r"(?<=\.[chS]):\d+(?::\d+)?", "", self.text)
        text = re.sub(r"\+0x[0-9a-f]+(?:/0x[0-9a-f]+)?", "", text)
        return (self.file, self.function, self.flag, text)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildLog:
    """A build log as it was understood. infra says in one line how the machine failed, or is empty."""

    diagnostics: tuple[Diagnostic, ...] = ()
    infra: str = ""

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The diagnostics that stopped the build."""
        return tuple(d for d in self.diagnostics if d.kind == "error")


def parse_build(text: str, *, failed: bool, trees: Sequence[str] = ()) -> BuildLog:
    """Return the diagnostics of a build log; the same one of many compilations of a header counts once.

    failed tells that the build ended with an error. trees are absolute directories (source, build) that are cut off
    the front of file names.
    """
    lines = [clean(line) for line in text.split("\n")]
    reader = _Reader(lines, tuple(f"{tree.rstrip('/')}/" for tree in trees))
    found = tuple(dict.fromkeys(reader.read()))
    infra = _infra(lines) if failed else ""
    if failed and not infra and not any(d.kind == "error" for d in found):
        found = (*found, _unknown(lines))
    return BuildLog(diagnostics=found, infra=infra)


def compare(
    base: Iterable[Diagnostic], patched: Iterable[Diagnostic]
) -> tuple[tuple[Diagnostic, ...], tuple[Diagnostic, ...], tuple[Diagnostic, ...]]:
    """Return (introduced, pre-existing, fixed), compared by identity as multisets."""
    before = list(base)
    left = Counter(d.identity for d in before)
    introduced, existing = [], []
    for diagnostic in patched:
        if left[diagnostic.identity] > 0:
            left[diagnostic.identity] -= 1
            existing.append(diagnostic)
        else:
            introduced.append(diagnostic)
    fixed = []
    for diagnostic in reversed(before):
        if left[diagnostic.identity] > 0:
            left[diagnostic.identity] -= 1
            fixed.append(diagnostic)
    return tuple(introduced), tuple(existing), tuple(reversed(fixed))


class _Reader:
    def __init__(self, lines: list[str], trees: tuple[str, ...]) -> None:
        self._lines = lines
        self._trees = trees
        self._functions: dict[str, str] = {}  # file -> the function that its next diagnostic is in
        self._inlined = ""
        self._unit = ""
        self._ld = ""

    def read(self) -> list[Diagnostic]:
        found: list[Diagnostic] = []
        place = 0
        while place < len(self._lines) and len(found) < _MAX_DIAGNOSTICS:
            line = self._lines[place]
            if match := _FROM.match(line):
                self._unit = match["unit"]
            elif _KBUILD.match(line):
                self._unit = ""
            head = None if self._context(line) else head_of(self._without_ld_function(line))
            if head is None or head.kind == "note":
                place += 1
                continue
            end = self._end(place)
            found.append(self._diagnostic(head, self._lines[place:end]))
            place = end
        return found

    def _context(self, line: str) -> bool:
        # Keep what a line says of the function that the next diagnostics are in; True when it says only that.
        if match := _TOP_LEVEL.match(line):
            self._functions.pop(match["file"], None)
            self._inlined = ""
        elif match := _IN_FUNCTION.match(line):
            self._functions[match["file"] or ""] = match["name"]
            self._inlined = ""
        elif match := _INLINED.match(line):
            self._inlined = match["name"]
        else:
            return False
        return True

    def _without_ld_function(self, line: str) -> str:
        # ld says "x.o: in function `f':" on a line of its own or before the message.
        if match := _LD_FUNCTION.match(line):
            self._ld = match["name"]
            return match["rest"].strip()
        return line

    def _end(self, start: int) -> int:
        for place in range(start + 1, min(len(self._lines), start + _MAX_EXCERPT)):
            line = self._lines[place]
            if not line.strip() or _KBUILD.match(line) or _CONTEXT.match(line):
                return place
            if _IN_FUNCTION.match(line) or _TOP_LEVEL.match(line) or _LD_FUNCTION.match(line):
                return place
            head = head_of(line)
            if head and head.kind != "note":
                return place
        return min(len(self._lines), start + _MAX_EXCERPT)

    def _diagnostic(self, head: Head, body: list[str]) -> Diagnostic:
        function = head.function
        if not function and head.flag == "ld":
            function = self._ld
        elif not function and not head.flag.isalpha():
            function = self._inlined or self._functions.get(head.file, "")
            self._inlined = ""
        file = head.file
        if not file and (match := _OBJECT.search(head.text)):
            file = match["file"]
        return Diagnostic(
            file=self._relative(file),
            line=head.line,
            column=head.column,
            kind=head.kind,
            flag=head.flag,
            function=function,
            text=self._without_trees(head.text),
            excerpt="\n".join(body),
            unit=self._relative(self._unit) if file.endswith(".h") else "",
        )

    def _without_trees(self, text: str) -> str:
        for tree in self._trees:
            text = text.replace(tree, "")
        return text

    def _relative(self, file: str) -> str:
        file = self._without_trees(file)
        while file.startswith(("./", "../")):
            file = file.partition("/")[2]
        return file


def _infra(lines: Sequence[str]) -> str:
    for line in lines:
        if _QUOTED.match(line):
            continue
        for reason, pattern in _INFRA_PATTERNS:
            if pattern.search(line):
                return f"{reason}: {line.strip()[:200]}"
    return ""


def _unknown(lines: Sequence[str]) -> Diagnostic:
    # Nothing was recognised: the last line that is not make's own, and what led to it.
    told = [line for line in lines if line.strip()]
    before = next((n for n, line in enumerate(told) if _MAKE_FAILED.match(line)), len(told))
    shown = told[max(0, before - _MAX_TAIL) : before + 3]
    text = next((line.strip() for line in reversed(told[:before]) if not _KBUILD.match(line)), "")
    if not text:
        text = told[before].strip() if before < len(told) else "the build failed without a word"
    return Diagnostic(
        file="", line=0, column=0, kind="error", flag="unknown", function="", text=text[:300], excerpt="\n".join(shown)
    )
