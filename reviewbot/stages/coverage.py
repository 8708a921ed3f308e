"""Stage coverage: which added lines of the series ran under the generated tests.

In: the compiled tests, the patched build directory, and what apply made. Out: a note for each function with added
lines that no test ran. The kernel is built in a directory of its own with counters in the touched objects alone: they
make it bigger and slower, so no pass or fail is taken from it. The first build of a tree compiles everything: debugfs
and constructors change nearly every object. Later ones compile what differs.
"""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from reviewbot.model import ApplyResult, Finding, Log, Origin, Outcome, StageResult, Status
from reviewbot.parse.added import added_lines
from reviewbot.parse.coverage import AddedLine, LineKind, classify
from reviewbot.parse.gcov import parse_preprocessed
from reviewbot.tools.gcov import collect_script, make_variables, objects_of, read_counters, reset_test
from reviewbot.tools.git import git_bytes
from reviewbot.tools.guest import GuestTest, read_result
from reviewbot.tools.programs import PROGRESS
from reviewbot.tools.vng import Boot, Ending

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from reviewbot.parse.gcov import Counters
    from reviewbot.tools.extra import Extra

STAGE = "coverage"
PROGRAM_TIMEOUT_S = 300
_EXCERPT_LINES = 60


def coverage(bench: Extra, applied: ApplyResult, *, repo: Path, patched: Path) -> Outcome[tuple[AddedLine, ...]]:
    """Measure the lines that the series adds; the value is all of them. Nothing here is required of a run.

    bench has the instrumented kernel; patched is the build directory of the plain one, which tells what objects there
    are.
    """
    if applied.prerequisite_commit in ("", applied.tip_commit):
        return _skipped("the tree has the series already: no line of it is new")
    diff = git_bytes(
        repo,
        *("diff", "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "-U0"),
        *("--src-prefix=a/", "--dst-prefix=b/", applied.prerequisite_commit, applied.tip_commit),
    )
    added = added_lines(diff.decode("utf-8", "replace"))
    if not added:
        return _skipped("the series adds no line of C")
    if not bench.names:
        return _skipped("no test was compiled")
    return _Measurement(
        bench=bench, applied=applied, repo=repo, patched=patched, added=added, names=bench.names
    ).outcome()


@dataclass(slots=True, kw_only=True)
class _Measurement:
    bench: Extra
    applied: ApplyResult
    repo: Path
    patched: Path
    added: dict[str, tuple[int, ...]]
    names: tuple[str, ...]
    objects: tuple[str, ...] = ()
    commands: list[str] = field(default_factory=list)
    logs: list[Log] = field(default_factory=list)
    facts: list[tuple[str, str]] = field(default_factory=list)

    def outcome(self) -> Outcome[tuple[AddedLine, ...]]:
        (self.bench.run_dir / STAGE).mkdir(exist_ok=True)
        if problem := self.build():
            return self.error(problem)
        if not self.objects:
            return _skipped("nothing that the series touches is compiled in this configuration")
        boot, share = self.boot()
        if boot.ending is not Ending.FINISHED:
            return self.error(f"the instrumented kernel's boot ended early: {boot.ending} {boot.detail}".rstrip())
        source = self.bench.builder.make.source
        log = self.bench.run_dir / STAGE / "gcov.log"
        counters, silent, calls = read_counters(
            self.objects, self.bench.builder.make.build, share, self.bench.job / "gcov", log, source=source
        )
        self.commands += [c.command for c in calls[:1]]
        if silent:
            self.facts.append(("no counters from", ", ".join(silent)))
        if len(silent) == len(self.objects):
            return self.error("the guest left no counters")
        lines = self.classify(counters)
        return Outcome(result=self.result(lines), value=lines)

    def build(self) -> str:
        """Build the instrumented kernel; return what went wrong, or an empty string."""
        bench, make = self.bench, self.bench.builder.make
        bench.builder.checkout(self.applied.tip_commit)
        wished = objects_of(tuple(self.added), self.patched) or tuple(n for n in self.added if n.endswith(".c"))
        builder = replace(bench.builder, make=replace(make, extra=(*make.extra, *make_variables(wished))))
        bench.note("configuring")
        configured = builder.configure(bench.wanted)
        self.logs.append(Log(title="build", path=str(make.log.relative_to(bench.run_dir))))
        if not configured.done.ok:
            return "the instrumented kernel cannot be configured; make's words are in the log"
        if lost := configured.lost:
            return "not in the .config of the instrumented kernel: " + ", ".join(m.wanted.symbol for m in lost)
        bench.note("building")
        done = builder.make("bzImage")
        self.commands.append(done.command)
        self.facts.append(("instrumented build", f"{done.duration_s:.0f} s"))
        if not done.ok:
            return "the instrumented kernel does not build; make's words are in the log"
        self.objects = tuple(
            n for n in objects_of(tuple(self.added), make.build) if (make.build / n).with_suffix(".gcno").exists()
        )
        builder.make(*(n.removesuffix(".o") + ".i" for n in self.objects))
        self.facts.append(("instrumented objects", ", ".join(self.objects) or "none"))
        return ""

    def boot(self) -> tuple[Boot, Path]:
        bench = self.bench
        bench.note("running the tests")
        share = bench.job / STAGE
        reset = reset_test(share)
        for name in self.names:
            shutil.copy2(bench.programs / name, share / "bin" / name)
        tests = [
            GuestTest(name=n, program=n, arguments=("--kernel=patched", PROGRESS), timeout_s=PROGRAM_TIMEOUT_S)
            for n in self.names
        ]
        boot = bench.machine.boot(
            bench.builder.make.build / "arch/x86/boot/bzImage",
            share,
            bench.run_dir / STAGE / "console.log",
            tests=(reset, *tests),
            after=collect_script(self.objects, bench.builder.make.build),
        )
        self.commands.append(boot.command)
        self.logs.append(Log(title="console", path=f"{STAGE}/console.log"))
        ended = Counter((read_result(share, f"{n}.rc") or "none").strip() for n in self.names)
        shown = ", ".join(f"{status}: {count}" for status, count in sorted(ended.items()))
        self.facts.append(("boot", f"{boot.ending} after {boot.duration_s:.1f} s ({boot.accelerator})"))
        self.facts.append(("exit status of the tests", shown))
        return boot, share

    def classify(self, counters: Counters) -> tuple[AddedLine, ...]:
        make = self.bench.builder.make
        kept: dict[str, set[int]] = {}
        for name in self.objects:
            path = (make.build / name).with_suffix(".i")
            if path.is_file():
                for file, lines in parse_preprocessed(
                    path.read_text(errors="replace"), source=str(make.source)
                ).items():
                    kept.setdefault(file, set()).update(lines)
        return tuple(
            line
            for file, added in self.added.items()
            for line in classify(
                file,
                git_bytes(self.repo, "show", f"{self.applied.tip_commit}:{file}").decode("utf-8", "replace"),
                added,
                counts=counters.get(file, {}),
                kept=kept.get(file, ()),
            )
        )

    def result(self, lines: tuple[AddedLine, ...]) -> StageResult:
        counted = Counter(line.kind for line in lines)
        hit, missed = counted[LineKind.HIT], counted[LineKind.MISSED]
        share = f"{hit} of {hit + missed} executable added lines ran ({_percent(hit, hit + missed)})"
        files = [(file, _tally(x for x in lines if x.file == file)) for file in self.added]
        rest = ", ".join(f"{n} {kind}" for kind, n in counted.items() if kind not in (LineKind.HIT, LineKind.MISSED))
        return StageResult(
            stage=STAGE,
            status=Status.PASS if hit + missed else Status.SKIP,
            summary=share if hit + missed else "no added line has a counter",
            findings=_findings(lines),
            facts=(("covered", share), ("other added lines", rest or "none"), *files, *self.facts),
            commands=tuple(self.commands),
            logs=tuple(self.logs),
            required=False,
        )

    def error(self, problem: str) -> Outcome[tuple[AddedLine, ...]]:
        result = StageResult(
            stage=STAGE,
            status=Status.ERROR,
            summary=problem,
            facts=tuple(self.facts),
            commands=tuple(self.commands),
            logs=tuple(self.logs),
            required=False,
        )
        return Outcome(result=result)


def _findings(lines: Sequence[AddedLine]) -> tuple[Finding, ...]:
    # One note a function: what no test ran, then what could not be told.
    words = {
        LineKind.MISSED: "no test ran {lines}",
        LineKind.NOT_COUNTED: "{lines} cannot be measured: no counter in the function",
        LineKind.NOT_BUILT: "{lines} not built in this configuration",
    }
    found = []
    for kind, text in words.items():
        groups: dict[tuple[str, str], list[AddedLine]] = {}
        for line in lines:
            if line.kind is kind:
                groups.setdefault((line.file, line.function), []).append(line)
        for (file, function), members in groups.items():
            where = f" of {function}()" if function else ""
            count = f"{len(members)} added line{'s' * (len(members) != 1)}{where}"
            found.append(
                Finding(
                    title=text.format(lines=count),
                    severity=Status.PASS,
                    origin=Origin.INTRODUCED,
                    file=file,
                    function=function,
                    line=members[0].line,
                    excerpt=_excerpt(members),
                )
            )
    return tuple(found)


def _excerpt(members: Sequence[AddedLine]) -> str:
    shown = [f"{m.line:>6}  {m.text.expandtabs(8)}" for m in members[:_EXCERPT_LINES]]
    left = len(members) - len(shown)
    return "\n".join(shown + ([f"… and {left} more"] if left else []))


def _tally(lines: Iterable[AddedLine]) -> str:
    counted = Counter(line.kind for line in lines)
    return ", ".join(f"{counted[kind]} {kind}" for kind in LineKind if counted[kind])


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "nothing to run"


def _skipped(reason: str) -> Outcome[tuple[AddedLine, ...]]:
    return Outcome(result=StageResult(stage=STAGE, status=Status.SKIP, summary=reason, required=False))
