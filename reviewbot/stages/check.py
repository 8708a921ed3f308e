"""Stage check: the static questions of reviewbot.checks, asked about the commits of the series.

In: the applied tree. Out: findings, and a fact for each check: what it found, or why it did not run. Prerequisites are
not judged. Nothing of the series is executed, and no script is taken from it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from reviewbot.checks.contract import Answer, Check, Commit, Subject
from reviewbot.checks.registry import CHECKS
from reviewbot.errors import InfraError
from reviewbot.model import Blame, Finding, Origin, Outcome, StageResult, Status
from reviewbot.tools.git import git
from reviewbot.tools.objects import read_objects

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from reviewbot.model import ApplyResult, Series

STAGE = "check"
_MAX_FINDINGS = 200  # of one check; a series can touch thousands of files
# A tree made from a tarball has a commit or two; no commit that a message names is in it.
_HISTORY = 100


def check(
    repo: Path,
    tip: str,
    applied: ApplyResult,
    series: Series,
    *,
    scripts: Path,
    log: Path,
    scratch: Path,
    checks: Sequence[Check] = CHECKS,
) -> Outcome[None]:
    """Ask every check about the commits that the series made, and return their findings.

    repo is the repository that has tip. scripts keeps what is taken from the base tree (one directory a base commit),
    scratch is ours to write in, log gets the commands. The status is FAIL when a finding that counts breaks a rule,
    WARN when a reader should judge or a check could not run, SKIP when none could run or the series made no commit.
    """
    started = time.monotonic()
    commits = _commits(repo, applied)
    if not commits:
        return _outcome(Status.SKIP, "the series made no commit to look at", started)
    scratch.mkdir(parents=True, exist_ok=True)
    subject = Subject(
        repo=repo,
        base=applied.base_commit,
        before=applied.prerequisite_commit or applied.base_commit,
        tip=tip,
        commits=commits,
        series=series,
        history=_has_history(repo, applied.base_commit),
        scripts=scripts,
        scratch=scratch,
        log=log,
    )
    answers = [(each, _ask(each, subject)) for each in checks]
    findings = tuple(found for _, answer in answers for found in _bounded(answer.findings))
    status = _status(findings, [answer for _, answer in answers])
    facts = tuple((each.name, _fact(answer)) for each, answer in answers)
    return _outcome(status, _summary(answers, findings), started, findings, facts)


def _commits(repo: Path, applied: ApplyResult) -> tuple[Commit, ...]:
    ours = [patch for patch in applied.patches if patch.role is Blame.SERIES and patch.commit]
    commits = []
    for patch, found in zip(ours, read_objects(repo, [patch.commit for patch in ours]), strict=True):
        if found is None:
            msg = f"commit {patch.commit} is not in {repo}"
            raise InfraError(msg)
        head, _, message = found.data.decode("utf-8", "replace").partition("\n\n")
        author = next((line.removeprefix("author ") for line in head.splitlines() if line.startswith("author ")), "")
        commits.append(
            Commit(
                commit=patch.commit,
                subject=patch.subject,
                author=author.rpartition(">")[0] + ">" if ">" in author else author,
                message=message,
                files=patch.files,
            )
        )
    return tuple(commits)


def _has_history(repo: Path, base: str) -> bool:
    done = git(repo, "rev-list", "--count", f"--max-count={_HISTORY}", base)
    return done.ok and done.stdout.strip() == str(_HISTORY)


def _ask(each: Check, subject: Subject) -> Answer:
    try:
        return each.ask(subject)
    except InfraError as error:
        return Answer(skipped=str(error))


def _bounded(findings: Sequence[Finding]) -> Sequence[Finding]:
    # The gravest first, when there are more than anyone reads.
    if len(findings) <= _MAX_FINDINGS:
        return findings
    order = {Status.FAIL: 0, Status.WARN: 1}
    first = sorted(findings, key=lambda found: order.get(found.severity, 2))[:_MAX_FINDINGS]
    rule = first[0].rule.partition(":")[0]
    more = Finding(
        title=f"{len(findings) - _MAX_FINDINGS} more findings of this check are not shown",
        severity=Status.PASS,
        origin=Origin.INTRODUCED,
        rule=rule,
    )
    return [*first, more]


def _status(findings: Sequence[Finding], answers: Sequence[Answer]) -> Status:
    grave = {found.severity for found in findings if found.counts}
    if Status.FAIL in grave:
        return Status.FAIL
    if answers and all(answer.skipped for answer in answers):
        return Status.SKIP
    if Status.WARN in grave or any(answer.skipped for answer in answers):
        return Status.WARN
    return Status.PASS if answers else Status.SKIP


def _fact(answer: Answer) -> str:
    if answer.skipped:
        return f"did not run: {answer.skipped}"
    return _counted(answer.findings) or "nothing to report"


def _counted(findings: Sequence[Finding]) -> str:
    words = ((Status.FAIL, "broken rule"), (Status.WARN, "warning"), (Status.PASS, "note"))
    counts = [(sum(1 for found in findings if found.severity is status), word) for status, word in words]
    return ", ".join(f"{count} {word}{'s' * (count != 1)}" for count, word in counts if count)


def _summary(answers: Sequence[tuple[Check, Answer]], findings: Sequence[Finding]) -> str:
    ran = sum(1 for _, answer in answers if not answer.skipped)
    parts = [f"{ran} of {len(answers)} checks ran", _counted(findings) or "nothing to report"]
    parts += [f"{each.name} did not run: {answer.skipped}" for each, answer in answers if answer.skipped]
    return "; ".join(parts)


def _outcome(
    status: Status,
    summary: str,
    started: float,
    findings: tuple[Finding, ...] = (),
    facts: tuple[tuple[str, str], ...] = (),
) -> Outcome[None]:
    result = StageResult(
        stage=STAGE,
        status=status,
        summary=summary,
        duration_s=time.monotonic() - started,
        findings=findings,
        facts=facts,
        required=False,
    )
    return Outcome(result=result)
