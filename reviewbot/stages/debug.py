"""Stage debug: the generated tests on a kernel that checks itself.

In: the compiled tests and a builder with the fragment debug (KASAN, lockdep, atomic sleep, kmemleak, UBSAN). Out:
what that kernel complained about while the tests ran, the memory that they leaked, and the cases that fail there
alone. A complaint and a leak count from the first time, unless base's debug kernel shows the same title. Base is
built only when patched shows something. The kernel is several times slower: time limits are longer, and a case that
base cannot run there and that passes on the review's own kernel is for a reader to judge.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from reviewbot.model import ApplyResult, Case, Finding, Log, Outcome, StageResult, Status
from reviewbot.tools.comparison import Comparison, diagnosed
from reviewbot.tools.guest import read_result
from reviewbot.tools.programs import PROGRAM_TIMEOUT_S
from reviewbot.tools.vng import Ending, Machine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reviewbot.generate.rules import Tree
    from reviewbot.tools.extra import Extra
    from reviewbot.tools.kernel import Kernel, Kernels

STAGE = "debug"
FRAGMENT = "debug"
PATIENCE = 8  # how much slower than a plain kernel it may be
MEMORY_MIB = 2048  # KASAN takes an eighth, kmemleak and lockdep their part
_LEAKS = "kmemleak"
# An object is reported when it is older than 5 s and did not change from one scan to the next (mm/kmemleak.c).
_SCAN = f"""\
grep -q ' /sys/kernel/debug ' /proc/mounts || mount -t debugfs debugfs /sys/kernel/debug
sleep 6
echo scan >/sys/kernel/debug/kmemleak
sleep 6
echo scan >/sys/kernel/debug/kmemleak && cat /sys/kernel/debug/kmemleak >$out/{_LEAKS}
"""


def debug_machine(machine: Machine) -> Machine:
    """Return the machine for debug kernels: more memory, more time."""
    return replace(
        machine,
        memory_mib=max(machine.memory_mib, MEMORY_MIB),
        timeout_s=machine.timeout_s * PATIENCE,
        idle_timeout_s=machine.idle_timeout_s * PATIENCE,
    )


def debug(
    extra: Extra,
    kernels: Kernels,
    applied: ApplyResult,
    *,
    known: Sequence[StageResult],
    rules: Tree | None = None,
) -> Outcome[tuple[Case, ...]]:
    """Build the debug kernel of patched, run the tests on it, and compare with base's; nothing here is required.

    kernels are those of the review, and known are its results so far: what they show is not told again.
    """
    slow = replace(
        extra,
        arguments=(f"--patience={PATIENCE}",),
        timeout_s=PROGRAM_TIMEOUT_S * PATIENCE,
        after=_SCAN,
        reports=(_LEAKS,),
    )
    return _Debug(extra=slow, kernels=kernels, applied=applied, known=known, rules=rules).outcome()


@dataclass(slots=True, kw_only=True)
class _Debug:
    extra: Extra
    kernels: Kernels
    applied: ApplyResult
    known: Sequence[StageResult]
    rules: Tree | None
    findings: list[Finding] = field(default_factory=list)
    cases: tuple[Case, ...] = ()
    facts: list[tuple[str, str]] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    logs: list[Log] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def outcome(self) -> Outcome[tuple[Case, ...]]:
        kernel = self.build()
        if kernel is not None:
            self.compare(kernel)
        result = StageResult(
            stage=STAGE,
            status=self.status(),
            summary=self.summary(),
            findings=tuple(self.findings),
            cases=self.cases,
            facts=tuple(self.facts),
            commands=tuple(self.commands),
            logs=tuple(self.logs),
            required=False,
        )
        return Outcome(result=result, value=self.cases)

    def build(self) -> Kernel | None:
        extra, tip = self.extra, self.applied.tip_commit
        extra.note("configuring")
        extra.builder.checkout(tip)
        configured = extra.builder.configure(extra.wanted)
        self.logs.append(extra.build_log)
        if not configured.done.ok:
            self.problems.append("the debug kernel cannot be configured; make's words are in the log")
            return None
        if lost := [m.wanted.symbol for m in configured.lost]:
            self.facts.append(("not in its .config", ", ".join(lost)))
        extra.note("building patched")
        attempt = extra.builder.build(tip)
        self.commands.append(extra.builder.recipe(tip))
        if attempt.problem:
            self.problems.append(attempt.problem)
            return None
        found, problems = diagnosed(extra, self.applied, attempt, self.kernels)
        self.findings += found
        self.problems += problems
        if attempt.kernel is None:
            self.problems.append("patched does not build")
            return None
        built = "from the cache" if attempt.kernel.cached else f"{attempt.kernel.objects} objects"
        self.facts.append(("debug kernel", f"{built}, {attempt.duration_s:.0f} s"))
        return attempt.kernel

    def compare(self, kernel: Kernel) -> None:
        comparison = Comparison(
            extra=self.extra, patched=kernel, applied=self.applied, known=self.known, slow=True, rules=self.rules
        )
        self.cases, found = comparison.run()
        leaks = any("unreferenced object" in f.title for f in found)
        self.findings += [f for f in found if not (leaks and f.title.endswith("new suspected memory leaks"))]
        self.commands += comparison.commands
        self.logs += comparison.logs
        self.problems += comparison.problems
        first = comparison.passes["patched"][0].boot
        if first.ending is Ending.FINISHED and read_result(first.share, _LEAKS) is None:
            self.problems.append("kmemleak could not scan: leaks were not looked for")
        self.facts += comparison.facts

    def status(self) -> Status:
        if any(f.counts and f.severity is Status.FAIL for f in self.findings) or any(c.counts for c in self.cases):
            return Status.FAIL
        if self.problems:
            return Status.ERROR
        doubtful = any(f.counts and f.severity is Status.WARN for f in self.findings)
        if doubtful or any(c.patched in (Status.WARN, Status.ERROR) for c in self.cases):
            return Status.WARN
        return Status.PASS

    def summary(self) -> str:
        count = {status: sum(1 for c in self.cases if c.patched is status) for status in Status}
        tally = f"{count[Status.PASS]} cases pass, {count[Status.FAIL]} fail, {count[Status.SKIP]} skipped"
        broken = [f.title for f in self.findings if f.counts and f.severity is Status.FAIL]
        text = "; ".join((*broken[:1], *self.problems)) or "no complaint of the kernel and no leak"
        return f"{text}; {tally if self.cases else 'no test ran'}"
