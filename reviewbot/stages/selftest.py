"""Stage selftest: generate tests for the sample types of the series and run them on base and on patched.

In: the two kernels, the UAPI headers of both and the series' diff. Out: a case for each test with its status on either
kernel. What fails runs again on both before it is called introduced; where it could come from a prerequisite, it runs
on the prerequisites' tip too. The kernel's own complaints while the tests ran count from the first time.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from reviewbot.errors import InfraError
from reviewbot.findings.causes import case_findings, without_records
from reviewbot.findings.compare import Run, compare_cases, unsettled
from reviewbot.findings.drivers import unreached_drivers
from reviewbot.findings.explain import explain
from reviewbot.findings.splats import splat_findings, tail
from reviewbot.findings.tally import tally
from reviewbot.generate.kselftest import DIRECTORY, programs, render_kselftest
from reviewbot.generate.rules import Tree, rules_for
from reviewbot.generate.skeleton import render_spec
from reviewbot.model import ApplyResult, Blame, Case, Finding, Log, Origin, Outcome, Series, StageResult, Status
from reviewbot.parse.diagnostics import parse_build
from reviewbot.parse.uapi import UapiError
from reviewbot.tools.guest import read_result
from reviewbot.tools.kselftest import compile_directory, rules_tree, write_directory
from reviewbot.tools.patched import patched_files
from reviewbot.tools.programs import boot_programs, case_command, read_programs
from reviewbot.tools.reproducers import write_reproducers
from reviewbot.tools.scope import HEADER, read_scope
from reviewbot.tools.vng import Boot, Ending

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from reviewbot.generate.scope import Scope
    from reviewbot.generate.spec import Specs
    from reviewbot.generate.writers import PatchedFile
    from reviewbot.tools.kernel import Builder, Kernel, Kernels
    from reviewbot.tools.vng import Machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What running tests needs: the machine, a builder for the prerequisites' tip, the specs, and where things go."""

    machine: Machine
    builder: Builder
    job: Path
    run_dir: Path
    note: Callable[[str], None]
    specs: Specs


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pass:
    # One boot with all programs.
    run: Run
    boot: Boot


def selftest(
    bench: Bench,
    kernels: Kernels,
    applied: ApplyResult,
    *,
    repo: Path,
    series: Series,
    base_console: str,
    every: bool = False,
) -> Outcome[tuple[Case, ...]]:
    """Generate, compile and run the tests; the value is the cases.

    base_console is what base said without a test: its complaints are not new. every asks for every sample type.
    """
    try:
        scope = read_scope(repo, applied, series, bench.specs, every=every)
    except UapiError as error:
        return _skipped(f"the tree's {HEADER} cannot be read: {error}", required=every)
    if scope.empty:
        return _skipped(
            "nothing to generate: the series adds and touches no perf sample type, record or bit of them",
            required=False,
        )
    names = programs(scope, bench.specs)
    sources = bench.run_dir / "selftest" / DIRECTORY
    write_directory(sources, render_kselftest(scope, bench.specs))
    log = bench.run_dir / "selftest" / "compile.log"
    log.unlink(missing_ok=True)
    done = compile_directory(sources, bench.job / "programs", kernels.patched.headers, log)
    if not done.ok:
        if problem := parse_build(done.output, failed=True).infra:
            raise InfraError(problem)
        return _does_not_compile(done.command, done.output)
    session = _Session(
        bench=bench,
        kernels=kernels,
        applied=applied,
        scope=scope,
        names=names,
        base_console=base_console,
        tree=rules_tree(repo, applied.tip_commit, HEADER, series),
        files=patched_files(repo, applied, series),
    )
    session.commands.append(done.command)
    return session.outcome()


