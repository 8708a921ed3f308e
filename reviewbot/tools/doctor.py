"""What this machine has of the programs and facilities that a review uses, and what is lost without each.

In: the machine. Out: one Facility a line of the table that ``reviewbot doctor`` prints. Nothing is installed.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reviewbot.errors import InfraError
from reviewbot.run import find, run
from reviewbot.tools.cache import default_root
from reviewbot.tools.guest import static_busybox
from reviewbot.tools.vng import has_kvm, vng_program

if TYPE_CHECKING:
    from collections.abc import Callable

# A kernel's repository and work tree, two builds, and the guests' images.
NEEDED_BYTES = 10 * 1000**3
_NUMBER = re.compile(r"\bv?(\d+(?:\.\d+)+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Facility:
    """One thing that a review uses. version is what was found (a version, a size, a word), empty when it is missing.

    needed tells that no review can be made without it. lost says what a review lacks or how it gets worse without it.
    package is the Debian package that brings it; empty when none does.
    """

    name: str
    version: str
    needed: bool
    lost: str
    package: str = ""


@dataclass(frozen=True, slots=True)
class _Item:
    name: str
    look: Callable[[], str]
    needed: bool
    lost: str
    package: str = ""


def examine(root: Path | None = None) -> tuple[Facility, ...]:
    """Look at the machine (a second) and return every facility, the needed ones first.

    root is the cache directory whose disk is measured; the default one when not given.
    """
    items = (*_ITEMS, _disk(root or default_root()))
    found = [
        Facility(name=item.name, version=item.look(), needed=item.needed, lost=item.lost, package=item.package)
        for item in items
    ]
    return tuple(sorted(found, key=lambda facility: not facility.needed))


def _program(name: str, *args: str) -> Callable[[], str]:
    # Looks for a program and the first number with a dot that it prints about itself.
    return lambda: _version(name, *args) if find(name) else ""


def _version(*argv: str) -> str:
    try:
        done = run(argv, timeout_s=30)
    except InfraError:
        return ""
    match = _NUMBER.search(done.output)
    return match[1] if match else ("found" if done.ok else "")


def _header(text: str, pattern: str, prefix: str = "") -> Callable[[], str]:
    # Preprocesses text, because neither library brings a program and pkg-config may be absent.
    def look() -> str:
        try:
            done = run(["gcc", "-E", "-P", "-x", "c", "-"], timeout_s=30, stdin=[text.encode()])
        except InfraError:
            return ""
        match = re.search(pattern, done.stdout) if done.ok else None
        return prefix + match[1] if match else ""

    return look


def _static_libc() -> str:
    try:
        path = run(["gcc", "-print-file-name=libc.a"], timeout_s=30).stdout.strip()
    except InfraError:
        return ""
    return "found" if path.startswith("/") and Path(path).exists() else ""


def _vng() -> str:
    try:
        return _version(vng_program(), "--version")
    except InfraError:
        return ""


def _busybox() -> str:
    try:
        return _version(str(static_busybox()))
    except InfraError:
        return ""


def _disk(root: Path) -> _Item:
    # The cache may not exist yet: its first parent that does lies on the same disk.
    place = next(path for path in (root, *root.parents) if path.exists())
    free = shutil.disk_usage(place).free
    shown = f"{free / 1000**3:.0f} GB free"
    wanted = f"{NEEDED_BYTES / 1000**3:.0f} GB"
    lost = f"a first review takes about {wanted} below {root}, and only {shown}; set REVIEWBOT_CACHE to a larger disk"
    return _Item("disk of the cache", lambda: shown if free >= NEEDED_BYTES else "", False, lost)


_NO_BUILD = "no kernel can be built"
_ITEMS = (
    _Item("git", _program("git", "--version"), True, "no series can be applied", "git"),
    _Item("gcc", _program("gcc", "--version"), True, _NO_BUILD, "gcc"),
    _Item("static C library", _static_libc, True, "no selftest can be linked for the guest", "libc6-dev"),
    _Item("make", _program("make", "--version"), True, _NO_BUILD, "make"),
    _Item("flex", _program("flex", "--version"), True, _NO_BUILD, "flex"),
    _Item("bison", _program("bison", "--version"), True, _NO_BUILD, "bison"),
    _Item("bc", _program("bc", "--version"), True, _NO_BUILD, "bc"),
    _Item("perl", _program("perl", "-e", "print $^V"), True, "no checkpatch, and parts of a build fail", "perl"),
    _Item(
        "libelf",
        _header("#include <elfutils/version.h>\nreviewbot _ELFUTILS_VERSION\n", r"reviewbot (\d+)", "0."),
        True,
        "objtool cannot be built, and no x86 kernel without it",
        "libelf-dev",
    ),
    _Item(
        "libssl",
        _header("#include <openssl/opensslv.h>\nreviewbot OPENSSL_VERSION_STR\n", r'reviewbot "([^"]+)"'),
        True,
        "kernels with signed modules or certificates cannot be built",
        "libssl-dev",
    ),
    _Item("rsync", _program("rsync", "--version"), True, "no UAPI headers for the selftests", "rsync"),
    _Item("xz", _program("xz", "--version"), True, "no compressed kernel images", "xz-utils"),
    _Item("cpio", _program("cpio", "--version"), True, "no initramfs and no IKHEADERS", "cpio"),
    _Item("qemu", _program("qemu-system-x86_64", "--version"), True, "no kernel can be booted", "qemu-system-x86"),
    _Item("vng", _vng, True, "no kernel can be booted; run bootstrap.sh again"),
    _Item("static busybox", _busybox, True, "no guest has a user space", "busybox-static"),
    _Item(
        "KVM",
        lambda: "usable" if has_kvm() else "",
        False,
        "guests are emulated: they boot in seconds, but tests run many times slower"
        + (" (/dev/kvm is there: no right to open it, or no VMX or SVM)" if Path("/dev/kvm").exists() else ""),
    ),
    _Item("ccache", _program("ccache", "--version"), False, "each build compiles everything anew", "ccache"),
    _Item("pahole", _program("pahole", "--version"), False, "kernels have no BTF: no BPF CO-RE tests", "pahole"),
    _Item("sparse", _program("sparse", "--version"), False, "no sparse check", "sparse"),
    _Item("apt-get", _program("apt-get", "--version"), False, "no trees from Debian packages", "apt"),
    _Item("b4", _program("b4", "--version"), False, "no series by message id from the archives", "b4"),
    _Item("chromium", _program("chromium", "--version"), False, "the report's screenshot tests do not run", "chromium"),
)
