"""What every check gets and gives.

A check is one static question about the commits of a series. It reads the repository and never a work tree; it
answers with findings, or says why it could not run: that is a skip, and never a pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reviewbot.model import Finding, Origin, Status

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from reviewbot.model import Series


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One commit of the series as applied. author is ``Name <email>``; message is the whole log, subject first."""

    commit: str
    subject: str
    author: str
    message: str
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What the checks look at: the commits from before (the prerequisites' tip) to tip, in order.

    base is the commit before the prerequisites: scripts are taken from it. history tells that base has a past, so that
    commit ids in a message can be looked up. scripts keeps the base's scripts, scratch is ours to write in, log gets
    the commands.
    """

    repo: Path
    base: str
    before: str
    tip: str
    commits: tuple[Commit, ...]
    series: Series
    history: bool
    scripts: Path
    scratch: Path
    log: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a check found. skipped says why it could not run, and is empty when it ran."""

    findings: tuple[Finding, ...] = ()
    skipped: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One entry of the registry: a short name, the question in one line, and the function that answers it."""

    name: str
    question: str
    ask: Callable[[Subject], Answer]


def finding(
    check: str,
    title: str,
    severity: Status,
    *,
    file: str = "",
    line: int = 0,
    function: str = "",
    excerpt: str = "",
    reproduce: str = "",
    rule: str = "",
) -> Finding:
    """Return a finding that the series introduced; its rule is ``check`` or ``check:rule``."""
    return Finding(
        title=title,
        severity=severity,
        origin=Origin.INTRODUCED,
        file=file,
        line=line,
        function=function,
        excerpt=excerpt,
        reproduce=reproduce,
        rule=f"{check}:{rule}" if rule else check,
    )
