"""The rules of mutation on texts alone: which operator becomes which, and what is left as it is (pure)."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

COMPARISONS = {
    "<": ("<=", ">="),
    "<=": ("<", ">"),
    ">": (">=", "<="),
    ">=": (">", "<"),
    "==": ("!=",),
    "!=": ("==",),
}
LOGICAL = ("&&", "||")
BITWISE = ("&", "|", "^", "<<", ">>")
ASSIGNMENTS = {"+=": ("-=", "="), "-=": ("+=",), "|=": ("=",), "&=": ("|=",), "<<=": (">>=",), ">>=": ("<<=",)}
_ARITHMETIC = {"+": ("-",), "-": ("+",), "/": ("*",), "%": ("/",), "<<": (">>",), ">>": ("<<",)}

HOLD_STATEMENTS = frozenset(
    {
        *("compound_statement", "if_statement", "else_clause", "for_statement", "while_statement", "do_statement"),
        *("switch_statement", "case_statement", "labeled_statement"),
        *("preproc_if", "preproc_ifdef", "preproc_else", "preproc_elif"),
    }
)
# Fields of those that are no statements.
NOT_STATEMENTS = frozenset({"condition", "initializer", "update", "value", "label", "name"})

_ASSERTION = re.compile(
    r"static_assert|_Static_assert|(?:VM_)?(?:BUG|WARN)(?:_ON)?\w*|BUILD_BUG\w*|lockdep_\w+|might_\w+|assert\w*|"
    r"(?:pr|dev|netdev)_[a-z_]+|_?printk\w*|trace_\w+|kasan_\w+|KUNIT_\w+|cant_\w+"
)
_CONSTANT_MACRO = re.compile(
    r"IS_ENABLED|IS_BUILTIN|IS_REACHABLE|__builtin_\w+|offsetof\w*|container_of|typeof|ARRAY_SIZE"
)
_FREE = re.compile(r"(?!.*output)\w*(?:free|_put$|put_|unlock|release|destroy|cancel|_dec|dec_|disable|detach|exit)\w*")
_NUMBER = re.compile(r"(0[xX][0-9a-fA-F]+|\d+)([uUlL]*)")
_CONSTANT = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
_AMOUNT = re.compile(r"(?:^|_)(?:MAX|MIN|SIZE|DEPTH|LIMIT|COUNT|NR|LEN|LENGTH|SHIFT|BITS)(?:_|$)|_MAX$")
_ERRNO = re.compile(r"E[A-Z0-9]{2,}")
_TYPED = {"min_t", "max_t", "clamp_t"}
_SMALLEST = {"min", "min_t", "umin", "max", "max_t", "umax", "min_not_zero"}
_PRODUCTS = {"kcalloc", "kmalloc_array", "kvcalloc", "kvmalloc_array", "calloc"}


def is_assertion(name: str) -> bool:
    """Return True for a call that checks or prints and does nothing else."""
    return bool(_ASSERTION.fullmatch(name))


def is_constant_macro(name: str) -> bool:
    """Return True for what has to be known to the compiler."""
    return bool(_CONSTANT_MACRO.fullmatch(name))


def takes_type(name: str) -> bool:
    """Return True for a macro whose first argument is a type."""
    return name in _TYPED


def drop_operator(callee: str) -> str:
    """Return the name of the operator that drops a statement; callee is the function that it calls, or empty."""
    return "missing release" if _FREE.fullmatch(callee) else "drop statement"


def is_errno(text: str) -> bool:
    """Return True for EINVAL and the like."""
    return bool(_ERRNO.fullmatch(text))


def other_errno(text: str) -> str:
    """Return another error number."""
    return "EPERM" if text != "EPERM" else "EINVAL"


def binary(operator: str, left: str, right: str, *, in_chain: bool = False) -> Iterator[tuple[str, str, str]]:
    """Yield (operator name, new text, "left", "right" or "": the operand that is dropped) for a binary expression.

    in_chain tells that left is an expression of the same operator, whose own parts are dropped one at a time.
    """
    for other in COMPARISONS.get(operator, ()):
        name = "off by one" if other.rstrip("=") == operator.rstrip("=") and operator[0] in "<>" else "negate"
        yield name, f"{left} {other} {right}", ""
    if operator in LOGICAL:
        if not in_chain:
            yield "condition dropped", right, "left"
        yield "condition dropped", left, "right"
        yield "wrong operator", f"({left}) {'||' if operator == '&&' else '&&'} ({right})", ""
    for other in _ARITHMETIC.get(operator, ()):
        yield "wrong operator", f"{left} {other} {right}", ""
    if operator == "*":
        yield "wrong size", left, "right"
    elif operator == "&":
        yield "missing mask", left, "right"
    elif operator == "|":
        yield "flag dropped", right, "left"
        yield "flag dropped", left, "right"


def call(name: str, arguments: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield (operator name, new text, reason why it is equivalent or empty) for a call."""
    first = 1 if takes_type(name) else 0
    values = arguments[first:]
    for index, (one, two) in enumerate(pairwise(values), first):
        if one == two or '"' in one + two:
            continue
        swapped = [*arguments[:index], two, one, *arguments[index + 2 :]]
        reason = ""
        if name in _SMALLEST:
            reason = f"{name}() does not care for the order of its arguments"
        elif name in _PRODUCTS and index == 0:
            reason = f"{name}() multiplies its first two arguments"
        yield "arguments swapped", f"{name}({', '.join(swapped)})", reason
    if name in _SMALLEST and len(values) == 2:
        yield "limit dropped", values[0], ""
        yield "limit dropped", values[1], ""


def sizes(text: str) -> Iterator[str]:
    """Yield wrong sizes for a sizeof expression."""
    yield f"{text} - 8" if text not in ("sizeof(u64)", "sizeof(__u64)", "sizeof(long)") else "sizeof(u32)"
    if match := re.fullmatch(r"sizeof\s*\(\s*\*\s*(\w+)\s*\)", text):
        yield f"sizeof({match[1]})"


def other_number(text: str) -> str:
    """Return the number beside an integer literal, an empty string for what is none."""
    match = _NUMBER.fullmatch(text)
    if not match:
        return ""
    value = int(match[1], 0) if not re.fullmatch(r"0\d+", match[1]) else int(match[1], 8)
    return f"{value - 1 if value else 1}{match[2]}"


def other_constant(text: str, known: Sequence[str], *, flags: bool) -> Iterator[tuple[str, str]]:
    """Yield (operator name, new text) for a constant in capitals: the next one of its kind, or one less.

    known are the constants that stand nearby. An amount is one less, but not where bits are meant.
    """
    if not _CONSTANT.fullmatch(text) or text.startswith("CONFIG_"):
        return
    if _AMOUNT.search(text) and not flags:
        yield "off by one", f"{text} - 1"
        return
    words = text.split("_")
    # The most alike ones first: PERF_SAMPLE_IP for PERF_SAMPLE_ADDR, before anything else of PERF_.
    for length in range(len(words) - 1, 0, -1):
        kind = "_".join(words[:length]) + "_"
        family = [c for c in known if c.startswith(kind) and not _AMOUNT.search(c)]
        if text in family and len(family) > 1:
            yield "wrong constant", family[(family.index(text) + 1) % len(family)]
            return
