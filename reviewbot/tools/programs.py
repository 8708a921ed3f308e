"""Boot a kernel with generated test programs and read what they left."""

from __future__ import annotations

import re
import shlex
import shutil
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from reviewbot.errors import InfraError
from reviewbot.findings.compare import Run, read_program
from reviewbot.generate.schemata import HITS_FILE, PARAMETER, reached
from reviewbot.tools.guest import SHARE, GuestTest, read_result
from reviewbot.tools.vng import Boot, Ending, Machine

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

PROGRAM_TIMEOUT_S = 120
# The guest's time is counted in ticks, which come late on a busy host: silence on the console would look like a hang.
PROGRESS = "--progress=/dev/kmsg"
# A program of a wrong kernel that takes so much longer than on the right one will not end by itself.
_LIMIT_S, _LIMIT_TIMES = 15, 6
_MARK = re.compile(r"\[ *(\d+\.\d+)\] reviewbot: (start|end) (\w+)\r?$", re.MULTILINE)
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
    limits_s: Mapping[str, int] | None = None,
    arguments: tuple[str, ...] = (),
    on_output: Callable[[bytes], None] | None = None,
) -> Boot:
    """Boot image with the named programs of a directory, one after another, told which kernel it is (role).

    append are words for the kernel's command line, after is a shell line that runs in the guest at the end. timeout_s
    is for each program that has no time of its own in limits_s, and arguments are further ones of each.
    """
    (share / "bin").mkdir(parents=True, exist_ok=True)
    for name in names:
        shutil.copy2(directory / name, share / "bin" / name)
    limits, words = limits_s or {}, (f"--kernel={role}", PROGRESS, *arguments)
    tests = tuple(GuestTest(name=n, program=n, arguments=words, timeout_s=limits.get(n, timeout_s)) for n in names)
    return machine.boot(image, share, log, tests=tests, append=append, after=after, on_output=on_output)


def read_programs(share: Path, names: Sequence[str], *, timeout_s: int = PROGRAM_TIMEOUT_S) -> Run:
    """Return every case that the programs of a boot reported, as compare.read_program() does."""
    run: Run = {}
    for name in names:
        ktap, status = read_result(share, f"{name}.ktap"), read_result(share, f"{name}.rc")
        run |= read_program(name, ktap, status, timeout_s, errors=read_result(share, f"{name}.err") or "")
    return run


def case_command(name: str, *arguments: str) -> str:
    """Return what runs one case, ``program/case``, in a guest of the patched kernel."""
    program, _, case = name.partition("/")
    words = [f"./{program}", "--kernel=patched", *arguments, *([f"--case={case}"] if case else [])]
    return f"cd {SHARE}/bin && {shlex.join(words)}"


def program_times(console: str) -> dict[str, float]:
    """Return how many seconds of the guest's clock each program took, from the marks on its console."""
    started: dict[str, float] = {}
    took: dict[str, float] = {}
    for match in _MARK.finditer(console):
        at, kind, name = float(match[1]), match[2], match[3]
        if kind == "start":
            started[name] = at
        elif name in started:
            took[name] = at - started[name]
    return took


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One boot with test programs: what they reported, how it ended, and the mutants whose places were reached.

    programs are those that came to their turn; ending is None when the boot was stopped after one of them.
    """

    run: Run
    programs: tuple[str, ...]
    ending: Ending | None
    detail: str
    console: str
    duration_s: float
    hits: frozenset[int] = frozenset()


class _Enough(Exception):  # noqa: N818 - ends a boot from inside its output handler
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Where wrong kernels are booted with the tests: the programs in directory are told the role of the kernel.

    first are those that run before the others, whatever order is asked for.
    """

    machine: Machine
    names: tuple[str, ...]
    directory: Path
    role: str
    job: Path
    logs: Path
    timeout_s: int = PROGRAM_TIMEOUT_S
    first: frozenset[str] = frozenset()
    limits_s: Mapping[str, int] = field(default_factory=dict)
    took_s: Mapping[str, float] = field(default_factory=dict)

    def boot(
        self,
        image: Path,
        label: str,
        *,
        names: Sequence[str] = (),
        number: int | None = None,
        enough: Callable[[Run, str], bool] | None = None,
    ) -> Seen:
        """Boot image with mutant number and the named programs (all when none is named), and read the results.

        enough is asked after each program, with its cases and its name, whether the boot can be stopped. Raises
        InfraError when qemu does not start.
        """
        chosen = tuple(sorted(names or self.names, key=lambda name: name not in self.first))
        share, log = self.job / label, self.logs / f"{label}.log"
        shutil.rmtree(share, ignore_errors=True)
        share.mkdir(parents=True)
        watcher = _Watcher(share, self.timeout_s, enough)
        started = time.monotonic()
        try:
            boot = boot_programs(
                self.machine,
                image,
                chosen,
                directory=self.directory,
                role=self.role,
                share=share,
                log=log,
                append=(*_WATCH, *(() if number is None else (f"{PARAMETER}={number}",))),
                after=f"cat {HITS_FILE} >$out/hits 2>/dev/null",
                timeout_s=self.timeout_s,
                limits_s=self.limits_s,
                on_output=watcher.feed,
            )
            ending, detail, ran = boot.ending, boot.detail, chosen
        except _Enough:
            ending, detail, ran = None, "", tuple(watcher.ended)
        if ending is Ending.NO_START:
            msg = f"qemu did not start: {detail}"
            raise InfraError(msg)
        seen = Seen(
            run=read_programs(share, ran, timeout_s=self.timeout_s),
            programs=ran,
            ending=ending,
            detail=detail,
            console=log.read_text(errors="replace"),
            duration_s=time.monotonic() - started,
            hits=reached(read_result(share, "hits") or ""),
        )
        shutil.rmtree(share, ignore_errors=True)
        return seen

    def patient(self, took_s: Mapping[str, float], boot_s: float) -> Bench:
        """Return the bench for wrong kernels: quick programs first, and time limits by what the right one needs.

        took_s are the seconds of each program on the right kernel, boot_s those of its whole boot.
        """
        names = tuple(sorted(self.names, key=lambda n: took_s.get(n, 0.0)))
        limits = {n: round(_LIMIT_S + _LIMIT_TIMES * took_s.get(n, 0.0)) for n in names}
        machine = replace(self.machine, timeout_s=60 + boot_s, idle_timeout_s=30)
        return replace(self, machine=machine, names=names, limits_s=limits, took_s=dict(took_s))


class _Watcher:
    # Reads the marks of a guest's console as they come, and the results of each program that has ended.
    def __init__(self, share: Path, timeout_s: int, enough: Callable[[Run, str], bool] | None) -> None:
        self._share = share
        self._timeout_s = timeout_s
        self._enough = enough
        self._rest = ""
        self.ended: list[str] = []

    def feed(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data.decode("utf-8", "replace")).split("\n")
        for match in filter(None, map(_MARK.match, lines)):
            if match[2] == "end" and read_result(self._share, f"{match[3]}.rc"):
                self.ended.append(match[3])
                run = read_programs(self._share, [match[3]], timeout_s=self._timeout_s)
                if self._enough and self._enough(run, match[3]):
                    raise _Enough
