"""The guest's private root file system, and the directory that it shares with us.

The root holds a static busybox and what virtme-ng's init looks for, so a guest sees none of the host's files. What a
guest leaves in the share is hostile: it is read only through read_result().
"""

from __future__ import annotations

import os
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reviewbot.errors import InfraError
from reviewbot.run import find, run

if TYPE_CHECKING:
    from reviewbot.tools.cache import Cache

SHARE = "/rb"  # where the guest sees the share
RESULT_LIMIT_BYTES = 16 * 1024 * 1024
_VERSION = "2"
_DIRS = (
    "bin sbin usr/bin usr/sbin usr/lib usr/share lib/systemd lib/modules"
    " etc proc sys dev run tmp var home root opt srv mnt rb"
)
# Without udev nothing links virtme-ng's ports by name, and its init waits for udevadm.
_UDEVD = """\
#!/bin/sh
mkdir -p /dev/virtio-ports
for port in /sys/class/virtio-ports/*; do
	[ -r "$port/name" ] && ln -sf "../${port##*/}" "/dev/virtio-ports/$(cat "$port/name")"
done
exit 0
"""
_FILES = {
    "lib/systemd/systemd-udevd": (_UDEVD, 0o755),
    "bin/udevadm": ("#!/bin/sh\nexit 0\n", 0o755),
    "etc/passwd": ("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n", 0o644),
    "etc/group": ("root:x:0:\nnogroup:x:65534:\n", 0o644),
    "etc/fstab": ("", 0o644),
    "etc/hosts": ("127.0.0.1 localhost\n", 0o644),
}


def prepare_root(cache: Cache) -> Path:
    """Return a root directory for guests, made on first use. Raises InfraError without a static busybox."""
    busybox = static_busybox()
    state = busybox.stat()
    root = cache.dir("guest-root") / f"{_VERSION}-{state.st_size}-{int(state.st_mtime)}"
    with cache.lock("guest-root"):
        if root.is_dir():
            return root
        work = root.with_suffix(".new")
        shutil.rmtree(work, ignore_errors=True)
        for name in _DIRS.split():
            (work / name).mkdir(parents=True)
        shutil.copy2(busybox, work / "bin/busybox")
        for name in run([str(busybox), "--list"], timeout_s=30).stdout.split():
            link = work / "bin" / name
            if name.replace("-", "").replace("_", "").replace("[", "x").isalnum() and not link.exists():
                link.symlink_to("busybox")
        for name, (text, mode) in _FILES.items():
            path = work / name
            path.unlink(missing_ok=True)
            path.write_text(text)
            path.chmod(mode)
        work.rename(root)
    return root


def static_busybox() -> Path:
    """Return the path of a statically linked busybox. Raises InfraError when there is none."""
    found = find("busybox")
    if found is None:
        msg = "busybox: not installed (package busybox-static)"
        raise InfraError(msg)
    path = Path(found).resolve()
    if _has_interpreter(path):
        msg = f"{path}: is not static (package busybox-static)"
        raise InfraError(msg)
    return path


def _has_interpreter(path: Path) -> bool:
    from elftools.elf.elffile import ELFFile  # noqa: PLC0415 - slow to import, needed once

    with path.open("rb") as file:
        return any(segment["p_type"] == "PT_INTERP" for segment in ELFFile(file).iter_segments())


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestTest:
    """A program to run in the guest: path below the share, its arguments, and its time limit in seconds."""

    name: str
    program: str
    arguments: tuple[str, ...] = ()
    timeout_s: int = 60


_RUN_SH = """\
#!/bin/sh
# Run by virtme-ng's init as root. Results go to files in {share}/out; the console carries none.
exec </dev/null
out={share}/out
echo "{nonce}" >$out/start
mount -t tmpfs -o mode=1777 tmpfs /tmp 2>/dev/null
grep -q ' /sys/kernel/tracing ' /proc/mounts || mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null
mkdir -p /tmp/t && cp -r {share}/bin/. /tmp/t/ 2>/dev/null
uname -a >$out/uname
cat /proc/cmdline >$out/cmdline
{tests}
dmesg >$out/dmesg
{after}
echo "{nonce}" >$out/end
sync
# Without ACPI the machine cannot power off; qemu runs with -no-reboot.
reboot -f
"""
_TEST = """\
echo "<6>reviewbot: start {name}" >/dev/kmsg
cd /tmp/t && timeout -s KILL {timeout_s} ./{program} {arguments} >$out/{name}.ktap 2>$out/{name}.err
echo $? >$out/{name}.rc
echo "<6>reviewbot: end {name}" >/dev/kmsg
"""


def write_share(share: Path, *, nonce: str, tests: tuple[GuestTest, ...] = (), after: str = "") -> None:
    """Make the share of one boot: run.sh, bin/ (filled by the caller) and an empty out/. after is shell of our own."""
    shutil.rmtree(share / "out", ignore_errors=True)
    (share / "out").mkdir(parents=True)
    (share / "bin").mkdir(exist_ok=True)
    body = "".join(
        _TEST.format(name=t.name, program=t.program, arguments=" ".join(t.arguments), timeout_s=t.timeout_s)
        for t in tests
    )
    script = share / "run.sh"
    script.write_text(_RUN_SH.format(share=SHARE, nonce=nonce, tests=body, after=after))
    script.chmod(0o755)


def read_result(share: Path, name: str) -> str | None:
    """Return what the guest wrote to out/NAME as text: at most RESULT_LIMIT_BYTES, never through a link; or None."""
    data = read_result_bytes(share, name)
    return None if data is None else data.decode("utf-8", "replace")


def read_result_bytes(share: Path, name: str) -> bytes | None:
    """Return what the guest wrote to out/NAME: at most RESULT_LIMIT_BYTES, never through a link; None when absent."""
    try:
        fd = os.open(share / "out" / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        return None
    with os.fdopen(fd, "rb") as file:
        return file.read(RESULT_LIMIT_BYTES)
