"""Boot a kernel with generated test programs and read what they left."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from reviewbot.compare import Run, read_program
from reviewbot.errors import InfraError
from reviewbot.generate.schemata import HITS_FILE, PARAMETER, reached
from reviewbot.tools.guest import GuestTest, read_result
from reviewbot.tools.vng import Boot, Ending, Machine

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

PROGRAM_TIMEOUT_S = 120
# A kernel that loops says nothing: these make it say so, and end.
_WATCH = (
    "rcupdate.rcu_cpu_stall_timeout=21",
    "sysctl.kernel.panic_on_rcu_stall=1",
    "sysctl.kernel.softlockup_panic=1",
)


def boot_programs(
    machine: Machine,
    image: Path,
    names: Sequence[str],
    *,
    directory: Path,
    role: str,
    share: Path,
    log: Path,
    append: tuple[str, ...] = (),
    after: str = "",
    timeout_s: int = PROGRAM_TIMEOUT_S,
) -> Boot:
    """Boot image with the named programs of a directory, one after another, told which kernel it is (role).

    append are words for the kernel's command line, after is a shell line that runs in the guest at the end. timeout_s
    is for each program.
    """
    (share / "bin").mkdir(parents=True, exist_ok=True)
    for name in names:
        shutil.copy2(directory / name, share / "bin" / name)
    tests = tuple(GuestTest(name=n, program=n, arguments=(f"--kernel={role}",), timeout_s=timeout_s) for n in names)
    return machine.boot(image, share, log, tests=tests, append=append, after=after)


def read_programs(share: Path, names: Sequence[str], *, timeout_s: int = PROGRAM_TIMEOUT_S) -> Run:
    """Return every case that the programs of a boot reported, as compare.read_program() does."""
    run: Run = {}
    for name in names:
        ktap, status = read_result(share, f"{name}.ktap"), read_result(share, f"{name}.rc")
        run |= read_program(name, ktap, status, timeout_s, errors=read_result(share, f"{name}.err") or "")
    return run


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One boot with test programs: what they reported, how it ended, and the mutants whose places were reached."""

    run: Run
    boot: Boot
    hits: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Where wrong kernels are booted with the tests: the programs in directory are told the role of the kernel."""

    machine: Machine
    names: tuple[str, ...]
    directory: Path
    role: str
    job: Path
    logs: Path
    timeout_s: int = PROGRAM_TIMEOUT_S

    def boot(self, image: Path, label: str, *, names: Sequence[str] = (), number: int | None = None) -> Seen:
        """Boot image with mutant number and the named programs (all when none is named), and read the results.

        Raises InfraError when qemu does not start.
        """
        chosen = tuple(names) or self.names
        share = self.job / label
        shutil.rmtree(share, ignore_errors=True)
        share.mkdir(parents=True)
        boot = boot_programs(
            self.machine,
            image,
            chosen,
            directory=self.directory,
            role=self.role,
            share=share,
            log=self.logs / f"{label}.log",
            append=(*_WATCH, *(() if number is None else (f"{PARAMETER}={number}",))),
            after=f"cat {HITS_FILE} >$out/hits 2>/dev/null",
            timeout_s=self.timeout_s,
        )
        if boot.ending is Ending.NO_START:
            msg = f"qemu did not start: {boot.detail}"
            raise InfraError(msg)
        run = read_programs(share, chosen, timeout_s=self.timeout_s)
        hits = reached(read_result(share, "hits") or "")
        shutil.rmtree(share, ignore_errors=True)
        return Seen(run=run, boot=boot, hits=hits)

    def patient(self, usual_s: float) -> Bench:
        """Return the bench with time limits for wrong kernels, from what a whole boot of the right one takes."""
        limit = max(20, round(2 * usual_s))
        machine = replace(self.machine, timeout_s=60 + 2 * usual_s, idle_timeout_s=30)
        return replace(self, machine=machine, timeout_s=limit)
