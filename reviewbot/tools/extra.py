"""One more kernel for a review: other fragments, the same tests.

In: an Extra, which names the builder, the compiled tests and where results go. Out: what a boot with every test left.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reviewbot.model import Log
from reviewbot.tools.guest import read_result
from reviewbot.tools.programs import PROGRAM_TIMEOUT_S, boot_programs, read_programs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from reviewbot.findings.compare import Run
    from reviewbot.parse.kconfig import Wanted
    from reviewbot.tools.kernel import Builder, Kernel
    from reviewbot.tools.vng import Boot, Machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Extra:
    """What building and booting one more kernel needs.

    stage names the directory of its logs below run_dir, and label the kernel in words. wanted are the symbols of its
    configuration. programs is the directory of the compiled tests; it need not exist. after is shell that the guest
    runs when the tests are done, and reports names what that leaves beside the results: kernel messages to read like
    a console.
    """

    stage: str
    label: str
    machine: Machine
    builder: Builder
    wanted: tuple[Wanted, ...]
    programs: Path
    job: Path
    run_dir: Path
    note: Callable[[str], None]
    arguments: tuple[str, ...] = ()
    timeout_s: int = PROGRAM_TIMEOUT_S
    after: str = ""
    reports: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The compiled tests, sorted by name."""
        if not self.programs.is_dir():
            return ()
        found = (p for p in self.programs.iterdir() if p.is_file() and os.access(p, os.X_OK))
        return tuple(sorted(p.name for p in found))

    @property
    def slug(self) -> str:
        """The label as part of a file name."""
        return "".join(c if c.isalnum() else "-" for c in self.label).strip("-")

    @property
    def build_log(self) -> Log:
        """Where make's words are."""
        return Log(title=f"build of {self.label}", path=str(self.builder.make.log.relative_to(self.run_dir)))

    def start_from(self, build: Path) -> None:
        """Begin with a copy of another build directory of the tree, once: much of it is compiled there already."""
        own = self.builder.make.build
        if (own / ".config").exists() or not (build / ".config").exists():
            return
        work = own.with_name(f"{own.name}.new")
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(build, work, symlinks=True)
        shutil.rmtree(own)
        work.rename(own)

    def test(self, kernel: Kernel, side: str, number: int, role: str) -> Tested:
        """Boot kernel with every test. side and number tell this boot from the others in file names."""
        self.note(f"{self.label}: {side}, run {number}")
        name = f"{self.slug}-{side}-{number}"
        share, log = self.job / f"{self.stage}-{name}", self.run_dir / self.stage / f"console-{name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        boot = boot_programs(
            self.machine,
            kernel.image,
            self.names,
            directory=self.programs,
            role=role,
            share=share,
            log=log,
            after=self.after,
            timeout_s=self.timeout_s,
            arguments=self.arguments,
        )
        logs = [Log(title=f"console of {self.label}, {side}, run {number}", path=f"{self.stage}/{log.name}")]
        for report in (*self.names, *self.reports):
            ending = "" if report in self.reports else ".ktap"
            if (text := read_result(share, f"{report}{ending}")) is not None:
                path = self.run_dir / self.stage / f"{report}-{name}{ending or '.log'}"
                path.write_text(text, encoding="utf-8")
                logs.append(
                    Log(title=f"{report} of {self.label}, {side}, run {number}", path=f"{self.stage}/{path.name}")
                )
        said = [read_result(share, report) or "" for report in self.reports]
        run = read_programs(share, self.names, timeout_s=self.timeout_s)
        return Tested(run=run, boot=boot, logs=tuple(logs), consoles=(boot.console, *said))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """One boot with every test; consoles are the console and what else the kernel said."""

    run: Run
    boot: Boot
    logs: tuple[Log, ...]
    consoles: tuple[str, ...]
