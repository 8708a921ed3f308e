"""Check trailers: does each commit have the trailers that it needs, in the form that tools expect.

A sign-off, and one of the author; ``Fixes: <12+ hex digits> ("subject")`` that names a commit with that subject; a
sign-off after each Co-developed-by. Nothing here fails a series.

Source: Documentation/process/submitting-patches.rst
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from reviewbot.checks.contract import Answer, Check, Commit, Subject, finding
from reviewbot.model import Status
from reviewbot.tools.git import git
from reviewbot.tools.objects import read_objects

if TYPE_CHECKING:
    from reviewbot.model import Finding

NAME = "trailers"
_TRAILER = re.compile(r"^(?P<key>[A-Za-z][A-Za-z0-9-]*):[ \t]+(?P<value>\S.*)$")
_PERSON = re.compile(r"^(?P<name>.*?)\s*<(?P<email>[^<>]+)>")
_FIXES = re.compile(r'^(?P<id>[0-9a-f]+) \("(?P<subject>.+)"\)$')
_FIXES_LOOSE = re.compile(r"^(?:commit )?(?P<id>[0-9a-f]{6,40})\b")
_KNOWN = re.compile(r"(?i)signed-off-by|co-developed-by|fixes|change-id")


def _ask(subject: Subject) -> Answer:
    findings: list[Finding] = []
    for commit in subject.commits:
        trailers = _trailers(commit.message)
        findings += _sign_offs(commit, trailers)
        for value in (value for key, value in trailers if key == "fixes"):
            findings += _fixes(subject, commit, value)
        if any(key == "change-id" and re.fullmatch(r"I[0-9a-f]{40}", value) for key, value in trailers):
            findings.append(_finding(commit, "a Gerrit Change-Id in the commit message", Status.PASS, "change-id"))
    return Answer(findings=tuple(findings))


def _finding(commit: Commit, title: str, severity: Status, rule: str, line: str = "") -> Finding:
    return finding(NAME, title, severity, excerpt="\n".join(filter(None, (commit.subject, line))), rule=rule)


def _trailers(message: str) -> list[tuple[str, str]]:
    # Trailers stand in the last paragraph, but a note in brackets or a cut-off mail can split it: any line counts.
    found = [match for line in message.splitlines()[1:] if (match := _TRAILER.match(line))]
    return [(match["key"].lower(), match["value"].strip()) for match in found if _KNOWN.fullmatch(match["key"])]


def _same_person(one: str, other: str) -> bool:
    first, second = _PERSON.match(one), _PERSON.match(other)
    if first is None or second is None:
        return one.strip().casefold() == other.strip().casefold()
    if first["email"].casefold() == second["email"].casefold():
        return True
    name = first["name"].strip("\" '").casefold()
    return bool(name) and name == second["name"].strip("\" '").casefold()


def _sign_offs(commit: Commit, trailers: list[tuple[str, str]]) -> list[Finding]:
    signed = [value for key, value in trailers if key == "signed-off-by"]
    if not signed:
        return [_finding(commit, "no Signed-off-by in the commit message", Status.WARN, "sign-off")]
    findings = []
    if not any(_same_person(commit.author, value) for value in signed):
        title = f"no Signed-off-by of the author, {commit.author}"
        findings.append(_finding(commit, title, Status.WARN, "author-sign-off", f"Signed-off-by: {signed[0]}"))
    for place, (key, value) in enumerate(trailers):
        if key == "co-developed-by":
            after = trailers[place + 1] if place + 1 < len(trailers) else ("", "")
            if after[0] != "signed-off-by" or not _same_person(value, after[1]):
                title = f"Co-developed-by without a Signed-off-by of {value} right after it"
                findings.append(_finding(commit, title, Status.PASS, "co-developed-by"))
    return findings


def _fixes(subject: Subject, commit: Commit, value: str) -> list[Finding]:
    line = f"Fixes: {value}"
    match = _FIXES.match(value)
    if match is None:
        if _FIXES_LOOSE.match(value) is None:
            return []  # a link to a bug report is another use of the tag
        title = 'a Fixes tag is not written as: Fixes: 123456789012 ("subject")'
        return [_finding(commit, title, Status.PASS, "fixes-form", line)]
    if len(match["id"]) < 12:
        title = f"the Fixes tag has {len(match['id'])} digits of the commit id; 12 or more are due"
        return [_finding(commit, title, Status.PASS, "fixes-form", line)]
    if not subject.history:
        return []
    return _fixed_commit(subject, commit, match, line)


def _fixed_commit(subject: Subject, commit: Commit, match: re.Match[str], line: str) -> list[Finding]:
    named = read_objects(subject.repo, [f"{match['id'][:40]}^{{commit}}"])[0]
    if named is None:
        title = f"the Fixes tag names commit {match['id'][:12]}, which this tree does not have"
        return [_finding(commit, title, Status.WARN, "fixes-unknown", line)]
    subject_line = named.data.partition(b"\n\n")[2].split(b"\n")[0].decode("utf-8", "replace").strip()
    if subject_line != match["subject"].strip():
        title = f"the Fixes tag quotes another subject than commit {match['id'][:12]} has: {subject_line}"
        return [_finding(commit, title, Status.WARN, "fixes-subject", line)]
    if git(subject.repo, "merge-base", "--is-ancestor", named.oid, subject.tip).exit_status == 1:
        title = f"the Fixes tag names commit {match['id'][:12]}, which the base does not contain"
        return [_finding(commit, title, Status.WARN, "fixes-not-in-base", line)]
    return []


CHECK = Check(name=NAME, question="Are the sign-offs and Fixes tags there, and in their form?", ask=_ask)
