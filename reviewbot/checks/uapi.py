"""Check uapi: does the series break what user space is built on.

Compares the headers below include/uapi and arch/*/include/uapi before and after the series. A value used twice and a
changed value of an existing name are broken rules (FAIL); a changed or removed member, a bit beyond *_MAX, a layout
comment that is left behind need a reader (WARN); growth at the end and a moved *_MAX are notes.

Source: Documentation/process/adding-syscalls.rst, tools/include/uapi/README; the rules themselves follow from C.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from reviewbot.checks.contract import Answer, Check, Subject, finding
from reviewbot.model import Status
from reviewbot.parse.abi import Header, parse_header
from reviewbot.parse.abi_diff import Change, Weight, compare_headers
from reviewbot.tools.git import git_bytes
from reviewbot.tools.objects import read_objects

if TYPE_CHECKING:
    from reviewbot.model import Finding

NAME = "uapi"
_UAPI = re.compile(r"^(?:arch/[^/]+/)?include/uapi/.*\.h$")
_MAX_BYTES = 4 << 20
_SEVERITY = {Weight.BROKEN: Status.FAIL, Weight.DOUBTFUL: Status.WARN, Weight.NOTE: Status.PASS}


def _ask(subject: Subject) -> Answer:
    options = ("-r", "-z", "--name-only", "--no-renames")
    listing = git_bytes(subject.repo, "diff-tree", *options, subject.before, subject.tip)
    changed = [path for path in listing.decode("utf-8", "surrogateescape").split("\0") if _UAPI.match(path)]
    findings: list[Finding] = []
    for path in changed:
        old, new = (_header(subject, commit, path) for commit in (subject.before, subject.tip))
        if old is None:
            continue  # a new header breaks nobody
        if new is None:
            findings.append(finding(NAME, "a header for user space is removed", Status.WARN, file=path, rule="removed"))
            continue
        findings += [_finding(subject, path, change) for change in compare_headers(old, new)]
    return Answer(findings=tuple(findings))


def _header(subject: Subject, commit: str, path: str) -> Header | None:
    found = read_objects(subject.repo, [f"{commit}:{path}"])[0]
    if found is None or found.kind != "blob" or len(found.data) > _MAX_BYTES:
        return None
    return parse_header(found.data.decode("utf-8", "replace"))


def _finding(subject: Subject, path: str, change: Change) -> Finding:
    return finding(
        NAME,
        change.title,
        _SEVERITY[change.weight],
        file=path,
        line=change.line,
        excerpt=change.detail,
        reproduce=f"git diff {subject.before[:12]} {subject.tip[:12]} -- {path}",
        rule=change.rule,
    )


CHECK = Check(name=NAME, question="Does user space keep the values and layouts that it is built on?", ask=_ask)
