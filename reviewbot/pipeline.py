"""Stage order, what is skipped and why; results.json and index.html are saved after every stage.

In: a Request. Out: a Report, and the run directory with everything that was kept. A fault in the series is a result; an
InfraError ends its stage as ERROR; Ctrl-C leaves a report that says how far the run came. Anything else is a bug: it is raised after the
report was saved.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from reviewbot import __version__
from reviewbot.errors import InfraError, UsageError
from reviewbot.model import (
    ApplyResult,
    ApplyState,
    BaseInfo,
    Outcome,
    Report,
    RunInfo,
    Series,
    StageResult,
    Status,
)
from reviewbot.report.html import render_html
from reviewbot.report.results import render_json
from reviewbot.stages.apply import apply
from reviewbot.stages.base import choose_base
from reviewbot.stages.boot import Consoles, boot
from reviewbot.stages.build import Kernels, build
from reviewbot.stages.check import check
from reviewbot.stages.configure import DEFAULT_FRAGMENTS, configure, load_fragments
from reviewbot.stages.intake import intake
from reviewbot.stages.selftest import selftest
from reviewbot.tools.guest import prepare_root
from reviewbot.tools.kernel import Builder
from reviewbot.tools.make import Compiler, Make, compiler
from reviewbot.tools.tree import Tree, get_tree, source_lock, worktree
from reviewbot.tools.vng import Machine, has_kvm
from reviewbot.verdict import judge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from reviewbot.progress import Progress
    from reviewbot.request import Request
    from reviewbot.tools.cache import Cache

T = TypeVar("T")
STAGES = ("intake", "base", "apply", "check", "configure", "build", "boot", "selftest")
# Why a stage that follows an unanswered question does not run.
_NEEDS = {"check": "apply", "configure": "apply", "build": "configure", "boot": "build", "selftest": "boot"}


class _Stop(Exception):  # noqa: N818 - control flow of this module, not an error
    """The stages that remain cannot run; reason is what their SKIP says."""


@dataclass(slots=True)
class Run:
    """A review under way: what is known so far, and where it is written."""

    request: Request
    cache: Cache
    progress: Progress
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
        verdict = judge(
            self.stages, self.applied, series=self.series, finished=finished, stopped_by=stopped_by
        )
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

    def save(self, *, finished: bool = False, stopped_by: str = "") -> Report:
        """Write results.json and index.html by atomic rename, and return what they hold."""
        report = self.report(finished=finished, stopped_by=stopped_by)
        for name, text in (("results.json", render_json(report)), ("index.html", render_html(report))):
            write_atomically(self.out / name, text)
        return report


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


def review(request: Request, cache: Cache, progress: Progress) -> tuple[Report, Path]:
    """Run a review and return its report and the directory that holds it.

    Raises UsageError before anything is written when the request cannot be used.
    """
    run = Run(request=request, cache=cache, progress=progress)
    tree = get_tree(cache, request.tree)
    fragments = load_fragments(request.fragments or DEFAULT_FRAGMENTS)
    first = _timed(run, "intake", lambda: intake(request.source, stdin=request.stdin))
    prerequisites = [_prerequisite(path) for path in request.prerequisites]
    if first.value is None:
        msg = first.result.summary
        raise UsageError(msg)
    run.series = first.value
    run.out = _run_dir(request, run.series, run.stamp)
    with _kept_timings(run):
        _record(run, first.result)
        try:
            _after_intake(run, tree, prerequisites, fragments)
        except _Stop as stop:
            _skip_rest(run, str(stop))
        except KeyboardInterrupt:
            return run.save(stopped_by="Ctrl-C (SIGINT)"), run.out
        except BaseException:
            run.save(stopped_by="a bug in reviewbot")
            raise
        return run.save(finished=True), run.out


def _prerequisite(path: str) -> Series:
    outcome = intake(path)
    if outcome.value is None:
        msg = f"--prereq {path}: {outcome.result.summary}"
        raise UsageError(msg)
    return outcome.value


def _after_intake(run: Run, tree: Tree, prerequisites: list[Series], fragments: Fragments) -> None:
    series = run.series
    assert series is not None  # noqa: S101 - review() has set it
    run.machine += [("machine", f"{platform.machine()}, {len(os.sched_getaffinity(0))} CPUs"), ("KVM", "yes" if has_kvm() else "no, emulated (TCG)")]
    with source_lock(run.cache, tree.name):
        run.base = _stage(
            run, "base", lambda: choose_base(tree.repo, tree.name, series, rev=run.request.base, describe=tree.describe)
        )
        base = _must(run.base, "base")
        scratch = run.cache.dir("scratch")
        run.applied = _stage(
            run,
            "apply",
            lambda: apply(tree.repo, base, series, prerequisites, scratch=scratch, log=run.out / "apply.log"),
        )
        applied = _must(run.applied, "apply")
        run.save()
        if applied.state is ApplyState.ALREADY_MERGED:
            applied = replace(applied, base_commit=base.commit, prerequisite_commit=base.commit, tip_commit=base.commit)
        elif not applied.applied:
            msg = f"the series is not applied ({applied.state})"
            raise _Stop(msg)
        if run.applied.applied:
            _stage(run, "check", lambda: check(tree.repo, applied.tip_commit, applied, series, scripts=scratch, log=run.out / "check.log", scratch=scratch))
        _build_and_test(run, tree, applied, fragments)


def _build_and_test(run: Run, tree: Tree, applied: ApplyResult, fragments: Fragments) -> None:
    tools = compiler()
    run.machine += [("compiler", tools.version), ("linker", tools.linker), ("ccache", "yes" if tools.ccache else "no")]
    source = worktree(run.cache, tree)
    key = f"{fragments.key}-{tools.key}"
    builder = _builder(run, tree, source, tools, key)
    builder.checkout(applied.base_commit)
    config = _stage(run, "configure", lambda: configure(builder.make, fragments, run.out))
    _must(config, "configure")
    kernels: Kernels = _must(_stage(run, "build", lambda: build(builder, applied, run.out)), "build")
    machine = Machine(cache=run.cache, root=prepare_root(run.cache), timeout_s=run.request.boot_timeout_s)
    job = run.cache.dir("jobs", f"{run.stamp:%Y%m%d-%H%M%S}-{os.getpid()}")
    consoles: Consoles = _must(
        _stage(run, "boot", lambda: boot(machine, kernels.base, kernels.patched, job, run.out)), "boot"
    )
    _stage(
        run,
        "selftest",
        lambda: selftest(
            machine, builder, kernels, applied, tree.repo, consoles, job=job, run_dir=run.out, every=run.request.every
        ),
    )
