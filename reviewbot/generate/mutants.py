"""Wrong kernels: from a patched C file and the lines that a series added to it to every candidate mutant (pure).

In: the path and bytes of a file, and the numbers of the added lines. Out: Mutants, each one small change that a wrong
patch could hold, and how many added lines of functions could not be read. What is never changed: strings, comments,
assertions, messages, declarations without a value. A mutant that provably behaves as the original says why.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from reviewbot.generate.csource import Function, functions, parse_body
from reviewbot.generate.mutant_expressions import Change, Shape, constants_in
from reviewbot.generate.mutant_sites import find_changes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# Headers that user space compiles too, and copies of kernel files for the tools.
NOT_KERNEL = ("include/uapi/", "tools/", "samples/", "scripts/", "Documentation/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One wrong kernel: the bytes start to end (before) of a file replaced by after.

    ident is the same in every run on the same text; number (1, 2, …) is what the kernel parameter names. line is
    1-based. own_build tells that it cannot be chosen at run time (a constant context). equivalent says why it
    behaves as the original, and is empty when that is not known.
    """

    ident: str
    number: int
    file: str
    line: int
    last_line: int
    function: str
    operator: str
    before: str
    after: str
    start: int
    end: int
    shape: Shape
    own_build: bool = False
    macro: bool = False
    equivalent: str = ""

    @property
    def title(self) -> str:
        """One line for a reader: place, operator and change."""
        before, after = (" ".join(t.split()) for t in (self.before, self.after))
        return f"{self.file}:{self.line} {self.function}: {self.operator}: {before} → {after or '(nothing)'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The candidates of a set of files. unread lists FILE:LINE of added lines in functions that could not be parsed."""

    mutants: tuple[Mutant, ...]
    unread: tuple[str, ...]


def find_mutants(files: Mapping[str, bytes], added: Mapping[str, Iterable[int]]) -> Found:
    """Return every candidate mutant of the added lines, in order of place, numbered from 1.

    files maps a path to the patched file's bytes; a path of added that is not in it has no candidates.
    """
    mutants: list[Mutant] = []
    unread: list[str] = []
    for path in sorted(added):
        if path in files:
            found, skipped = _of_file(path, files[path], frozenset(added[path]))
            mutants += found
            unread += (f"{path}:{line}" for line in sorted(skipped))
    return Found(mutants=tuple(replace(m, number=n) for n, m in enumerate(mutants, 1)), unread=tuple(unread))


def _of_file(path: str, text: bytes, added: frozenset[int]) -> tuple[list[Mutant], set[int]]:
    found: list[Mutant] = []
    skipped: set[int] = set()
    seen: Counter[tuple[str, ...]] = Counter()
    touched = [f for f in functions(text) if any(line in added for line in range(f.first, f.last + 1))]
    pool = constants_in(b"\n".join(text[f.start : f.end] for f in touched))
    for function in touched:
        body, shift = parse_body(text, function)
        base = text.count(b"\n", 0, function.start) + 1
        changes, unread = find_changes(body, frozenset(line - base for line in added), pool)
        skipped |= {row + base for row in unread} & added
        for change in sorted(changes, key=lambda c: (c.start, c.end, c.operator, c.after)):
            mutant = _mutant(path, function, change, text, shift)
            key = (mutant.function, mutant.operator, mutant.before, mutant.after)
            seen[key] += 1
            found.append(replace(mutant, ident=_ident(path, key, seen[key])))
    return found, skipped


def _mutant(path: str, function: Function, change: Change, text: bytes, shift: int) -> Mutant:
    start, end = change.start + shift, change.end + shift
    return Mutant(
        ident="",
        number=0,
        file=path,
        line=text.count(b"\n", 0, start) + 1,
        last_line=text.count(b"\n", 0, end) + 1,
        function=function.name,
        operator=change.operator,
        before=text[start:end].decode("utf-8", "surrogateescape"),
        after=change.after,
        start=start,
        end=end,
        shape=change.shape,
        own_build=change.constant,
        macro=function.macro,
        equivalent=change.equivalent,
    )


def _ident(path: str, key: tuple[str, ...], occurrence: int) -> str:
    words = "\0".join((path, *key, str(occurrence))).encode("utf-8", "surrogateescape")
    return hashlib.sha256(words).hexdigest()[:10]


def apply_mutant(text: bytes, mutant: Mutant) -> bytes:
    """Return the file with the one change made, its line numbers kept."""
    after, line = (" ".join(mutant.after.split()), " \\\n") if mutant.macro else (mutant.after, "\n")
    missing = mutant.before.count("\n") - after.count("\n")
    body = (after + line * max(missing, 0)).encode("utf-8", "surrogateescape")
    if mutant.shape is Shape.STATEMENT and not mutant.after:
        body = b";" + body
    elif mutant.shape is not Shape.STATEMENT:
        body = b"(" + body + b")"
    return text[: mutant.start] + body + text[mutant.end :]
