"""Check checkpatch: does checkpatch.pl complain.

An ERROR is for a reader to judge, a WARNING is a note; neither ever fails a series.

What other checks here answer themselves (sign-offs, Fixes tags, trailing space) is left out.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from reviewbot.checks.contract import Answer, Check, Subject, finding
from reviewbot.model import Status
from reviewbot.tools.checkpatch import checkpatch, extract_checkpatch
from reviewbot.tools.git import git_bytes

if TYPE_CHECKING:
    from pathlib import Path

    from reviewbot.checks.contract import Commit
    from reviewbot.model import Finding
    from reviewbot.tools.checkpatch import Complaint

NAME = "checkpatch"
# Answered by the checks "trailers" and "whitespace"; and FILE_PATH_CHANGES fires for every new file.
_ELSEWHERE = (
    "MISSING_SIGN_OFF",
    "NO_AUTHOR_SIGN_OFF",
    "FROM_SIGN_OFF_MISMATCH",
    "BAD_FIXES_TAG",
    "TRAILING_WHITESPACE",
    "SPACE_BEFORE_TAB",
    "FILE_PATH_CHANGES",
)


def _ask(subject: Subject) -> Answer:
    script = extract_checkpatch(subject.repo, subject.base, subject.scripts)
    if script is None:
        return Answer(skipped="the base tree has no scripts/checkpatch.pl")
    # A tree without history has none of the commits that a message can name.
    git_dir = subject.repo if subject.history else None
    ignore = _ELSEWHERE if subject.history else (*_ELSEWHERE, "UNKNOWN_COMMIT_ID")
    findings = []
    for number, commit in enumerate(subject.commits, start=1):
        patch = _patch_file(subject, commit, number)
        complaints = checkpatch(script, patch, ignore=ignore, git_dir=git_dir, log=subject.log)
        findings += [_finding(complaint, commit, subject.repo) for complaint in complaints]
    return Answer(findings=tuple(findings))


def _patch_file(subject: Subject, commit: Commit, number: int) -> Path:
    path = subject.scratch / f"checkpatch-{number:04}.patch"
    options = ("--stdout", "--no-signature", "--no-ext-diff", "--no-textconv", "--no-renames")
    path.write_bytes(git_bytes(subject.repo, "format-patch", "-1", *options, commit.commit))
    return path


def _finding(complaint: Complaint, commit: Commit, repo: Path) -> Finding:
    return finding(
        NAME,
        complaint.text,
        Status.WARN if complaint.level == "error" else Status.PASS,
        file=complaint.file,
        line=complaint.line,
        excerpt=f"{commit.subject}\n{complaint.excerpt}".strip(),
        reproduce=f"git -C {shlex.quote(str(repo))} format-patch -1 --stdout {commit.commit[:12]}"
        " | scripts/checkpatch.pl --no-tree --show-types -",
        rule=complaint.kind,
    )


CHECK = Check(name=NAME, question="Does the base tree's checkpatch.pl complain?", ask=_ask)
