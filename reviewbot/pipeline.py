"""Stage order, what is skipped and why; results.json and index.html are saved after every stage.

In: a Request. Out: a Report, and the run directory with everything that was kept. A fault in the series is a result;
an InfraError ends its stage as ERROR; Ctrl-C leaves a report that says how far the run came. Anything else is a bug: it
is raised after the report was saved.
"""

from __future__ import annotations

import contextlib
import errno
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
from reviewbot.stages.boot import boot
from reviewbot.stages.build import build
from reviewbot.stages.check import check
from reviewbot.stages.configure import DEFAULT_FRAGMENTS, configure, load_fragments
from reviewbot.stages.coverage import CoverageBench, coverage
from reviewbot.stages.intake import intake
from reviewbot.stages.selftest import Bench, selftest, write_selftests
from reviewbot.tools.gcov import FRAGMENT as GCOV
from reviewbot.tools.git import git_bytes
from reviewbot.tools.guest import prepare_root
from reviewbot.tools.kernel import Builder, Kernels
from reviewbot.tools.make import Compiler, Make, compiler
from reviewbot.tools.profiles import choose_profile
from reviewbot.tools.tree import Tree, get_tree, source_lock, worktree
from reviewbot.tools.vng import Machine, has_kvm
from reviewbot.verdict import judge

if TYPE_CHECKING:
    from collections.abc import Callable

    from reviewbot.parse.coverage import AddedLine
    from reviewbot.progress import Progress
    from reviewbot.request import Request
    from reviewbot.stages.configure import Fragments
    from reviewbot.tools.cache import Cache
    from reviewbot.tools.profiles import Profile

T = TypeVar("T")
# A full or failing disk can be met by any write: it is the machine's fault, not the series' and not a bug.
_MACHINE_ERRNOS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.ENOMEM, errno.EMFILE})
STAGES = ("intake", "base", "apply", "check", "configure", "build", "boot", "selftest")
ON_REQUEST = "coverage"


class _Stop(Exception):  # noqa: N818 - control flow of this module, not an error
    """The stages that remain cannot run; its text is what their SKIP says."""


@dataclass(slots=True)
class Run:
    """A review under way: what is known so far, and where it is written."""

    request: Request
    cache: Cache
    progress: Progress
    timings: Timings
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

    def timed(self, name: str, work: Callable[[], Outcome[T]]) -> Outcome[T]:
        """Run one stage with progress; its result gets the time that it took, and an InfraError becomes ERROR."""
        self.progress.start(name, self.timings.estimate(name))
        started = time.monotonic()
        try:
            outcome = work()
        except InfraError as error:
            outcome = _machine_failed(name, str(error))
        except OSError as error:
            if error.errno not in _MACHINE_ERRNOS:
                raise
            outcome = _machine_failed(name, f"{error.filename or 'a file'}: {error.strerror}")
        spent = time.monotonic() - started
        outcome = replace(outcome, result=replace(outcome.result, duration_s=spent))
        self.progress.finish(outcome.result)
        self.timings.remember(outcome.result)
        return outcome

    def stage(self, name: str, work: Callable[[], Outcome[T]]) -> T | None:
        """Run one stage, keep its result, save the report, and return the stage's value."""
        outcome = self.timed(name, work)
        self.stages.append(outcome.result)
        self.save()
        return outcome.value

    def must_be_fine(self, name: str) -> None:
        """Stop the run when the stage that just ran did not finish."""
        if self.stages[-1].status in (Status.ERROR, Status.FAIL, Status.SKIP):
            msg = f"not run: {name} did not finish"
            raise _Stop(msg)

    def skip_rest(self, reason: str) -> None:
        """Give each stage that did not come to its turn a SKIP that says why."""
        there = {s.stage for s in self.stages}
        for name in (*STAGES, *((ON_REQUEST,) if self.request.coverage else ())):
            if name not in there:
                result = StageResult(stage=name, status=Status.SKIP, summary=reason, required=name != ON_REQUEST)
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


