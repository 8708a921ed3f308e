"""format=flowed (RFC 3676) undone for a mail that holds a patch, where it can be.

In: the text and the parameters of its Content-Type. Out: the text as it was before the mail program wrapped it, and
notes. Of the readings that the format allows, the first whose hunks have the lines that their headers promise is taken.
"""

from __future__ import annotations

import re

from reviewbot.parse.diff import parse_diff


def undo_flowed(text: str, *, flowed: bool, delsp: bool) -> tuple[str, list[str]]:
    """Return the text before wrapping, and what a reader must know of it; what is not flowed comes back as it is."""
    if not flowed or "\n@@ -" not in text:
        return text, []
    damaged = "the mail is format=flowed: the mail program has wrapped lines or changed white space"
    readings = [_unstuff(text), text] if _stuffed(text) else [text, _unstuff(text)]
    readings += [_unwrap(one, delsp=delsp) for one in (text, _unstuff(text))]
    for reading in readings:
        parsed = parse_diff(reading)
        if parsed.files and not parsed.problems:
            return reading, [] if reading is text else ["format=flowed undone"]
    return text, [damaged]


def _stuffed(text: str) -> bool:
    # Kernel code is indented with tabs: context lines that all have two spaces in front have been stuffed.
    lines = [line for line in _hunk_lines(text) if line.startswith(" ") and line.strip()]
    return bool(lines) and all(line.startswith("  ") for line in lines)


def _hunk_lines(text: str) -> list[str]:
    return [line for part in re.split(r"(?m)^@@ -", text)[1:] for line in part.split("\n")[1:]]


def _unstuff(text: str) -> str:
    return "\n".join(line[1:] if line.startswith(" ") else line for line in text.split("\n"))


def _unwrap(text: str, *, delsp: bool) -> str:
    out: list[str] = []
    open_line = False
    for line in text.split("\n"):
        if open_line:
            out[-1] = (out[-1][:-1] if delsp else out[-1]) + line
        else:
            out.append(line)
        open_line = line.endswith(" ") and line != "-- " and not line.startswith(("diff ", "---", "+++", "@@"))
    return "\n".join(out)
