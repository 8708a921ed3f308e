"""Boot a kernel under virtme-ng and say how the boot ended.

vng joins its options through a shell, so it gets our own constants and checked paths only. It runs with a private HOME
(the user's configuration would override the command line) and TMPDIR, and pipes for its streams (qemu truncates files).
Its exit status is ambiguous (255 is a panic, a missing qemu, or a script that was killed): the ending is read
from marks in the share and from the console instead.
"""

from __future__ import annotations

import re
import secrets
import sys
import time
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from reviewbot.errors import InfraError
from reviewbot.run import find, run, search_path
from reviewbot.tools.guest import SHARE, GuestTest, read_result, write_share

if TYPE_CHECKING:
    from collections.abc import Callable

    from reviewbot.tools.cache import Cache

QEMU = "qemu-system-x86_64"
_SAFE_PATH = re.compile(r"[A-Za-z0-9_+/.-]+")
_PANIC = re.compile(r"Kernel panic - not syncing: ?(.*)")


class Ending(StrEnum):
    """How a boot ended."""

    FINISHED = "finished"  # the script ran to its end
    PANIC = "panic"  # the kernel said so
    HANG = "hang"  # no sign of life before the script started
    STUCK = "stuck"  # the script started and did not end in time
    LOST = "lost"  # the virtual machine went away without a word
    NO_START = "qemu did not start"  # not one line of a kernel


@dataclass(frozen=True, slots=True, kw_only=True)
class Boot:
    """A boot that is over. detail is the panic message, or the last line of the console."""

    ending: Ending
    console: str
    share: Path
    command: str
    duration_s: float
    accelerator: str
    detail: str = ""


def has_kvm(device: Path = Path("/dev/kvm"), cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Return whether KVM runs an ordinary kernel: the device can be opened, and the processor has VMX or SVM.

    The device alone does not tell: on a host whose KVM is built without hardware support (kvm-pvm) it opens and makes
    virtual machines, and a kernel that was not built for it hangs at its first instructions.
    """
    try:
        with device.open("r+b", buffering=0):
            return re.search(r"^flags\s*:.*\b(vmx|svm)\b", cpuinfo.read_text(), re.MULTILINE) is not None
    except OSError:
        return False


def vng_program() -> str:
    """Return the vng beside our own Python, or on PATH. Raises InfraError when there is none."""
    beside = Path(sys.executable).parent / "vng"
    found = str(beside) if beside.is_file() else find("vng")
    if found is None:
        msg = "vng: not installed (virtme-ng from PyPI)"
        raise InfraError(msg)
    return found


GUEST_CPUS = 2  # what a test of two at once needs


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The virtual machine: what every boot of a run has in common. memory is in MiB."""

    cache: Cache
    root: Path
    cpus: int = GUEST_CPUS
    memory_mib: int = 1024
    timeout_s: float = 600
    idle_timeout_s: float = 120

    def boot(
        self,
        image: Path,
        share: Path,
        log: Path,
        *,
        tests: tuple[GuestTest, ...] = (),
        append: tuple[str, ...] = (),
        after: str = "",
        on_output: Callable[[bytes], None] | None = None,
    ) -> Boot:
        """Boot image, run the tests one after another, and return when the guest is gone.

        Raises InfraError when vng or qemu is missing. idle_timeout_s counts while nothing is printed on the console.
        """
        if find(QEMU) is None:
            msg = f"{QEMU}: not installed"
            raise InfraError(msg)
        nonce = secrets.token_hex(16)
        write_share(share, nonce=nonce, tests=tests, after=after)
        accelerator = "KVM" if has_kvm() else "TCG"
        argv = self._argv(image, share, accelerator, append)
        home, tmp = self.cache.dir("vng", "home"), self.cache.dir("vng", "tmp")
        started = time.monotonic()
        log.unlink(missing_ok=True)
        done = run(
            argv,
            timeout_s=self.timeout_s + sum(t.timeout_s for t in tests),
            idle_timeout_s=self.idle_timeout_s + max((t.timeout_s for t in tests), default=0),
            cwd=tmp,
            log=log,
            env={"HOME": str(home), "TMPDIR": str(tmp), "PATH": f"{Path(argv[0]).parent}:{search_path()}"},
            on_output=on_output,
        )
        console = log.read_text(errors="replace")
        ending, detail = _ending(console, share, nonce, done.timed_out)
        return Boot(
            ending=ending,
            console=console,
            share=share,
            command=done.command,
            duration_s=time.monotonic() - started,
            accelerator=accelerator,
            detail=detail,
        )

    def _argv(self, image: Path, share: Path, accelerator: str, append: tuple[str, ...]) -> list[str]:
        for path in (image, share, self.root):
            if not _SAFE_PATH.fullmatch(str(path)):
                msg = f"path {str(path)!r} cannot be given to vng (only letters, digits and _+/.-)"
                raise InfraError(msg)
        # Opening and closing events waits for RCU, with two CPUs most of the time of the tests.
        words = ["nokaslr", "root=/dev/root", "panic_on_oops=1", "log_buf_len=4M", "rcupdate.rcu_expedited=1", *append]
        # One core a socket: of two cores in one socket, a kernel without ACPI finds the first alone in the MP table.
        cpus = f"{self.cpus},sockets={self.cpus}"
        return [
            vng_program(),
            *("--run", str(image), "--root", str(self.root), f"--rwdir={SHARE}={share}", "--cwd", str(self.root)),
            *("--user", "root", "--cpus", cpus, "--memory", f"{self.memory_mib}M"),
            *("--force-9p", "--disable-monitor", "--skip-modules", "--verbose"),
            *(() if accelerator == "KVM" else ("--disable-kvm",)),
            *(f"--append={word}" for word in words),
            *("--exec", f"{SHARE}/run.sh"),
        ]


def _ending(console: str, share: Path, nonce: str, timed_out: str) -> tuple[Ending, str]:
    started = (read_result(share, "start") or "").strip() == nonce
    ended = (read_result(share, "end") or "").strip() == nonce
    lines = [line for line in console.splitlines() if line.strip() and not line.startswith("$ ")]
    last = lines[-1].strip() if lines else ""
    panic = _PANIC.search(console)
    if ended:
        return Ending.FINISHED, ""
    if panic:
        return Ending.PANIC, panic.group(1).strip()
    if timed_out:
        return (Ending.STUCK if started else Ending.HANG), last
    if "Linux version" not in console:
        return Ending.NO_START, last
    return Ending.LOST, last
