"""Check whitespace: does a commit add whitespace errors or leftover conflict markers.

Source: git-diff(1), --check
"""

from __future__ import annotations

import re

from reviewbot.checks.contract import Answer, Check, Subject, finding
from reviewbot.model import Status
from reviewbot.tools.git import git

NAME = "whitespace"
_LINE = re.compile(r"^(?P<file>.+?):(?P<line>\d{1,9}): (?P<what>[a-z].*)\.?$")


def _ask(subject: Subject) -> Answer:
    findings = []
    for commit in subject.commits:
        done = git(
            subject.repo,
            "diff-tree",
            "--check",
            "-r",
            "--no-ext-diff",
            "--no-textconv",
            f"{commit.commit}^",
            commit.commit,
        )
        if done.exit_status not in (0, 2) or done.timed_out:
            return Answer(skipped=f"git diff-tree --check: exit status {done.exit_status}")
        for match in filter(None, map(_LINE.match, done.stdout.splitlines())):
            marker = "conflict marker" in match["what"]
            findings.append(
                finding(
                    NAME,
                    match["what"].rstrip("."),
                    Status.WARN if marker else Status.PASS,
                    file=match["file"],
                    line=int(match["line"]),
                    excerpt=commit.subject,
                    reproduce=f"git show --check {commit.commit[:12]}",
                    rule="conflict-marker" if marker else "space",
                )
            )
    return Answer(findings=tuple(findings))


CHECK = Check(name=NAME, question="Are whitespace errors or conflict markers added?", ask=_ask)
