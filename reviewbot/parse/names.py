"""File names in diffs: C quoting, prefixes, and the two names of a ``diff --git`` line that hold blanks.

In: pieces of header lines. Out: names. Source: quote.c and apply.c of git.
"""

from __future__ import annotations

import re

_STAMP = re.compile(r" +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?(?: [-+]\d{4})? *\Z")
_ESCAPES = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}


def unquote(path: str) -> str:
    """Return the path of a C-quoted name, or the name itself when it is not quoted."""
    if len(path) < 2 or path[0] != '"' or path[-1] != '"':
        return path
    out = bytearray()
    for match in re.finditer(r"\\([0-3][0-7]{2})|\\(.)|([^\\]+)", path[1:-1]):
        if match[1]:
            out.append(int(match[1], 8))
        elif match[2]:
            out += bytes([_ESCAPES[match[2]]]) if match[2] in _ESCAPES else match[2].encode()
        else:
            out += match[3].encode("utf-8", "surrogatepass")
    return out.decode("utf-8", "replace")


def git_names(rest: str) -> tuple[str, str]:
    """Return both names of a ``diff --git`` line, given what follows these words."""
    # "a/x b/x": both names are the same but for the prefix, which finds the middle even when they hold spaces.
    if rest.startswith('"'):
        end = re.match(r'"(?:[^"\\]|\\.)*"', rest)
        if end:
            return unquote(end[0]), unquote(rest[end.end() + 1 :])
    if rest.endswith('"') and ' "' in rest:
        left, _, right = rest.partition(' "')
        return left, unquote('"' + right)
    middle = len(rest) // 2
    left, right = rest[:middle], rest[middle + 1 :]
    if rest[middle : middle + 1] == " " and (left == right or strip_first(left) == strip_first(right)):
        return left, right
    left, _, right = rest.partition(" ")
    return left, right


def strip_first(name: str, *, prefixless: bool = False) -> str:
    """Return a name without its first component (a/, b/, linux.orig/), as -p1 does."""
    return name if prefixless else name.partition("/")[2]


def clean_name(name: str) -> str:
    """Return the name of a ``---`` or ``+++`` line, given what follows the sign."""
    # A timestamp or a lone tab may follow the name; where the mail program made a blank of the tab, the form tells it.
    if name.startswith('"'):
        return unquote(name)
    return unquote(_STAMP.sub("", name.partition("\t")[0].rstrip("\r")))
