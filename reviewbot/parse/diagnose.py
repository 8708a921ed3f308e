"""Why a patch does not apply: each hunk that found no place, with the nearest one and what differs.

In: the files of the patch and the files' texts at that point. Out: HunkFailures, none for a hunk that fits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reviewbot.model import HunkFailure
from reviewbot.parse.locate import locate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reviewbot.parse.diff import FileDiff
    from reviewbot.parse.hunk import Hunk

MAX_FAILURES = 50
_EXPECTED_CHARS = 4000


def diagnose(patch: str, files: Sequence[FileDiff], contents: Mapping[str, str]) -> tuple[HunkFailure, ...]:
    """Return the hunks of patch (its subject) that find no place in contents (path to text): MAX_FAILURES at most."""
    found: list[HunkFailure] = []
    for file in files:
        found += _file(patch, file, contents, MAX_FAILURES - len(found))
        if len(found) >= MAX_FAILURES:
            break
    return tuple(found[:MAX_FAILURES])


def _file(patch: str, file: FileDiff, contents: Mapping[str, str], most: int) -> list[HunkFailure]:
    name = file.old or file.new
    if file.status == "created":
        if file.new in contents:
            return [whole_file(patch, file, "the patch creates this file, but it exists")]
        return []
    if name not in contents:
        return [whole_file(patch, file, "the file does not exist")]
    lines = contents[name].split("\n")
    failures: list[HunkFailure] = []
    for number, hunk in enumerate(file.hunks, 1):
        if len(failures) == most:
            break
        place = locate(hunk, lines)
        if not place.exact:
            failures.append(
                HunkFailure(
                    patch=patch,
                    file=name,
                    hunk=number,
                    header=hunk.header,
                    line=hunk.old_start,
                    expected=_expected(hunk),
                    nearest=place.text,
                    nearest_line=place.line,
                    similarity=place.similarity,
                    difference=place.difference,
                    reason=place.reason,
                )
            )
    return failures


def whole_file(patch: str, file: FileDiff, reason: str) -> HunkFailure:
    """Return the failure of a file as a whole, with its first hunk, for reason."""
    first = file.hunks[0] if file.hunks else None
    return HunkFailure(
        patch=patch,
        file=file.old or file.new,
        hunk=1,
        header=first.header if first else "",
        line=first.old_start if first else 0,
        expected=_expected(first) if first else "",
        reason=reason,
    )


def refused_file(patch: str, files: Sequence[FileDiff], error: str) -> tuple[HunkFailure, ...]:
    """Return what is left to say when every hunk has a place and git refuses: the file that its error line names."""
    named = [file for file in files if any(name and name in error for name in (file.old, file.new))]
    return tuple(whole_file(patch, file, f"git: {error}") for file in (named or files)[:1])


def _expected(hunk: Hunk) -> str:
    text = "\n".join(hunk.side("-"))
    return text if len(text) <= _EXPECTED_CHARS else text[:_EXPECTED_CHARS] + "\n…"
