"""Mutation: count how many wrong kernels the generated tests catch.

In: a Request for a series. Out: mutants.json, mutants.html and a MutationReport. The patched kernel gets one small
change at a time; a mutant is *killed* when its failed, crashed or missing cases differ from the patched kernel's, or
when the kernel complains or goes down, twice. One build holds every mutant that can be chosen at boot; the others are
built one by one.
"""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from reviewbot.builders import new_builder
from reviewbot.errors import InfraError, UsageError
from reviewbot.generate.csource import functions
from reviewbot.generate.evolved import evolved_lines
from reviewbot.generate.kselftest import FIRST
from reviewbot.generate.marks import Mark, parse_marks
from reviewbot.generate.mutants import NOT_KERNEL, Found, find_mutants
from reviewbot.model import Status
from reviewbot.mutate.campaign import MARKS, Campaign, Options, open_campaign, source_context, source_lines
from reviewbot.mutate.trial import Trial
from reviewbot.parse.added import added_lines
from reviewbot.report.mutants import MutationReport
from reviewbot.single import applied_series
from reviewbot.stages.configure import DEFAULT_FRAGMENTS, configure, load_fragments
from reviewbot.tools import mutation
from reviewbot.tools.git import git_bytes
from reviewbot.tools.guest import prepare_root
from reviewbot.tools.kselftest import compile_directory
from reviewbot.tools.make import compiler
from reviewbot.tools.programs import Bench
from reviewbot.tools.scope import write_selftests
from reviewbot.tools.specs import read_specs
from reviewbot.tools.tree import source_lock
from reviewbot.tools.vng import GUEST_CPUS, Machine

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from reviewbot.model import ApplyResult, Series
    from reviewbot.request import Request
    from reviewbot.tools.cache import Cache
    from reviewbot.tools.kernel import Builder, Kernel
    from reviewbot.tools.tree import Tree

    Note = Callable[[str], None]

_SAY_EVERY_S = 20.0


def mutate(request: Request, cache: Cache, options: Options, note: Note) -> tuple[MutationReport, Path]:
    """Try wrong kernels on the generated tests, and return the report and the directory that holds it.

    Raises UsageError when the series does not apply or gives no tests or no candidates, and InfraError when the patched
    kernel cannot be built or the kernel that holds the mutants does not behave as the patched one.
    """
    specs = read_specs(request.specs)
    tree, series, applied = applied_series(request, cache, cache.dir("scratch", f"mutate-{request.tree}"))
    out = _directory(request.out or Path("reports") / series.slug / "mutants")
    files, found = candidates(tree.repo, applied, series, options.functions)
    names = write_selftests(tree.repo, applied, series, out / "selftest", specs=specs, every=request.every)
    report = _report(tree, series, options, files=files, found=found)
    report = replace(report, key=_key(applied.tip_commit, out / "selftest", found))
    campaign = open_campaign(out, report, options, found.mutants, read_marks(request.source))
    with source_lock(cache, tree.name, note=note):
        builder, kernel = _patched(cache, tree, request, applied, out=out, note=note)
        bench = _bench(cache, request, applied, kernel, names=names, out=out, jobs=options.jobs)
        trial = Trial(
            campaign=campaign,
            bench=bench,
            builder=builder,
            repo=tree.repo,
            tip=applied.tip_commit,
            files=files,
            mutants={m.number: m for m in found.mutants},
            memory=cache.dir("mutants") / f"{applied.tip_commit}-{builder.store.name}.json",
            note=note,
        )
        trial.run(kernel)
    return campaign.save(), out


def list_mutants(request: Request, cache: Cache, options: Options) -> Campaign:
    """Return every candidate of a series with none of them tried; nothing is written, built or booted.

    Raises UsageError when the series does not apply or gives no candidates.
    """
    tree, series, applied = applied_series(request, cache, cache.dir("scratch", f"mutate-{request.tree}"))
    files, found = candidates(tree.repo, applied, series, options.functions)
    report = _report(tree, series, options, files=files, found=found)
    marks = read_marks(request.source)
    return open_campaign(Path(), report, replace(options, resume=False), found.mutants, marks)


