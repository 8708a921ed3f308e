"""Stage order, what is skipped and why; results.json and index.html are saved after every stage.

In: a Request. Out: a Report, and the run directory with everything that was kept. A fault in the series is a result;
an InfraError ends its stage as ERROR; Ctrl-C leaves a report that says how far the run came. Anything else is a bug: it
is raised after the report was saved.
"""

from __future__ import annotations

import os
import platform
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from reviewbot.builders import new_builder
from reviewbot.errors import UsageError
from reviewbot.extras import Extras
from reviewbot.model import (
    ApplyResult,
    ApplyState,
    Outcome,
    Report,
    Series,
    Status,
)
from reviewbot.record import Run, Timings
from reviewbot.run import find
from reviewbot.run import run as run_program
from reviewbot.single import read_prerequisite, read_request
from reviewbot.stages.apply import apply
from reviewbot.stages.base import choose_base
from reviewbot.stages.boot import boot
from reviewbot.stages.build import build
from reviewbot.stages.check import check
from reviewbot.stages.configure import DEFAULT_FRAGMENTS, configure, load_fragments
from reviewbot.stages.prerequisites import Prerequisites, resolve
from reviewbot.stages.selftest import Bench, selftest
from reviewbot.tools.guest import prepare_root
from reviewbot.tools.make import compiler
from reviewbot.tools.specs import read_specs
from reviewbot.tools.tree import Tree, get_tree, other_repos, source_lock
from reviewbot.tools.vng import QEMU, Machine, has_kvm

if TYPE_CHECKING:
    from datetime import datetime

    from reviewbot.progress import Progress
    from reviewbot.request import Request
    from reviewbot.stages.configure import Fragments
    from reviewbot.tools.cache import Cache
    from reviewbot.tools.kernel import Kernels

T = TypeVar("T")
STAGES = ("intake", "base", "apply", "check", "configure", "build", "boot", "selftest", "variants")
ON_REQUEST = ("coverage", "debug")
OPTIONAL = ("variants", *ON_REQUEST)  # the answer stands without them
KEEP_DAYS = 7  # of shares and diffs that the commands in a report name


class _Stop(Exception):  # noqa: N818 - control flow of this module, not an error
    """The stages that remain do not run; its text is what their SKIP says. required: the answer lacks them."""

    def __init__(self, reason: str, *, required: bool = True) -> None:
        super().__init__(reason)
        self.required = required


def review(request: Request, cache: Cache, progress: Progress) -> tuple[Report, Path]:
    """Run a review and return its report and the directory that holds it.

    Raises UsageError, before anything is written, when the request cannot be used.
    """
    for name in ("jobs", "scratch"):
        cache.prune(name, KEEP_DAYS)
    specs = read_specs(request.specs)
    run = Run(request=request, cache=cache, progress=progress, timings=Timings(cache, request.tree), specs=specs)
    tree = get_tree(cache, request.tree)
    fragments = load_fragments(request.fragments or DEFAULT_FRAGMENTS)
    pool: list[Series] = []

    def read_all() -> Outcome[Series]:
        outcome, asked_for = read_request(request, tree)
        pool.extend(asked_for)
        return outcome

    read = run.timed("intake", read_all, announced=False)
    if read.value is None:
        raise UsageError(f"{request.source}: {read.result.summary}")
    series = read.value
    prerequisites = [read_prerequisite(path) for path in request.prerequisites]
    chosen = run.timed(
        "base",
        lambda: choose_base(
            tree.repo,
            tree.name,
            series,
            rev=request.base,
            describe=tree.describe,
            prerequisites=prerequisites,
            others=other_repos(cache, tree.name),
        ),
        announced=False,
    )
    run.series, run.base, run.out = series, chosen.value, _run_dir(request, series, run.stamp)
    run.stages += [read.result, chosen.result]
    try:
        _after_base(run, tree, prerequisites, pool, fragments)
    except _Stop as stop:
        asked = tuple(name for name in ON_REQUEST if getattr(request, name))
        names = (*STAGES, *asked)
        run.skip_rest(names, str(stop), optional=OPTIONAL if stop.required else names)
    except KeyboardInterrupt as stop:
        return run.save(stopped_by=str(stop) or "SIGINT"), run.out
    except BaseException:
        run.save(stopped_by="a bug in reviewbot")
        raise
    return run.save(finished=True), run.out


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


