"""Many wrong kernels in one source: each mutant is chosen at run time by its number (pure).

In: the bytes of a file and its mutants. Out: C that calls ``reviewbot_at(NUMBER)`` where a mutant stands: true makes
the change, and with 0 chosen the file behaves as it was. The text that replaces stands on lines of its own, so
that a compiler's complaint about a line names the mutants that it is about.

A mutant that needs a constant (``own_build``) cannot be here. Neither can one that the compiler refuses in this form:
``blamed`` tells which those are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from reviewbot.generate.mutant_expressions import Shape

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from reviewbot.generate.mutants import Mutant

DECLARATION = "extern int reviewbot_at(int number);\n"
PARAMETER = "reviewbot_mutant"
HITS_FILE = "/sys/module/kernel/parameters/reviewbot_hits"
# Appended to a file that is part of every kernel. Bit N of the hits (their last digit is the lowest) tells that mutant
# N was reached.
DEFINITION = """
/* One wrong line at a time: the number on the command line names it. */
#include <linux/moduleparam.h>
extern int reviewbot_at(int number);
static int reviewbot_mutant;
static unsigned char reviewbot_hit[{size}];
core_param(reviewbot_mutant, reviewbot_mutant, int, 0444);
noinstr int reviewbot_at(int number)
{{
	reviewbot_hit[number] = 1;
	return reviewbot_mutant == number;
}}
static int reviewbot_hits_get(char *buffer, const struct kernel_param *kp)
{{
	int i, n = 0;
	for (i = {size} - 4; i >= 0; i -= 4)
		buffer[n++] = "0123456789abcdef"[reviewbot_hit[i] | reviewbot_hit[i + 1] << 1 |
			reviewbot_hit[i + 2] << 2 | reviewbot_hit[i + 3] << 3];
	buffer[n++] = '\\n';
	return n;
}}
static const struct kernel_param_ops reviewbot_hits_ops = {{ .get = reviewbot_hits_get }};
__module_param_call("", reviewbot_hits, &reviewbot_hits_ops, NULL, 0444, -1, 0);
"""
DEFINITION_FILE = "init/main.c"
MUTANTS_MAX = 16000  # four a digit, and a parameter shows one page


@dataclass(frozen=True, slots=True)
class Schema:
    """A rewritten file. owners has, for each of its lines, the mutants that a complaint about it is about."""

    text: bytes
    owners: tuple[tuple[int, ...], ...]


@dataclass(slots=True)
class _Writer:
    # Text with the mutants of each line; those of the replacing text alone where there are some.
    parts: list[bytes] = field(default_factory=list)
    around: list[set[int]] = field(default_factory=lambda: [set()])
    inside: list[set[int]] = field(default_factory=lambda: [set()])

    def put(self, text: bytes, around: Iterable[int] = (), inside: Iterable[int] = ()) -> None:
        self.parts.append(text)
        for index, _ in enumerate(text.split(b"\n")):
            if index:
                self.around.append(set())
                self.inside.append(set())
            self.around[-1].update(around)
            self.inside[-1].update(inside)


@dataclass(slots=True)
class _Site:
    # All mutants of one stretch of text, and the sites within it.
    start: int
    end: int
    mutants: list[Mutant]
    inner: list[_Site] = field(default_factory=list)


def definition(highest: int) -> str:
    """Return the C that defines reviewbot_at() for mutants 1 to highest. Raises ValueError beyond MUTANTS_MAX."""
    if highest > MUTANTS_MAX:
        msg = f"{highest} mutants do not fit one kernel (at most {MUTANTS_MAX})"
        raise ValueError(msg)
    return DEFINITION.format(size=(highest // 4 + 1) * 4)


def reached(hits: str) -> frozenset[int]:
    """Return the numbers of the mutants that a kernel's hits file names; an unreadable one names none."""
    try:
        bits = int(hits.strip() or "0", 16)
    except ValueError:
        return frozenset()
    return frozenset(n for n in range(bits.bit_length()) if bits >> n & 1)


def rewrite(text: bytes, mutants: Sequence[Mutant]) -> Schema:
    """Return the file with every mutant in it, and the declaration as its first line."""
    writer = _Writer()
    writer.put(DECLARATION.encode())
    _emit(writer, text, _Site(0, len(text), [], _nested(mutants)))
    owners = (inside or around for inside, around in zip(writer.inside, writer.around, strict=True))
    return Schema(text=b"".join(writer.parts), owners=tuple(tuple(sorted(o)) for o in owners))


def blamed(schema: Schema, lines: Iterable[int]) -> frozenset[int]:
    """Return the mutants that complaints about the lines (1-based) of the rewritten file are about."""
    return frozenset(n for line in lines if 0 < line <= len(schema.owners) for n in schema.owners[line - 1])


def _nested(mutants: Sequence[Mutant]) -> list[_Site]:
    # Spans of syntax nodes never overlap without one holding the other; a statement holds the expression in it.
    spans: dict[tuple[int, int], _Site] = {}
    for mutant in mutants:
        spans.setdefault((mutant.start, -mutant.end), _Site(mutant.start, mutant.end, [])).mutants.append(mutant)
    top: list[_Site] = []
    open_sites: list[_Site] = []
    for key in sorted(spans):
        site = spans[key]
        while open_sites and open_sites[-1].end <= site.start:
            open_sites.pop()
        (open_sites[-1].inner if open_sites else top).append(site)
        open_sites.append(site)
    return top


def _emit(writer: _Writer, text: bytes, site: _Site) -> None:
    around = tuple(m.number for m in site.mutants)
    at = site.start
    for inner in site.inner:
        writer.put(text[at : inner.start], around)
        if any(m.shape is Shape.STATEMENT for m in inner.mutants):
            _emit_statement(writer, text, inner)
        else:
            _emit_value(writer, text, inner)
        at = inner.end
    writer.put(text[at : site.end], around)


def _emit_statement(writer: _Writer, text: bytes, site: _Site) -> None:
    numbers = tuple(m.number for m in site.mutants)
    # Every statement that can be dropped is a simple one, so nothing jumps into these braces.
    for mutant in site.mutants:
        writer.put(f"{{ if (reviewbot_at({mutant.number})) {{".encode(), numbers)
        writer.put(_own_lines(mutant, mutant.after), numbers, (mutant.number,))
        writer.put(b"} else {", numbers)
    _emit(writer, text, site)
    writer.put(b" } }" * len(site.mutants), numbers)


def _emit_value(writer: _Writer, text: bytes, site: _Site) -> None:
    numbers = tuple(m.number for m in site.mutants)
    # A condition may be a pointer: !! makes both sides of the choice the same type.
    truth = "!!" if any(m.shape is Shape.CONDITION for m in site.mutants) else ""
    writer.put(b"(", numbers)
    for mutant in site.mutants:
        writer.put(f"reviewbot_at({mutant.number}) ?".encode(), numbers)
        writer.put(_own_lines(mutant, f"{truth}({mutant.after})"), numbers, (mutant.number,))
        writer.put(b": ", numbers)
    writer.put(f"{truth}(".encode(), numbers)
    _emit(writer, text, site)
    writer.put(b"))", numbers)


def _own_lines(mutant: Mutant, text: str) -> bytes:
    # The lines of a macro's body go on with a backslash.
    lines = f"\n{text}\n".replace("\n", " \\\n" if mutant.macro else "\n")
    return lines.encode("utf-8", "surrogateescape")
