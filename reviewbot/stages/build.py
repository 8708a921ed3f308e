"""Stage build: base first, then each patch of the series, incrementally, in one persistent build directory.

In: a Builder and what apply made. Out: the base and the patched kernel. Compiler diagnostics become findings after a
comparison with base; what the prerequisites brought along is told apart by building their tip too, when it matters.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from reviewbot.model import ApplyResult, Blame, Finding, Log, Origin, Outcome, StageResult, Status
from reviewbot.parse.diagnostics import Diagnostic, compare
from reviewbot.tools.kernel import Kernels

if TYPE_CHECKING:
    from pathlib import Path

    from reviewbot.tools.kernel import Attempt, Builder

EACH_PATCH_LIMIT = 20
_EXCERPT_CHARS = 4000
_NOT_COMPILED = " was not compiled: nothing of it is in this configuration"


def build(builder: Builder, applied: ApplyResult, run_dir: Path) -> Outcome[Kernels]:
    """Build base and patched and compare what the compiler said."""
    base = builder.build(applied.base_commit)
    log = Log(title="build", path=str(builder.make.log.relative_to(run_dir)))
    if base.kernel is None:
        return Outcome(result=_base_broken(base, log, builder.recipe(applied.base_commit)))
    steps = _steps(builder, applied)
    tip = steps[-1][1]
    seen = tuple(d for d in tip.diagnostics if _identity(d) not in {_identity(x) for x in base.diagnostics})
    before = _prerequisite_diagnostics(builder, applied) if seen or tip.kernel is None else ()
    findings = (*_findings(base, tip, before, applied), *_bisection(steps))
    if tip.kernel is not None:
        findings += _not_compiled(builder, applied)
    blamed = any(f.counts and f.severity is Status.FAIL for f in findings)
    status = Status.PASS
    if tip.kernel is None:
        status = Status.ERROR if tip.problem or not blamed else Status.FAIL
        summary = f"patched does not build: {tip.problem or _first_error(tip)}"
    elif any(f.counts and f.severity is not Status.PASS for f in findings):
        status = Status.FAIL if blamed else Status.WARN
        summary = _doubts(findings)
    else:
        same = applied.tip_commit == applied.base_commit
        summary = "base builds" if same else "base and patched build; nothing new from the compiler"
    result = StageResult(
        stage="build",
        status=status,
        summary=summary,
        findings=findings,
        facts=_facts(base, tip),
        commands=tuple(builder.recipe(c) for c in dict.fromkeys((applied.base_commit, applied.tip_commit))),
        logs=(log,),
        excerpt="" if tip.kernel else _error_excerpt(tip),
    )
    value = Kernels(base=base.kernel, patched=tip.kernel) if tip.kernel else None
    return Outcome(result=result, value=value)


def _steps(builder: Builder, applied: ApplyResult) -> list[tuple[str, Attempt]]:
    # (subject, attempt) of each series commit; the last one is the tip.
    commits = [p for p in applied.patches if p.role is Blame.SERIES]
    if not commits:  # base has the series already
        return [("", builder.build(applied.tip_commit))]
    chosen = commits if len(commits) <= EACH_PATCH_LIMIT else commits[-1:]
    if builder.cached(applied.tip_commit) and len(chosen) == 1:
        return [(chosen[0].subject, builder.build(applied.tip_commit))]
    return [(p.subject, builder.build(p.commit)) for p in chosen]


def _prerequisite_diagnostics(builder: Builder, applied: ApplyResult) -> tuple[Diagnostic, ...]:
    if applied.prerequisite_commit in ("", applied.base_commit):
        return ()
    return builder.build(applied.prerequisite_commit).diagnostics


def _identity(diagnostic: Diagnostic) -> object:
    return diagnostic.identity


def _findings(
    base: Attempt, tip: Attempt, prerequisite: tuple[Diagnostic, ...], applied: ApplyResult
) -> tuple[Finding, ...]:
    introduced, pre_existing, fixed = compare(base.diagnostics, tip.diagnostics)
    known = Counter(_identity(d) for d in prerequisite)
    touched = {name for p in applied.patches for name in p.files}
    found = []
    for diagnostic in introduced:
        blame = Blame.SERIES
        if known[_identity(diagnostic)] > 0:
            known[_identity(diagnostic)] -= 1
            blame = Blame.PREREQUISITE
        found.append(_finding(diagnostic, Origin.INTRODUCED, blame))
    found += [_finding(d, Origin.PRE_EXISTING, Blame.BASE) for d in pre_existing if d.file in touched]
    if tip.kernel is not None:  # what a build did not come to is not fixed by it
        found += [_finding(d, Origin.FIXED, Blame.SERIES) for d in fixed]
    return tuple(found)


def _finding(diagnostic: Diagnostic, origin: Origin, blame: Blame) -> Finding:
    severity = Status.FAIL if diagnostic.kind == "error" else Status.WARN
    return Finding(
        title=f"{diagnostic.kind}: {diagnostic.text}" + (f" [{diagnostic.flag}]" if diagnostic.flag else ""),
        severity=severity if origin is Origin.INTRODUCED else Status.PASS,
        origin=origin,
        blame=blame,
        file=diagnostic.file,
        function=diagnostic.function,
        line=diagnostic.line,
        excerpt=diagnostic.excerpt[:_EXCERPT_CHARS],
    )


def _bisection(steps: list[tuple[str, Attempt]]) -> tuple[Finding, ...]:
    # A patch that does not build although the series as a whole does: git bisect will stop there.
    if steps[-1][1].kernel is None:
        return ()
    total = len(steps)
    return tuple(
        Finding(
            title=f"patch {n}/{total} breaks the build; a later patch repairs it: {subject}",
            severity=Status.WARN,
            origin=Origin.INTRODUCED,
            excerpt=_error_excerpt(attempt),
            rule="each patch of a series builds (Documentation/process/submitting-patches.rst, Separate your changes)",
        )
        for n, (subject, attempt) in enumerate(steps, 1)
        if attempt.kernel is None
    )


def _not_compiled(builder: Builder, applied: ApplyResult) -> tuple[Finding, ...]:
    names = sorted({n for p in applied.patches if p.role is Blame.SERIES for n in p.files if n.endswith((".c", ".S"))})
    if builder.cached(applied.tip_commit) and not (builder.make.build / "vmlinux").exists():
        return ()
    absent = [name for name in names if not (builder.make.build / name).with_suffix(".o").exists()]
    # Absence never passes: when no source file of the series was compiled, a reader has to know.
    nothing = bool(absent) and len(absent) == len(names)
    return tuple(
        Finding(
            title=f"{name}{_NOT_COMPILED}",
            severity=Status.WARN if nothing else Status.PASS,
            origin=Origin.INTRODUCED,
            file=name,
        )
        for name in absent
    )


def _doubts(findings: tuple[Finding, ...]) -> str:
    counted = [f for f in findings if f.counts and f.severity is not Status.PASS]
    absent = [f for f in counted if f.title.endswith(_NOT_COMPILED)]
    broken = [f for f in counted if f.title.startswith("patch ")]
    rest = [f for f in counted if f not in absent and f not in broken]
    parts = [f"the series introduces {_amount(rest)}"] if rest else []
    parts += [f.title.split(";")[0] for f in broken]
    parts += ["no source file of the series was compiled in this configuration"] if absent else []
    return "both build; " + "; ".join(parts)


def _base_broken(base: Attempt, log: Log, recipe: str) -> StageResult:
    return StageResult(
        stage="build",
        status=Status.ERROR,
        summary=f"the machine failed: {base.problem}"
        if base.problem
        else f"base is broken, it does not build: {_first_error(base)}",
        findings=tuple(_finding(d, Origin.PRE_EXISTING, Blame.BASE) for d in base.diagnostics if d.kind == "error"),
        excerpt=_error_excerpt(base),
        commands=(recipe,),
        logs=(log,),
    )


def _first_error(attempt: Attempt) -> str:
    for diagnostic in attempt.diagnostics:
        if diagnostic.kind == "error":
            return f"{diagnostic.file}:{diagnostic.line}: {diagnostic.text}"
    return "make failed; its last lines are in the report"


def _error_excerpt(attempt: Attempt) -> str:
    for diagnostic in attempt.diagnostics:
        if diagnostic.kind == "error" and diagnostic.excerpt:
            return diagnostic.excerpt[:_EXCERPT_CHARS]
    return attempt.output[-_EXCERPT_CHARS:]


def _amount(findings: list[Finding]) -> str:
    errors = sum(1 for f in findings if f.severity is Status.FAIL)
    warnings = sum(1 for f in findings if f.severity is Status.WARN)
    parts = [f"{n} {word}{'s' if n != 1 else ''}" for n, word in ((errors, "error"), (warnings, "warning")) if n]
    return " and ".join(parts)


def _facts(base: Attempt, tip: Attempt) -> tuple[tuple[str, str], ...]:
    facts = []
    for name, attempt in (("base", base), ("patched", tip)):
        if attempt.kernel is None:
            facts.append((name, "does not build"))
        elif attempt.kernel.cached:
            facts.append((name, f"{attempt.kernel.release}, from the cache"))
        else:
            facts.append(
                (name, f"{attempt.kernel.release}, {attempt.kernel.objects} objects in {attempt.duration_s:.0f} s")
            )
    return tuple(facts)