def _machine_failed(stage: str, why: str) -> Outcome[T]:
    return Outcome(result=StageResult(stage=stage, status=Status.ERROR, summary=f"the machine failed: {why}"))


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

    Raises UsageError, before anything is written, when the request cannot be used.
    """
    run = Run(request=request, cache=cache, progress=progress, timings=Timings(cache, request.tree))
    tree = get_tree(cache, request.tree)
    fragments = load_fragments(request.fragments or DEFAULT_FRAGMENTS)
    read = run.timed("intake", lambda: intake(request.source, stdin=request.stdin))
    if read.value is None:
        raise UsageError(f"{request.source}: {read.result.summary}")
    series = read.value
    prerequisites = [_prerequisite(path) for path in request.prerequisites]
    chosen = run.timed(
        "base", lambda: choose_base(tree.repo, tree.name, series, rev=request.base, describe=tree.describe)
    )
    run.series, run.base, run.out = series, chosen.value, _run_dir(request, series, run.stamp)
    run.stages += [read.result, chosen.result]
    try:
        _after_base(run, tree, prerequisites, fragments)
    except _Stop as stop:
        run.skip_rest(str(stop))
    except KeyboardInterrupt:
        return run.save(stopped_by="Ctrl-C"), run.out
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


def _run_dir(request: Request, series: Series, stamp: datetime) -> Path:
    out = request.out or Path("reports") / series.slug / f"{stamp:%Y%m%d-%H%M%S}"
    try:
        out.mkdir(parents=True, exist_ok=True)
        probe = out / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        msg = f"--out {out}: {error.strerror}"
        raise UsageError(msg) from error
    return out.absolute()


def _after_base(run: Run, tree: Tree, prerequisites: list[Series], fragments: Fragments) -> None:
    series, base = run.series, run.base
    if series is None or base is None:
        msg = "the tree has no commit to test on"
        raise _Stop(msg)
    scratch = run.cache.dir("scratch", f"{run.stamp:%Y%m%d-%H%M%S}-{os.getpid()}")
    run.machine += [
        ("machine", f"{platform.machine()}, {len(os.sched_getaffinity(0))} CPUs"),
        ("KVM", "yes" if has_kvm() else "no, emulated (TCG)"),
    ]
    with source_lock(run.cache, tree.name):
        run.applied = run.stage(
            "apply",
            lambda: apply(
                tree.repo,
                base,
                series,
                prerequisites,
                scratch=scratch,
                log=run.out / "apply.log",
                allow_fuzz=run.request.allow_fuzz,
            ),
        )
        applied = _must(run.applied, "the series was not applied")
        run.save()
        if applied.applied:
            run.stage(
                "check",
                lambda: check(
                    tree.repo,
                    applied.tip_commit,
                    applied,
                    series,
                    scripts=scratch,
                    log=run.out / "check.log",
                    scratch=scratch,
                ),
            )
        elif applied.state is ApplyState.ALREADY_MERGED:
            # What it does can still be tested: base has it.
            applied = replace(applied, base_commit=base.commit, prerequisite_commit=base.commit, tip_commit=base.commit)
        else:
            msg = f"not run: the series is not applied ({applied.state})"
            raise _Stop(msg)
        _build_and_test(run, tree, series, applied, fragments)


def _build_and_test(run: Run, tree: Tree, series: Series, applied: ApplyResult, fragments: Fragments) -> None:
    tools = compiler()
    run.machine += [("compiler", tools.version), ("linker", tools.linker), ("ccache", tools.ccache or "no")]
    makefile = git_bytes(tree.repo, "show", f"{applied.base_commit}:Makefile").decode("utf-8", "replace")
    profile = choose_profile(makefile)
    fragments = replace(fragments, wanted=(*fragments.wanted, *profile.wanted))
    builder = _builder(run, tree, _profiled(tools, profile), fragments, profile=profile)
    run.stage("configure", lambda: configure(builder, applied.base_commit, fragments, run.out, profile=profile))
    run.must_be_fine("configure")
    kernels: Kernels = _must(run.stage("build", lambda: build(builder, applied, run.out)), "not run: no kernel to boot")
    machine = Machine(cache=run.cache, root=prepare_root(run.cache), timeout_s=run.request.boot_timeout_s)
    job = run.cache.dir("jobs", f"{run.stamp:%Y%m%d-%H%M%S}-{os.getpid()}")
    base_console: str = _must(
        run.stage("boot", lambda: boot(machine, kernels.base, kernels.patched, job, run.out)),
        "not run: base and patched have to boot first",
    )
    run.stage(
        "selftest",
        lambda: selftest(
            Bench(
                machine=machine,
                builder=builder,
                job=job,
                run_dir=run.out,
                note=lambda t: run.progress.note("selftest", t),
            ),
            kernels,
            applied,
            repo=tree.repo,
            series=series,
            base_console=base_console,
            every=run.request.every,
        ),
    )
    if run.request.coverage:
        run.stage(
            "coverage",
            lambda: _coverage(
                run,
                tree,
                builder=builder,
                machine=machine,
                job=job,
                applied=applied,
                fragments=fragments,
                profile=profile,
            ),
        )


def _coverage(
    run: Run,
    tree: Tree,
    *,
    builder: Builder,
    machine: Machine,
    job: Path,
    applied: ApplyResult,
    fragments: Fragments,
    profile: Profile,
) -> Outcome[tuple[AddedLine, ...]]:
    counting = load_fragments((*(n for n in fragments.names if n != GCOV), GCOV))
    counting = replace(counting, wanted=(*counting.wanted, *profile.wanted))
    bench = CoverageBench(
        machine=machine,
        builder=_builder(
            run, tree, builder.make.compiler, counting, profile=profile, log="coverage/build.log", stage="coverage"
        ),
        seed=builder.make.build,
        wanted=counting.wanted,
        programs=job / "programs",
        job=job,
        run_dir=run.out,
        note=lambda t: run.progress.note("coverage", t),
    )
    return coverage(bench, applied, repo=tree.repo)


def _builder(
    run: Run,
    tree: Tree,
    tools: Compiler,
    fragments: Fragments,
    *,
    profile: Profile,
    log: str = "build.log",
    stage: str = "build",
) -> Builder:
    key = f"{fragments.key}-{tools.key}"
    make = Make(
        source=worktree(run.cache, tree),
        build=run.cache.dir("builds", tree.name, key),
        compiler=tools,
        ccache_dir=run.cache.dir("ccache"),
        log=run.out / log,
        extra=profile.make,
    )
    return Builder(
        make=make,
        store=run.cache.dir("artefacts", tree.name, key),
        on_progress=lambda text: run.progress.note(stage, text),
        headers=profile.headers,
    )


def _profiled(tools: Compiler, profile: Profile) -> Compiler:
    return replace(tools, path=f"{tools.path} {profile.cc_flags}") if profile.cc_flags else tools


def _must(value: T | None, reason: str) -> T:
    if value is None:
        raise _Stop(reason)
    return value


def generate_selftests(request: Request, cache: Cache) -> tuple[str, ...]:
    """Write the kselftest directory for the request's series into request.out; return the names of its programs.

    Raises UsageError when the series does not apply, or has nothing to do with perf sample types.
    """
    tree = get_tree(cache, request.tree)
    outcome = intake(request.source, stdin=request.stdin)
    if outcome.value is None:
        msg = f"{request.source}: {outcome.result.summary}"
        raise UsageError(msg)
    series, prerequisites = outcome.value, [_prerequisite(path) for path in request.prerequisites]
    base = choose_base(tree.repo, tree.name, series, rev=request.base, describe=tree.describe).value
    if base is None or request.out is None:
        msg = f"--tree {tree.name}: has no commit to generate for"
        raise UsageError(msg)
    scratch = cache.dir("scratch", f"generate-{os.getpid()}")
    done = apply(tree.repo, base, series, prerequisites, scratch=scratch, log=scratch / "apply.log")
    applied = done.value
    if applied is not None and applied.state is ApplyState.ALREADY_MERGED:
        applied = replace(applied, base_commit=base.commit, tip_commit=base.commit)
    if applied is None or not applied.tip_commit:
        msg = f"{request.source}: {done.result.summary}"
        raise UsageError(msg)
    return write_selftests(tree.repo, applied, series, request.out, every=request.every)
