"""Check copies: does the series change a header of which tools/ keeps a copy.

perf and others build with copies of kernel headers; their maintainers bring them up to date, and build with a warning
until then. A note, no fault. Headers outside of uapi count when the copy was a true one before: others are rewritten.

Source: tools/include/uapi/README
"""

from __future__ import annotations

from reviewbot.checks.contract import Answer, Check, Subject, finding
from reviewbot.model import Status
from reviewbot.tools.git import git_bytes
from reviewbot.tools.objects import read_objects

NAME = "copies"


def _ask(subject: Subject) -> Answer:
    listing = git_bytes(
        subject.repo, "diff-tree", "-r", "-z", "--name-only", "--no-renames", subject.before, subject.tip
    )
    changed = set(filter(None, listing.decode("utf-8", "surrogateescape").split("\0")))
    candidates = sorted(path for path in changed if path.endswith(".h") and path.startswith(("include/", "arch/")))
    pairs = [(path, copy) for path in candidates if (copy := f"tools/{path}") not in changed]
    copies = read_objects(subject.repo, [f"{subject.before}:{copy}" for _, copy in pairs])
    originals = read_objects(subject.repo, [f"{subject.before}:{path}" for path, _ in pairs])
    findings = []
    for (path, copy), kept, original in zip(pairs, copies, originals, strict=True):
        if kept is not None and ("/uapi/" in path or (original is not None and kept.oid == original.oid)):
            title = f"{copy} is a copy of this header, and is not updated"
            findings.append(finding(NAME, title, Status.PASS, file=path, reproduce=f"diff {path} {copy}"))
    return Answer(findings=tuple(findings))


CHECK = Check(name=NAME, question="Is a header changed of which tools/ keeps a copy?", ask=_ask)
