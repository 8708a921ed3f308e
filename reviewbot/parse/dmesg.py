"""The kernel's own complaints in a console log: warnings, sanitizer and lockdep reports, oopses, stalls, panics.

In: the text of a console. Out: Splats with a title that is the same on another machine and in another build (no
addresses, numbers, CPUs or line numbers). Refused: lines without a time stamp where the console has stamps, for those
come from programs in the guest; test results of any kind.

Which line begins a splat stands in dmesg_rules.py; the corpus in tests/data/dmesg is the specification.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from reviewbot.parse.dmesg_rules import PART_OF_OOPS, SECONDARY_PANIC, SKIPPED, Rule, match

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[@-Z\\-_]")
_STAMP = re.compile(r"(?:<\d{1,3}>)?\[ *\d{1,7}\.\d{6}\](?:\[ *[TC]\d+\])? ?")
_VERSION = re.compile(r"Linux version (\S.*)")
_RESULT_LIKE = re.compile(r"\s*(?:# )*(?:K?TAP version \d|1\.\.\d+\s*$|(?:not )?ok \d+\b|# Totals: pass:|reviewbot)")
_FRAME = re.compile(r"^ *(?:\[<?[0-9a-f]+>?\] )?(?P<unsure>\? )?(?P<name>[A-Za-z_][\w.]*)\+0x[0-9a-f]+/0x[0-9a-f]+")
_RIP = re.compile(r"^(?:RIP: 0010:|pc : |epc : )(?P<name>[A-Za-z_][\w.]*)\+0x")
_TRACE = re.compile(r"Call [Tt]race:|backtrace|<(?:TASK|IRQ|NMI)>")
_SUFFIX = re.compile(r"\.(?:isra|constprop|part|cold|llvm)\b.*$")
_BAR = re.compile(r"^={20,}$")
_CUT = "------------[ cut here ]------------"
_RCU_PLACE = re.compile(r"^(?P<file>[\w./-]+):(?P<line>\d{1,9}) (?P<what>\S.*)$")
# What follows the WARNING line when WARN() said nothing.
_AFTER_WARNING = re.compile(
    r"$|Modules linked in|CPU: |RIP: |pc : |Hardware name|Call Trace|Code: |---\[|=====|Kernel|\W"
)
_MAX_CHARS = 2000  # of a line
_MAX_LINES = 160
_MAX_LINES_BARE = 20  # of a report without a call trace
_MAX_SPLATS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Splat:
    """One complaint of the kernel. Its identity is (title, function).

    kind is a short class (``warning``, ``kasan``, ``lockdep``, ``oops``, ``panic``, …). file is relative to the tree,
    line is 1-based (0 unknown). excerpt is the report with its call trace, without time stamps. fatal: the kernel, or
    the task that hit it, did not go on.
    """

    kind: str
    title: str
    function: str = ""
    file: str = ""
    line: int = 0
    excerpt: str = ""
    fatal: bool = False

    @property
    def identity(self) -> tuple[str, str]:
        """What makes two splats of two boots the same one."""
        return (self.title, self.function)

    @property
    def headline(self) -> str:
        """Title and function in one line."""
        return f"{self.title} in {self.function}" if self.function else self.title


def parse_console(text: str) -> tuple[Splat, ...]:
    """Return the splats of a console log in their order.

    A panic that only ends an earlier splat ("Fatal exception", panic_on_warn) makes that one fatal.
    """
    lines = _kernel_lines(text)
    splats: list[Splat] = []
    place = 0
    while place < len(lines) and len(splats) < _MAX_SPLATS:
        found = match(lines[place])
        if found is None:
            place += 1
            continue
        rule, parts = found
        if rule.kind == "panic" and splats and SECONDARY_PANIC.match(parts["what"]):
            splats[-1] = replace(splats[-1], fatal=True)
            place += 1
            continue
        end = _end(lines, place, rule)
        splats.append(_splat(lines, place, end, rule, parts))
        place = end
    return tuple(splats)


def new_splats(base: Iterable[Splat], patched: Iterable[Splat]) -> tuple[Splat, ...]:
    """Return the splats of patched that base has fewer of, compared by identity as multisets."""
    left = Counter(splat.identity for splat in base)
    new = []
    for splat in patched:
        if left[splat.identity]:
            left[splat.identity] -= 1
        else:
            new.append(splat)
    return tuple(new)


def reached_userspace(text: str, marker: str) -> bool:
    """Tell whether a program in the guest printed marker; a kernel line that holds it does not count.

    marker must not be empty, and should be hard to guess. On a console without time stamps it has to be a whole line.
    """
    lines = [_ANSI.sub("", line).rstrip() for line in text.split("\n")]
    stamps = [_STAMP.search(line) for line in lines]
    if not any(stamps):
        return marker in lines
    own = (line[: stamp.start()] if stamp else line for line, stamp in zip(lines, stamps, strict=True))
    return any(marker in line for line in own)


def kernel_version(text: str) -> str:
    """Return what follows ``Linux version`` in the first such kernel line, or an empty string."""
    return next((found[1].strip() for line in _kernel_lines(text) if (found := _VERSION.match(line))), "")


def panic_of(text: str) -> str:
    """Return the message of the first panic, or an empty string when the kernel did not panic."""
    start = "Kernel panic - not syncing: "
    return next((line.removeprefix(start).strip() for line in _kernel_lines(text) if line.startswith(start)), "")


def result_like_lines(text: str) -> tuple[str, ...]:
    """Return up to 20 kernel lines that look like test results: nothing counts them, but a reader should know."""
    return tuple(line for line in _kernel_lines(text) if _RESULT_LIKE.match(line))[:20]


def _kernel_lines(text: str) -> list[str]:
    # The kernel's lines without escapes and stamps. A stamp can stand in the middle of what a program was printing.
    lines = [_ANSI.sub("", line[:_MAX_CHARS].rstrip("\r")) for line in text.split("\n")]
    stamps = [_STAMP.search(line) for line in lines]
    if not any(stamps):
        return lines
    return [line[stamp.end() :] for line, stamp in zip(lines, stamps, strict=True) if stamp]


def _end(lines: Sequence[str], start: int, rule: Rule) -> int:
    # The place after the last line of the splat that begins at start.
    if rule.end == "line":
        return start + 1
    last = min(len(lines), start + _MAX_LINES)
    if not any(_TRACE.search(line) for line in lines[start:last]):
        last = min(last, start + _MAX_LINES_BARE)
    for place in range(start + 1, last):
        line = lines[place]
        if _closes(line, rule):
            return place + 1
        if line == _CUT or (match(line) and not (rule.kind in ("oops", "bug") and PART_OF_OOPS.match(line))):
            return place - 1 if place > start + 1 and _BAR.match(lines[place - 1]) else place
    return last


def _closes(line: str, rule: Rule) -> bool:
    if line.startswith(("---[ end trace", "---[ end Kernel panic")):
        return True
    match rule.end:
        case "bar":
            return bool(_BAR.match(line))
        case "task":
            return line.strip() == "</TASK>"
    return False


def _splat(lines: Sequence[str], start: int, end: int, rule: Rule, parts: re.Match[str]) -> Splat:
    groups = {key: value or "" for key, value in parts.groupdict().items()}
    first = start
    while first > 0 and start - first < 8 and (lines[first - 1] == _CUT or _BAR.match(lines[first - 1])):
        first -= 1
    message = ""
    if rule.kind in ("warning", "bug") and rule.end == "trace":
        first, message = _message(lines, start)
    body = lines[start:end]
    kind, title = rule.kind, rule.title.format_map(groups)
    if rule.kind == "rcu" and (place := next((m for line in body[1:4] if (m := _RCU_PLACE.match(line))), None)):
        groups["file"], groups["line"] = place["file"], place["line"]
        title = f"{title}: {place['what']}"
    if message:
        kind, title = _kind_of(message, kind), f"{title}: {message}"
    return Splat(
        kind=kind,
        title=_normal(title),
        function=_function(groups.get("function", ""), body, rule),
        file=_file(groups.get("file", "")),
        line=int(groups.get("line") or 0),
        excerpt="\n".join(lines[first:end]).strip("\n"),
        fatal=rule.fatal,
    )


def _message(lines: Sequence[str], start: int) -> tuple[int, str]:
    # Where the splat begins, and what WARN() said: between the cut line and the WARNING line (a trap), or right after
    # the WARNING line (warn_slowpath_fmt() in kernel/panic.c).
    first, said = start, ""
    for back in range(start - 1, max(start - 12, -1), -1):
        if lines[back] == _CUT:
            first, said = back, " ".join(line.strip() for line in lines[back + 1 : start] if line.strip())
            break
    after = lines[start + 1].strip() if start + 1 < len(lines) else ""
    if not said and lines[start].startswith("WARNING") and not _AFTER_WARNING.match(after):
        said = after
    return first, said


def _kind_of(message: str, kind: str) -> str:
    if message.startswith("refcount_t:"):
        return "refcount"
    if re.match(r"list_(?:add|del) corruption", message):
        return "list"
    if message.startswith("ODEBUG:"):
        return "odebug"
    if "DEBUG_LOCKS_WARN_ON" in message:
        return "lockdep"
    return kind


def _file(name: str) -> str:
    # Out-of-tree builds print "../kernel/x.c" or an absolute path to the source.
    while name.startswith(("./", "../")):
        name = name.partition("/")[2]
    return name


def _normal(title: str) -> str:
    # What differs from one boot to the next: addresses, numbers, tasks, CPUs.
    title = re.sub(r"(?<=\w)\+0x[0-9a-f]+(?:/0x[0-9a-f]+)?", "", title)
    title = re.sub(r"\b0x[0-9a-fA-F]+\b|\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b", "ADDR", title)
    title = re.sub(r"\[[^\[\]:]{1,20}:\d+\]", "[TASK]", title)
    title = re.sub(r"\bby task \S+/\d+", "by task", title)
    title = re.sub(r"(?<![\w.])(?<!\w-)-?\d+(?![\w.]*[A-Za-z_])", "N", title)
    return " ".join(title.split())[:300]


def _function(header: str, body: Sequence[str], rule: Rule) -> str:
    if header and not SKIPPED.match(header):
        return _SUFFIX.sub("", header)
    candidates = []
    if rule.kind in ("warning", "bug", "oops", "lockup", "stall"):
        candidates += [found["name"] for line in body if (found := _RIP.match(line))][:1]
    candidates += _frames(body)
    named = next((name for name in candidates if not SKIPPED.match(name)), "")
    return _SUFFIX.sub("", named or header)


def _frames(body: Sequence[str]) -> list[str]:
    # The reliable frames of the first call trace; kmemleak and KCSAN print frames without a heading.
    frames: list[str] = []
    inside = not any(_TRACE.search(line) for line in body)
    for line in body:
        if _TRACE.search(line):
            inside = True
        elif inside and (found := _FRAME.match(line)) and not found["unsure"]:
            frames.append(found["name"])
        elif inside and frames and not line.strip():
            break
    return frames
