"""Check diffstat: does the diff touch other files than its mail says.

The mail's diffstat is what a reviewer reads first; intake notes where it and the diff disagree.
"""

from __future__ import annotations

from reviewbot.checks.contract import Answer, Check, Subject, finding
from reviewbot.model import Status

NAME = "diffstat"


def _ask(subject: Subject) -> Answer:
    told = [
        (patch, note) for patch in subject.series.patches for note in patch.notes if note.startswith("the diffstat ")
    ]
    return Answer(findings=tuple(finding(NAME, note, Status.PASS, excerpt=patch.subject) for patch, note in told))


CHECK = Check(name=NAME, question="Does the diff touch the files that its diffstat names?", ask=_ask)
