"""Stage boot: base and patched reach their first command, and say nothing new on the way.

In: the kernels and a Machine. Out: the console of each. A panic, a hang, a lost machine and a qemu that does not start
are told apart; base that does not boot says "base broken" and blames nobody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reviewbot.findings.splats import imitations, splat_findings, tail
from reviewbot.model import Finding, Log, Outcome, StageResult, Status
from reviewbot.tools.vng import Boot, Ending, Machine

if TYPE_CHECKING:
    from pathlib import Path

    from reviewbot.tools.kernel import Kernel

_SAYS = {
    Ending.PANIC: "panics",
    Ending.HANG: "hangs before the first command",
    Ending.STUCK: "starts the first command and does not come to its end",
    Ending.LOST: "is lost: the virtual machine went away without a panic",
}


def boot(machine: Machine, base: Kernel, patched: Kernel, job: Path, run_dir: Path) -> Outcome[str]:
    """Boot both kernels without a test; the value is base's console.

    job is where the shares go; the consoles are kept in run_dir. One kernel for both is booted once.
    """
    boots: list[Boot] = []
    kernels = (("base", base), ("patched", patched)) if base.commit != patched.commit else (("base", base),)
    for name, kernel in kernels:
        share = job / f"boot-{name}"
        share.mkdir(parents=True, exist_ok=True)
        boots.append(machine.boot(kernel.image, share, run_dir / f"console-{name}.log"))
        if boots[-1].ending is not Ending.FINISHED:
            break
    logs = tuple(
        Log(title=f"console of {name}", path=f"console-{name}.log", size_bytes=len(b.console.encode()))
        for name, b in zip(("base", "patched"), boots, strict=False)
    )
    findings: tuple[Finding, ...] = ()
    if len(boots) == len(kernels):
        consoles = boots[0].console, boots[-1].console
        findings = (*splat_findings([consoles[0]], [consoles[1]]), *imitations(*consoles))
    status, summary = _judge(boots, findings, len(kernels))
    result = StageResult(
        stage="boot",
        status=status,
        summary=summary,
        findings=findings if status is not Status.ERROR else (),
        facts=tuple(
            (name, f"{b.ending} after {b.duration_s:.1f} s ({b.accelerator})")
            for name, b in zip(("base", "patched"), boots, strict=False)
        ),
        commands=tuple(b.command for b in boots),
        logs=logs,
        excerpt="" if status is Status.PASS else tail(boots[-1].console),
    )
    done = len(boots) == len(kernels) and boots[-1].ending is Ending.FINISHED
    return Outcome(result=result, value=boots[0].console if done else None)


def _judge(boots: list[Boot], findings: tuple[Finding, ...], wanted: int) -> tuple[Status, str]:
    last = boots[-1]
    if last.ending is Ending.NO_START:
        return Status.ERROR, f"qemu did not start a kernel: {last.detail or 'no output'}"
    if last is boots[0] and last.ending is not Ending.FINISHED:
        return Status.ERROR, f"base is broken: it {_SAYS[last.ending]}" + (f": {last.detail}" if last.detail else "")
    if last.ending is not Ending.FINISHED:
        return Status.FAIL, f"patched {_SAYS[last.ending]}" + (f": {last.detail}" if last.detail else "")
    new = sorted((f for f in findings if f.counts), key=lambda f: f.severity is not Status.FAIL)
    if new:
        status = Status.FAIL if new[0].severity is Status.FAIL else Status.WARN
        return status, f"patched boots, but its console has: {new[0].title}"
    if wanted == 1:
        return Status.PASS, f"base boots ({last.duration_s:.1f} s)"
    return (
        Status.PASS,
        f"base and patched boot ({boots[0].duration_s:.1f} s and {last.duration_s:.1f} s), nothing new on the console",
    )
