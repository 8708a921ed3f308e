"""The lines that a diff adds, by their numbers in the new file.

In: a normalised ``git diff`` that we made from commits, with a/ and b/ prefixes; never raw mail. Out: line numbers of C
files and headers. Read by unidiff.
"""

from __future__ import annotations

from io import StringIO

from unidiff import PatchSet


def added_lines(diff: str, *, leave_out: tuple[str, ...] = ()) -> dict[str, tuple[int, ...]]:
    """Return path to the 1-based numbers of its added lines; paths that begin with one of leave_out are not there."""
    found = {}
    for file in PatchSet(StringIO(diff, newline="\n")):
        if not file.path.endswith((".c", ".h")) or file.path.startswith(leave_out):
            continue
        numbers = tuple(line.target_line_no for hunk in file for line in hunk if line.is_added)
        if numbers:
            found[file.path] = numbers
    return found