@dataclass(slots=True, kw_only=True)
class _Session:
    # The boots of one stage, and what comes of them.
    bench: Bench
    kernels: Kernels
    applied: ApplyResult
    scope: Scope
    names: tuple[str, ...]
    base_console: str
    tree: Tree
    files: tuple[PatchedFile, ...]
    commands: list[str] = field(default_factory=list)
    logs: list[Log] = field(default_factory=list)
    passes: dict[str, list[_Pass]] = field(default_factory=lambda: {"base": [], "patched": [], "prerequisite": []})

    def outcome(self) -> Outcome[tuple[Case, ...]]:
        same = self.kernels.base.commit == self.kernels.patched.commit
        self.boot("base", self.kernels.base, "plain" if same else "base")
        if same:
            self.passes["patched"] = self.passes["base"]
        else:
            self.boot("patched", self.kernels.patched, "patched")
            if unsettled(self.passes["base"][0].run, self.passes["patched"][0].run):
                self.boot("patched", self.kernels.patched, "patched")
                self.boot("base", self.kernels.base, "base")
        cases = self.blame(compare_cases(self.runs("base"), self.runs("patched")))
        cases = explain(cases, rules_for(self.bench.specs), self.tree)
        cases = tuple(
            replace(c, reproduce=case_command(c.name)) if c.patched in (Status.FAIL, Status.WARN) else c for c in cases
        )
        findings = (*self.findings(), *self.reproducible(cases))
        cases = tuple(map(without_records, cases))
        bad = [p.boot for p in self.passes["patched"] if p.boot.ending is not Ending.FINISHED]
        status, summary = tally(cases, findings, programs=len(self.names), finished=not bad)
        skeletons = self.skeletons()
        result = StageResult(
            stage="selftest",
            status=status,
            summary=summary,
            findings=findings,
            cases=cases,
            facts=self.facts(),
            commands=tuple(self.commands),
            logs=tuple(self.logs),
            excerpt=tail(bad[0].console) if bad else skeletons,
        )
        return Outcome(result=result, value=cases)

    def runs(self, side: str) -> list[Run]:
        return [p.run for p in self.passes[side]]

    def boot(self, side: str, kernel: Kernel, role: str) -> None:
        """Boot kernel with every program, and read what they left."""
        number = len(self.passes[side]) + 1
        self.bench.note(f"{side}, run {number}")
        share = self.bench.job / f"selftest-{side}-{number}"
        log = self.bench.run_dir / "selftest" / f"console-{side}-{number}.log"
        boot = boot_programs(
            self.bench.machine,
            kernel.image,
            self.names,
            directory=self.bench.job / "programs",
            role=role,
            share=share,
            log=log,
        )
        self.commands.append(boot.command)
        self.logs.append(Log(title=f"console of {side}, run {number}", path=f"selftest/{log.name}"))
        self.passes[side].append(_Pass(run=self.read(share, side, number), boot=boot))

    def read(self, share: Path, side: str, number: int) -> Run:
        for name in self.names:
            ktap = read_result(share, f"{name}.ktap")
            if ktap is not None:
                path = self.bench.run_dir / "selftest" / f"{name}-{side}-{number}.ktap"
                path.write_text(ktap, encoding="utf-8")
                self.logs.append(Log(title=f"{name} on {side}, run {number}", path=f"selftest/{path.name}"))
        return read_programs(share, self.names)

    def blame(self, cases: tuple[Case, ...]) -> tuple[Case, ...]:
        """Run the prerequisites' tip for what base can run and patched fails: it may be theirs."""
        applied = self.applied
        if applied.prerequisite_commit in ("", applied.base_commit):
            return cases
        if any(c.origin is Origin.FIXED for c in cases):
            # Whose repair it is would take a third kernel to tell, and breaks nothing.
            cases = tuple(
                replace(c, blame=Blame.UNKNOWN, reason=f"{c.reason}; repaired by a prerequisite or by the series")
                if c.origin is Origin.FIXED
                else c
                for c in cases
            )
        doubtful = {c.name for c in cases if c.counts and c.base is Status.PASS}
        if not doubtful:
            return cases
        self.bench.note("building the prerequisites' tip")
        kernel = self.bench.builder.build(applied.prerequisite_commit).kernel
        if kernel is None:
            return cases
        self.boot("prerequisite", kernel, "plain")
        seen = self.passes["prerequisite"][0].run
        theirs = {n for n in doubtful if n in seen and seen[n].status in (Status.FAIL, Status.ERROR)}
        return tuple(
            replace(c, blame=Blame.PREREQUISITE, reason=f"{c.reason}; fails with the prerequisites alone")
            if c.name in theirs
            else c
            for c in cases
        )

    def findings(self) -> tuple[Finding, ...]:
        """Splats of the kernels while the tests ran, a guest that did not come to its end, what no test can reach."""
        before = [self.base_console, *(p.boot.console for p in self.passes["base"])]
        found = list(splat_findings(before, [p.boot.console for p in self.passes["patched"]]))
        for done in self.passes["patched"]:
            if done.boot.ending not in (Ending.FINISHED, Ending.PANIC):
                found.append(_ending(done.boot, self.passes["base"]))
                break
        touched = (f for patch in self.applied.patches if patch.role is Blame.SERIES for f in patch.files)
        return (*found, *unreached_drivers(touched, self.base_console))

    def reproducible(self, cases: tuple[Case, ...]) -> tuple[Finding, ...]:
        """Return what the cases found, with the lines that write it and programs that show it."""
        found = case_findings(cases, rules_for(self.bench.specs), self.bench.specs, self.files)
        patched = self.kernels.patched
        return write_reproducers(
            self.bench.run_dir, found, cases, scope=self.scope, specs=self.bench.specs, patched=patched
        )

    def skeletons(self) -> str:
        """Write a spec to begin with for all in scope that has none, and return their text."""
        texts = []
        begun = [(s.name, render_spec(s)) for s in self.scope.provisional if s.name in self.scope.unverified]
        begun += [(part.name, part.skeleton) for part in self.scope.parts if part.skeleton]
        for name, text in begun:
            path = self.bench.run_dir / "selftest" / "specs" / f"{name.removeprefix('PERF_SAMPLE_').lower()}.toml"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
            self.logs.append(Log(title=f"spec of {name} to begin with", path=f"selftest/specs/{path.name}"))
            texts.append(text)
        return "\n".join(texts)

    def facts(self) -> tuple[tuple[str, str], ...]:
        types = ", ".join(f"{t.name} ({t.value:#x}): {t.why}" for t in self.scope.types)
        endings = [
            (f"{side}, run {n}", f"{p.boot.ending} after {p.boot.duration_s:.1f} s")
            for side, passes in self.passes.items()
            for n, p in enumerate(passes, 1)
        ]
        begin = "a spec to begin with is in selftest/specs; --specs DIR takes yours"
        unverified = [("payload not verified (no spec)", f"{', '.join(self.scope.unverified)}; {begin}")]
        parts = [(str(part.kind), part.line) for part in self.scope.parts]
        notes = [("note", note) for note in self.scope.notes]
        return (("sample types", types), *(unverified if self.scope.unverified else []), *parts, *notes, *endings)


def _ending(boot: Boot, base: list[_Pass]) -> Finding:
    also = any(p.boot.ending is boot.ending for p in base)
    words = {Ending.STUCK: "the guest hangs while the tests run", Ending.LOST: "the guest is lost while the tests run"}
    return Finding(
        title=words.get(boot.ending, f"the guest ends early: {boot.ending}"),
        severity=Status.WARN if also else Status.FAIL,
        origin=Origin.PRE_EXISTING if also else Origin.INTRODUCED,
        blame=Blame.BASE if also else Blame.SERIES,
        excerpt=tail(boot.console),
        reproduce=boot.command,
    )


def _skipped(reason: str, *, required: bool) -> Outcome[tuple[Case, ...]]:
    return Outcome(result=StageResult(stage="selftest", status=Status.SKIP, summary=reason, required=required))


def _does_not_compile(command: str, output: str) -> Outcome[tuple[Case, ...]]:
    result = StageResult(
        stage="selftest",
        status=Status.ERROR,
        summary="the generated tests do not compile against patched's headers",
        commands=(command,),
        excerpt=output[-4000:],
    )
    return Outcome(result=result)