def _after_base(run: Run, tree: Tree, prerequisites: list[Series], pool: list[Series], fragments: Fragments) -> None:
    series, base = run.series, run.base
    if series is None or base is None:
        msg = "the tree has no commit to test on"
        raise _Stop(msg)
    scratch = run.cache.dir("scratch", f"{run.stamp:%Y%m%d-%H%M%S}-{os.getpid()}")
    run.machine += _machine()
    with source_lock(run.cache, tree.name, note=run.progress.message):
        found = Prerequisites(series=tuple(prerequisites))
        if series.prerequisites or prerequisites:
            look_up = run.stage(
                "prerequisites",
                lambda: resolve(tree.repo, base, series, prerequisites, pool=pool, inbox=run.request.inbox),
            )
            found = look_up or found
        run.applied = run.stage(
            "apply",
            lambda: apply(
                tree.repo,
                base,
                series,
                found.series,
                scratch=scratch,
                log=run.out / "apply.log",
                allow_fuzz=run.request.allow_fuzz,
                unmet=found.unmet,
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
            if all(_is_text(name) for patch in applied.patches for name in patch.files):
                msg = "not needed: only documentation is touched, no kernel is built from it"
                raise _Stop(msg, required=False)
        elif applied.state is ApplyState.ALREADY_MERGED:
            # What it does can still be tested: base has it.
            applied = replace(applied, base_commit=base.commit, prerequisite_commit=base.commit, tip_commit=base.commit)
        else:
            msg = f"not run: the series is not applied ({applied.state})"
            raise _Stop(msg)
        _build_and_test(run, tree, series, applied, fragments)


def _machine() -> list[tuple[str, str]]:
    # What a result depends on beside the kernels, as the programs name themselves.
    qemu = run_program([QEMU, "--version"], timeout_s=30).stdout.split("\n")[0] if find(QEMU) else ""
    return [
        ("machine", f"{platform.machine()}, {len(os.sched_getaffinity(0))} CPUs"),
        ("KVM", "yes" if has_kvm() else "no, emulated (TCG)"),
        ("qemu", qemu or "not installed"),
        ("virtme-ng", metadata.version("virtme-ng")),
        ("Python", platform.python_version()),
    ]


def _is_text(name: str) -> bool:
    # Device tree bindings and Kconfig help live elsewhere or have checks of their own; this is prose alone.
    return name.startswith(("Documentation/", "LICENSES/")) or name in ("MAINTAINERS", "CREDITS", "README", ".mailmap")


def _build_and_test(run: Run, tree: Tree, series: Series, applied: ApplyResult, fragments: Fragments) -> None:
    tools = compiler()
    run.machine += [("compiler", tools.version), ("linker", tools.linker), ("ccache", tools.ccache or "no")]
    builder = new_builder(
        run.cache,
        tree,
        applied.base_commit,
        fragments,
        tools,
        log=run.out / "build.log",
        on_progress=lambda text: run.progress.note("build", text),
    )
    run.stage("configure", lambda: configure(builder, applied.base_commit, fragments, run.out))
    if run.stages[-1].status is not Status.PASS:
        msg = "not run: configure did not finish"
        raise _Stop(msg)
    cached = all(builder.cached(commit) for commit in (applied.base_commit, applied.tip_commit))
    built = run.stage("build", lambda: build(builder, applied, run.out), cached=cached)
    kernels: Kernels = _must(built, "not run: no kernel to boot")
    machine = Machine(cache=run.cache, root=prepare_root(run.cache), timeout_s=run.request.boot_timeout_s)
    job = run.cache.dir("jobs", f"{run.stamp:%Y%m%d-%H%M%S}-{os.getpid()}")
    base_console: str = _must(
        run.stage("boot", lambda: boot(machine, kernels.base, kernels.patched, job, run.out)),
        "not run: base and patched have to boot first",
    )
    bench = Bench(
        machine=machine,
        builder=builder,
        job=job,
        run_dir=run.out,
        note=lambda t: run.progress.note("selftest", t),
        specs=run.specs,
    )
    run.stage(
        "selftest",
        lambda: selftest(
            bench,
            kernels,
            applied,
            repo=tree.repo,
            series=series,
            base_console=base_console,
            every=run.request.every,
        ),
    )
    more = Extras(run=run, tree=tree, tested=bench, kernels=kernels, applied=applied, fragments=fragments)
    run.stage("variants", more.variants, required=False)
    if run.request.coverage:
        run.stage("coverage", more.coverage, required=False)
    if run.request.debug:
        run.stage("debug", more.debug, required=False)


def _must(value: T | None, reason: str) -> T:
    if value is None:
        raise _Stop(reason)
    return value