def read_marks(source: str) -> tuple[Mark, ...]:
    """Return the marks of the equivalent.toml beside a series, or in it when it is a directory; none without one.

    Raises UsageError when the file cannot be read as such.
    """
    path = Path(source)
    place = (path if path.is_dir() else path.parent) / MARKS
    if source == "-" or not place.is_file():
        return ()
    try:
        return parse_marks(place.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        msg = f"{place}: {error}"
        raise UsageError(msg) from error


def _report(tree: Tree, series: Series, options: Options, *, files: dict[str, bytes], found: Found) -> MutationReport:
    return MutationReport(
        series=series.title,
        tree=f"{tree.name} {tree.describe}",
        key="",
        seed=options.seed,
        sample=options.sample,
        results=(),
        unread=found.unread,
        lines=source_lines(files, found.mutants),
        context=source_context(files, found.mutants),
    )


def _now_and_then(note: Note) -> Callable[[str], None]:
    # A build says something with every object; the terminal gets a line now and then.
    said = [time.monotonic()]

    def say(text: str) -> None:
        if time.monotonic() - said[0] > _SAY_EVERY_S:
            said[0] = time.monotonic()
            note(f"building: {text}")

    return say


def _directory(out: Path) -> Path:
    try:
        (out / "consoles").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        msg = f"--out {out}: {error.strerror}"
        raise UsageError(msg) from error
    return out.absolute()


def candidates(
    repo: Path, applied: ApplyResult, series: Series, whole: Sequence[str] = ()
) -> tuple[dict[str, bytes], Found]:
    """Return the touched files of the patched tree, and the mutants of the lines that the series adds to them.

    Where the tree has the series already, its lines are those that still stand as it added them. whole are FILE:NAME of
    functions of which every line counts. Raises UsageError when there is nothing to change, or no such function.
    """
    tip = applied.tip_commit
    if applied.base_commit == tip:
        files = mutation.read_files(repo, tip, sorted({path for patch in series.patches for path in patch.files}))
        added = evolved_lines([p.diff for p in series.patches], files)
    else:
        words = ("diff", "-U0", "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames")
        start = applied.prerequisite_commit or applied.base_commit
        diff = git_bytes(repo, *words, "--src-prefix=a/", "--dst-prefix=b/", start, tip)
        numbered = added_lines(diff.decode("utf-8", "replace"), leave_out=NOT_KERNEL)
        added = {path: frozenset(numbers) for path, numbers in numbered.items()}
        files = mutation.read_files(repo, tip, sorted(added))
    for word in whole:
        path, _, name = word.rpartition(":")
        files |= mutation.read_files(repo, tip, [path])
        lines = {n for f in functions(files.get(path, b"")) if f.name == name for n in range(f.first, f.last + 1)}
        if not lines:
            msg = f"--function {word}: the patched tree has no such function"
            raise UsageError(msg)
        added[path] = added.get(path, frozenset()) | lines
    found = find_mutants(files, added)
    if not found.mutants:
        msg = "the series adds no executable line to a C file"
        raise UsageError(msg)
    return files, found


def _key(tip: str, selftests: Path, found: Found) -> str:
    # The results hold for this text of the kernel and of the tests, and for these numbers of the mutants.
    digest = hashlib.sha256(tip.encode())
    for path in sorted(p for p in selftests.rglob("*") if p.is_file() and "output" not in p.parts):
        digest.update(str(path.relative_to(selftests)).encode() + b"\0" + path.read_bytes())
    digest.update("".join(m.ident for m in found.mutants).encode())
    return digest.hexdigest()[:24]


def _patched(
    cache: Cache, tree: Tree, request: Request, applied: ApplyResult, *, out: Path, note: Note
) -> tuple[Builder, Kernel]:
    # The kernel of the series as it is, with the configuration and the build directory of a review.
    fragments = load_fragments(request.fragments or DEFAULT_FRAGMENTS)
    builder = new_builder(
        cache,
        tree,
        applied.base_commit,
        fragments,
        compiler(),
        log=out / "build.log",
        on_progress=_now_and_then(note),
    )
    configured = configure(builder, applied.base_commit, fragments, out).result
    if configured.status is not Status.PASS:
        raise InfraError(configured.summary)
    note("building the patched kernel")
    attempt = builder.build(applied.tip_commit)
    if attempt.kernel is None:
        msg = f"the patched kernel does not build: {attempt.problem or attempt.output[-300:]}"
        raise InfraError(msg)
    return builder, attempt.kernel


def _bench(
    cache: Cache,
    request: Request,
    applied: ApplyResult,
    kernel: Kernel,
    *,
    names: tuple[str, ...],
    out: Path,
    jobs: int,
) -> Bench:
    programs = out / "programs"
    done = compile_directory(out / "selftest", programs, kernel.headers, out / "compile.log")
    if not done.ok:
        msg = f"the generated tests do not compile: {done.output[-500:]}"
        raise InfraError(msg)
    return Bench(
        machine=Machine(cache=cache, root=prepare_root(cache), cpus=_cpus(jobs), timeout_s=request.boot_timeout_s),
        names=names,
        first=FIRST,
        directory=programs,
        role="plain" if applied.base_commit == applied.tip_commit else "patched",
        job=cache.dir("jobs", f"mutate-{out.name}-{applied.tip_commit[:12]}"),
        logs=out / "consoles",
    )


def _cpus(jobs: int) -> int:
    # Two CPUs of a guest that share one of the machine wait for each other: a boot takes twice as long.
    return max(1, min(GUEST_CPUS, len(os.sched_getaffinity(0)) // jobs))
