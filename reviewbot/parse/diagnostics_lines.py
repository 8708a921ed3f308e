"""The line grammar of build diagnostics: gcc, clang, sparse, smatch, as, ld, modpost, objtool, Kconfig and make.

In: one line of a build log. Out: a Head (where, what kind, what text) or None. Nothing here looks at two lines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_MAX_CHARS = 4000
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\]8;[^\x07\x1b]*(?:\x07|\x1b\\)")
_QUOTES = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "`": "'"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The first line of a diagnostic. kind is "error", "warning" or "note"; flag names the option or the tool."""

    kind: str
    text: str
    file: str = ""
    line: int = 0
    column: int = 0
    flag: str = ""
    function: str = ""


@dataclass(frozen=True, slots=True)
class _Form:
    pattern: re.Pattern[str]
    kind: str = ""
    flag: str = ""


_FILE = r"(?P<file>[^\s:'\"][^:'\"]*)"
_AT = _FILE + r":(?P<line>\d{1,9})"
_LD = r"\S*ld(?:\.bfd)?: "
_LD_SYMBOL = r"(?P<text>undefined reference to .+|multiple definition of .+?)(?:; .*)?"
_LD_OTHER = r"cannot find|section .* overlaps|unrecognized option|.*region .* overflowed|.*relocation truncated"
_KCONFIG = r"(?P<file>[\w./-]*Kconfig[\w.-]*):(?P<line>\d{1,9}): ?"
_OBJTOOL = r"objtool: (?:(?P<function>[\w.]+)(?:\(\))?(?:\+0x[0-9a-f]+)?: )?(?P<text>.+)"


def _form(pattern: str, *, kind: str = "", flag: str = "") -> _Form:
    return _Form(re.compile(pattern), kind, flag)


_FORMS = (
    # sparse -fdiagnostic-prefix, then the compilers (and sparse without a prefix, which looks like gcc).
    _form(_AT + r":(?P<column>\d{1,9}): sparse: (?P<kind>error|warning|note): (?P<text>.+)", flag="sparse"),
    _form(
        _AT + r":(?:(?P<column>\d{1,9}):)? (?P<kind>(?:fatal |internal compiler )?error|warning|note): "
        r"(?P<text>.+?)(?: \[(?P<flag>-W[^\s\]]*)\])?"
    ),
    _form(_AT + r": (?P<kind>Error|Warning): (?P<text>.+)", flag="as"),
    _form(_AT + r" (?P<function>\w+)\(\) (?P<kind>warn|error): (?P<text>.+)", flag="smatch"),
    _form(r"(?P<kind>Warning|Error): (?P<file>\S+):(?P<line>\d{1,9}) (?P<text>\S.+)", flag="kernel-doc"),
    _form(_FILE + r": (?P<kind>warning|error): " + _OBJTOOL, flag="objtool"),
    _form(r"(?P<kind>ERROR|WARNING): modpost: (?P<text>.+)", flag="modpost"),
    _form(rf"(?:{_LD})?{_AT}:(?:\([^)]*\):)? ?{_LD_SYMBOL}", kind="error", flag="ld"),
    _form(rf"(?:{_LD})?{_FILE}:\([^)]*\): ?{_LD_SYMBOL}", kind="error", flag="ld"),
    _form(r"\S*ld\.lld: (?P<kind>error|warning): (?P<text>.+)", flag="ld"),
    _form(rf"{_LD}(?P<kind>warning|error): (?:{_FILE}: )?(?P<text>.+)", flag="ld"),
    _form(rf"{_LD}(?:{_FILE}: )?(?P<text>(?:{_LD_OTHER}).*)", kind="error", flag="ld"),
    _form(_KCONFIG + r"(?P<kind>warning|error): ?(?P<text>.+)", flag="kconfig"),
    _form(_KCONFIG + r"(?P<text>(?!note).+)", kind="error", flag="kconfig"),
    _form(r"WARNING: (?P<text>unmet direct dependencies detected for \w+)", kind="warning", flag="kconfig"),
    _form(
        r"make(?:\[\d+\])?: \*\*\* (?P<text>No rule to make target .+?)(?:\.  Stop\.)?",
        kind="error",
        flag="make",
    ),
    _form(_AT + r": \*\*\* (?P<text>.+?)(?:\.?  Stop\.)?", kind="error", flag="make"),
    _form(r"(?P<text>FAILED\S* .+)", kind="error", flag="btf"),
)
_KINDS = {"warn": "warning", "warning": "warning", "note": "note"}


def clean(line: str) -> str:
    """Return line without terminal escapes and with plain quotes, cut after 4,000 characters."""
    return _ANSI.sub("", line[:_MAX_CHARS].rstrip("\r\n")).translate(_QUOTES)


def head_of(line: str) -> Head | None:
    """Return the diagnostic that a cleaned line begins, or None."""
    for form in _FORMS:
        if match := form.pattern.fullmatch(line):
            part = {key: value or "" for key, value in match.groupdict().items()}
            return Head(
                kind=form.kind or _KINDS.get(part["kind"].lower(), "error"),
                text=part["text"].strip(),
                file=part.get("file", ""),
                line=int(part.get("line") or 0),
                column=int(part.get("column") or 0),
                flag=form.flag or _option(part.get("flag", "")),
                function=part.get("function", ""),
            )
    return None


def _option(flag: str) -> str:
    # "-Werror=unused-variable" (gcc) and "-Werror,-Wunused-variable" (clang) are -Wunused-variable made fatal.
    return flag.replace("-Werror,", "").replace("-Werror=", "-W")
