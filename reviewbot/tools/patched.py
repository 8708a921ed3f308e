"""The files that a series touches, as they stand after it, with the patch that each added line came from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reviewbot.generate.mutants import NOT_KERNEL
from reviewbot.generate.writers import PatchedFile
from reviewbot.model import Blame
from reviewbot.parse.added import added_lines
from reviewbot.parse.blame import parse_blame
from reviewbot.tools.git import git_bytes

if TYPE_CHECKING:
    from pathlib import Path

    from reviewbot.model import ApplyResult, Series


def patched_files(repo: Path, applied: ApplyResult, series: Series) -> tuple[PatchedFile, ...]:
    """Return the C files and headers of the kernel that the applied series adds lines to; none for a merged one."""
    start, tip = applied.prerequisite_commit or applied.base_commit, applied.tip_commit
    numbers = {p.subject: p.number or n for n, p in enumerate(series.patches, 1)}
    commits = [p for p in applied.patches if p.role is Blame.SERIES]
    patch_of = {p.commit: numbers.get(p.subject, n) for n, p in enumerate(commits, 1)}
    words = ("diff", "-U0", "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames")
    diff = git_bytes(repo, *words, "--src-prefix=a/", "--dst-prefix=b/", start, tip).decode("utf-8", "replace")
    files = []
    for path, lines in added_lines(diff, leave_out=NOT_KERNEL).items():
        blame = git_bytes(repo, "blame", "--porcelain", f"{start}..{tip}", "--", path).decode("utf-8", "replace")
        commit_of = parse_blame(blame)
        added = {line: patch_of[commit_of[line]] for line in lines if commit_of.get(line) in patch_of}
        files.append(PatchedFile(path=path, text=git_bytes(repo, "show", f"{tip}:{path}"), added=added))
    return tuple(files)
