"""A review under way: what is known so far, and how it is written down.

In: stages as functions. Out: their results, timed, and results.json and index.html saved after each. An InfraError,
and a disk that is full, end their stage as ERROR; nothing else is caught here.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from reviewbot import __version__
from reviewbot.errors import InfraError
from reviewbot.model import ApplyResult, BaseInfo, Outcome, Report, RunInfo, Series, StageResult, Status
from reviewbot.report.html import render_html
from reviewbot.report.results import render_json
from reviewbot.verdict import judge

if TYPE_CHECKING:
    from collections.abc import Callable

    from reviewbot.generate.spec import Specs
    from reviewbot.progress import Progress
    from reviewbot.request import Request
    from reviewbot.tools.cache import Cache

T = TypeVar("T")
# A full or failing disk can be met by any write: it is the machine's fault, not the series' and not a bug.
_MACHINE_ERRNOS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.ENOMEM, errno.EMFILE})


@dataclass(slots=True)
class Run:
    """A review under way: what is known so far, and where it is written."""

    request: Request
    cache: Cache
    progress: Progress
    timings: Timings
    specs: Specs
    started: float = field(default_factory=time.monotonic)
    stamp: datetime = field(default_factory=lambda: datetime.now(UTC))
    out: Path = field(default_factory=Path)
    series: Series | None = None
    base: BaseInfo | None = None
    applied: ApplyResult | None = None
    stages: list[StageResult] = field(default_factory=list)
    machine: list[tuple[str, str]] = field(default_factory=list)

    def report(self, *, finished: bool = False, stopped_by: str = "") -> Report:
        """Return the report of what is known so far."""
        verdict = judge(self.stages, self.applied, series=self.series, finished=finished, stopped_by=stopped_by)
        run = RunInfo(
            version=__version__,
            started=self.stamp.isoformat(timespec="seconds"),
            command=self.request.command,
            duration_s=time.monotonic() - self.started,
            finished=finished,
            machine=tuple(self.machine),
            stopped_by=stopped_by,
        )
        return Report(
            verdict=verdict.kind,
            reasons=verdict.reasons,
            run=run,
            series=self.series,
            base=self.base,
            apply=self.applied,
            stages=tuple(self.stages),
        )

    def timed(
        self,
        name: str,
        work: Callable[[], Outcome[T]],
        *,
        cached: bool = False,
        announced: bool = True,
        required: bool = True,
    ) -> Outcome[T]:
        """Run one stage with progress; its result gets the time that it took, and an InfraError becomes ERROR.

        cached: the stage will not take its usual time, and what it takes is no guide for later. announced: its start is
        shown; not so for what can still turn out to be a usage error, whose one line stands alone. required: the answer
        is not one without this stage.
        """
        if announced:
            self.progress.start(name, None if cached else self.timings.estimate(name))
        started = time.monotonic()
        try:
            outcome = work()
        except KeyboardInterrupt as stop:
            spent = time.monotonic() - started
            summary = f"stopped by {str(stop) or 'SIGINT'} after {spent:.0f} s"
            self.stages.append(StageResult(stage=name, status=Status.ERROR, summary=summary, duration_s=spent))
            self.progress.finish(self.stages[-1])
            raise
        except InfraError as error:
            outcome = _machine_failed(name, str(error), required)
        except OSError as error:
            if error.errno not in _MACHINE_ERRNOS:
                raise
            outcome = _machine_failed(name, f"{error.filename or 'a file'}: {error.strerror}", required)
        spent = time.monotonic() - started
        outcome = replace(outcome, result=replace(outcome.result, duration_s=spent))
        self.progress.finish(outcome.result)
        if not cached:
            self.timings.remember(outcome.result)
        return outcome

    def stage(
        self, name: str, work: Callable[[], Outcome[T]], *, cached: bool = False, required: bool = True
    ) -> T | None:
        """Run one stage, keep its result, save the report, and return the stage's value (see timed())."""
        outcome = self.timed(name, work, cached=cached, required=required)
        self.stages.append(outcome.result)
        self.save()
        return outcome.value

    def skip_rest(self, names: tuple[str, ...], reason: str, *, optional: tuple[str, ...] = ()) -> None:
        """Give each stage that did not come to its turn a SKIP that says why; the answer lacks those not optional."""
        there = {s.stage for s in self.stages}
        for name in names:
            if name not in there:
                result = StageResult(stage=name, status=Status.SKIP, summary=reason, required=name not in optional)
                self.progress.finish(result)
                self.stages.append(result)

    def save(self, *, finished: bool = False, stopped_by: str = "") -> Report:
        """Write results.json and index.html by atomic rename, and return what they hold."""
        report = self.report(finished=finished, stopped_by=stopped_by)
        for name, text in (("results.json", render_json(report)), ("index.html", render_html(report))):
            write_atomically(self.out / name, text)
        return report


class Timings:
    """How long each stage took when it last passed on a tree; for the estimate on the terminal, in seconds."""

    def __init__(self, cache: Cache, tree: str) -> None:
        self._path = cache.dir("timings") / f"{tree}.json"
        try:
            self._known = {str(k): float(v) for k, v in json.loads(self._path.read_text()).items()}
        except (OSError, ValueError, AttributeError):
            self._known = {}

    def estimate(self, stage: str) -> float | None:
        """Return the seconds that the stage took last, or None."""
        return self._known.get(stage)

    def remember(self, result: StageResult) -> None:
        """Keep the time of a stage that ran to its end."""
        if result.status in (Status.PASS, Status.WARN, Status.FAIL):
            self._known[result.stage] = result.duration_s
            with contextlib.suppress(OSError):
                self._path.write_text(json.dumps(self._known))


def _machine_failed(stage: str, why: str, required: bool) -> Outcome[T]:
    summary = f"the machine failed: {why}"
    return Outcome(result=StageResult(stage=stage, status=Status.ERROR, summary=summary, required=required))


def write_atomically(path: Path, text: str) -> None:
    """Replace path by text, so that a reader sees the old or the new file and a full disk leaves the old one."""
    work = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        work.write_text(text)
        work.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            work.unlink()
        msg = f"{path}: {error.strerror}"
        raise InfraError(msg) from error
