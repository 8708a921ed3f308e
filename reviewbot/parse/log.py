"""The text of a mail to its commit log and the rest, where git-mailinfo(1) cuts it.

In: text with LF line ends. Out: the log, without blanks at its ends and without a mail program's signature, and what
follows.
"""

from __future__ import annotations

import re

from reviewbot.parse.diff import starts_diff

_END_OF_LOG = re.compile(r"\n(?:diff -|Index: |---(?=\s*$)|--- )", re.MULTILINE)


def cut_log(text: str) -> tuple[str, str]:
    """Return the log of a mail's text, and the rest from the separator on, by git-mailinfo(1)'s rules."""
    for match in _END_OF_LOG.finditer(f"\n{text}"):
        at = match.start()
        if match[0] != "\n--- " or text[at:].split("\n", 1)[0].rstrip() == "---" or _names_a_file(text, at):
            return _tidy(text[:at].split("\n")), text[at:]
    return _tidy(_unsigned(text.split("\n"))), ""


def _names_a_file(text: str, at: int) -> bool:
    return starts_diff(text[at : at + 10_000].split("\n", 3), 0)


def _unsigned(lines: list[str]) -> list[str]:
    # Without the signature of the mail program.
    for index in range(len(lines) - 1, max(-1, len(lines) - 12), -1):
        if lines[index] == "-- ":
            return lines[:index]
    return lines


def _tidy(lines: list[str]) -> str:
    text = "\n".join(line.rstrip() for line in lines).strip("\n")
    return f"{text}\n" if text else ""
