"""The generated tests on a tree as it is: no series, one kernel, one boot or several.

In: a tree, a revision and a number of runs. Out: what each run reported, and a directory with the tests, their KTAP and
the consoles. A case that fails here shows a fault of the kernel or of the test: there is no base to compare with.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reviewbot.builders import new_builder
from reviewbot.errors import InfraError, UsageError
from reviewbot.generate.kselftest import programs, render_kselftest
from reviewbot.model import Status
from reviewbot.report.clean import one_line
from reviewbot.stages.configure import DEFAULT_FRAGMENTS, configure, load_fragments
from reviewbot.tools.git import git
from reviewbot.tools.guest import prepare_root, read_result
from reviewbot.tools.kselftest import compile_directory, write_directory
from reviewbot.tools.make import compiler
from reviewbot.tools.programs import boot_programs, read_programs
from reviewbot.tools.scope import read_plain_scope
from reviewbot.tools.specs import read_specs
from reviewbot.tools.tree import get_tree, source_lock
from reviewbot.tools.vng import Ending, Machine

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from reviewbot.findings.compare import Run
    from reviewbot.tools.cache import Cache
    from reviewbot.tools.kernel import Kernel
    from reviewbot.tools.tree import Tree

    Note = Callable[[str], None]

BAD = (Status.FAIL, Status.ERROR)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainRun:
    """One boot with every program: the cases, and how it ended."""

    cases: Run
    ending: Ending
    duration_s: float

    @property
    def bad(self) -> frozenset[str]:
        """Names of the cases that failed or did not end."""
        return frozenset(name for name, seen in self.cases.items() if seen.status in BAD)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainReport:
    """The runs of one kernel; release is its version."""

    release: str
    runs: tuple[PlainRun, ...]

    @property
    def finished(self) -> bool:
        """True when every boot came to the end of the tests."""
        return all(run.ending is Ending.FINISHED for run in self.runs)

    @property
    def bad(self) -> frozenset[str]:
        """Names of the cases that failed in any run."""
        return frozenset().union(*(run.bad for run in self.runs))


def run_plain(
    tree_name: str,
    cache: Cache,
    out: Path,
    *,
    rev: str = "",
    runs: int = 1,
    fragments: Sequence[str] = (),
    spec_dirs: Sequence[Path] = (),
    note: Note,
) -> PlainReport:
    """Build rev of the tree (its head when empty), boot it runs times with the tests of every sample type.

    spec_dirs hold specs of the user's own.
    Raises UsageError for a tree, revision or directory that cannot be used, InfraError when there is no kernel to boot.
    """
    specs = read_specs(spec_dirs)
    tree = get_tree(cache, tree_name)
    commit = _commit(tree, rev)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        msg = f"--out {out}: {error.strerror}"
        raise UsageError(msg) from error
    out = out.absolute()
    with source_lock(cache, tree.name, note=note):
        kernel = _kernel(cache, tree, commit, fragments=fragments or DEFAULT_FRAGMENTS, out=out, note=note)
        scope = read_plain_scope(tree.repo, commit, specs)
    names = programs(scope, specs)
    write_directory(out / "selftest", render_kselftest(scope, specs))
    job = cache.dir("jobs", f"plain-{tree.name}-{commit[:12]}")
    done = compile_directory(out / "selftest", job / "programs", kernel.headers, out / "compile.log")
    if not done.ok:
        msg = f"the generated tests do not compile: {done.output[-500:]}"
        raise InfraError(msg)
    machine = Machine(cache=cache, root=prepare_root(cache))
    made = []
    for number in range(1, runs + 1):
        note(f"{kernel.release}, run {number} of {runs}")
        made.append(_boot(machine, kernel, names, job=job, out=out / f"run-{number}"))
    return PlainReport(release=kernel.release, runs=tuple(made))


def _commit(tree: Tree, rev: str) -> str:
    if not rev:
        return tree.head
    found = git(tree.repo, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{rev}^{{commit}}")
    if not found.ok:
        msg = f"--base {rev}: no such commit in tree {tree.name}"
        raise UsageError(msg)
    return found.stdout.strip()


def _kernel(cache: Cache, tree: Tree, commit: str, *, fragments: Sequence[str], out: Path, note: Note) -> Kernel:
    wanted = load_fragments(fragments)
    builder = new_builder(
        cache, tree, commit, wanted, compiler(), log=out / "build.log", on_progress=lambda _objects: None
    )
    if kernel := builder.cached(commit):
        return kernel
    configured = configure(builder, commit, wanted, out).result
    if configured.status is not Status.PASS:
        raise InfraError(configured.summary)
    note("building the kernel")
    attempt = builder.build(commit)
    if attempt.kernel is None:
        msg = f"the kernel does not build: {attempt.problem or attempt.output[-300:]}"
        raise InfraError(msg)
    return attempt.kernel


def _boot(machine: Machine, kernel: Kernel, names: tuple[str, ...], *, job: Path, out: Path) -> PlainRun:
    # One boot; its KTAP and console stay in out.
    share = job / out.name
    shutil.rmtree(share, ignore_errors=True)
    out.mkdir(exist_ok=True)
    boot = boot_programs(
        machine,
        kernel.image,
        names,
        directory=job / "programs",
        role="plain",
        share=share,
        log=out / "console.log",
    )
    if boot.ending is Ending.NO_START:
        msg = f"qemu did not start: {boot.detail}"
        raise InfraError(msg)
    for name in names:
        (out / f"{name}.ktap").write_text(read_result(share, f"{name}.ktap") or "", encoding="utf-8")
    return PlainRun(cases=read_programs(share, names), ending=boot.ending, duration_s=boot.duration_s)


def render_plain(report: PlainReport) -> str:
    """Return lines of text: one a run, then each case that failed in any of them with its k of n and its reason."""
    total = len(report.runs)
    lines = [f"{report.release}: {total} run{'s' if total != 1 else ''}"]
    for number, run in enumerate(report.runs, 1):
        count = {status: sum(1 for seen in run.cases.values() if seen.status is status) for status in Status}
        tally = f"{len(run.cases)} cases: {count[Status.PASS]} pass, {len(run.bad)} fail, {count[Status.SKIP]} skipped"
        lines.append(f"  run {number}: {run.ending} after {run.duration_s:.0f} s; {tally}")
    for name in sorted(report.bad):
        seen = [run.cases[name] for run in report.runs if name in run.bad]
        lines.append("  " + one_line(f"{name}: fails in {len(seen)} of {total}: {seen[0].reason}", 400))
    return "\n".join(lines) + "\n"
