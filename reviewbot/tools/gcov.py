"""Counters of instrumented objects: what make needs, how the guest hands them back, and the gcov program.

In: objects by their path below the build directory (``kernel/events/core.o``). In the guest the counters are files
below /sys/kernel/debug/gcov (Documentation/dev-tools/gcov.rst); they have size 0 and are read with cat. What comes back
is hostile: it is read through read_result_bytes() under names of ours, and gcov gets it with a time limit.
"""

from __future__ import annotations

import gzip
import re
import shutil
import zlib
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from reviewbot.errors import InfraError
from reviewbot.parse.gcov import Counters, GcovError, merge, parse_gcov
from reviewbot.run import Completed, find, run
from reviewbot.tools.guest import SHARE, GuestTest, read_result_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

FRAGMENT = "gcov"
_SAFE_PATH = re.compile(r"[A-Za-z0-9_+/.-]+")
_JSON_LIMIT_BYTES = 64 * 1024 * 1024
_RESET = "gcov-reset"
_RESET_SH = """\
#!/bin/sh
# What the boot ran does not count.
grep -q ' /sys/kernel/debug ' /proc/mounts || mount -t debugfs debugfs /sys/kernel/debug
echo 1..1
echo 0 >/sys/kernel/debug/gcov/reset && echo "ok 1 reset" || echo "not ok 1 reset"
"""


def make_variables(objects: Sequence[str]) -> tuple[str, ...]:
    """Return the make variables that instrument the objects; kbuild knows stems, so their namesakes are too."""
    return tuple(f"GCOV_PROFILE_{stem}.o=y" for stem in sorted({PurePosixPath(name).stem for name in objects}))


def objects_of(files: Sequence[str], build: Path) -> tuple[str, ...]:
    """Return the objects to instrument for the touched files: those of C files, and those beside a touched header.

    build is a build directory of the tree: an object counts when it was built there. Only objects in the header's own
    directory are taken for a header; one that half of the kernel includes is measured where the series changes C files.
    """
    found = {str(PurePosixPath(name).with_suffix(".o")) for name in files if name.endswith(".c")}
    for header in (name for name in files if name.endswith(".h")):
        directory = PurePosixPath(header).parent
        for record in sorted((build / directory).glob(".*.o.cmd")):
            if f"/{header} " in record.read_text(errors="replace").replace("\\\n", " ").replace("\n", " "):
                found.add(str(directory / record.name[1 : -len(".cmd")]))
    return tuple(sorted(name for name in found if (build / name).exists() and _SAFE_PATH.fullmatch(name)))


def reset_test(share: Path) -> GuestTest:
    """Write the program that mounts debugfs and clears the counters into the share; it has to be the first to run."""
    program = share / "bin" / _RESET
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(_RESET_SH)
    program.chmod(0o755)
    return GuestTest(name=_RESET, program=_RESET)


def collect_script(objects: Sequence[str], build: Path) -> str:
    """Return shell for the guest that copies each object's counters to out/gcov-N.gcda, N its place in objects.

    Raises InfraError when the build directory's path cannot stand in a shell line.
    """
    if not _SAFE_PATH.fullmatch(str(build)):
        msg = f"path {str(build)!r} cannot be given to the guest (only letters, digits and _+/.-)"
        raise InfraError(msg)
    lines = [
        f"cat /sys/kernel/debug/gcov{build}/{_data(name)} >{SHARE}/out/gcov-{number}.gcda"
        for number, name in enumerate(objects)
    ]
    return "\n".join(lines)


def read_counters(
    objects: Sequence[str], build: Path, share: Path, scratch: Path, log: Path, *, source: Path
) -> tuple[Counters, tuple[str, ...], tuple[Completed, ...]]:
    """Run gcov over what the guest left; return the counters, the objects that gave none, and the gcov calls.

    scratch is replaced. Raises InfraError when gcov is not installed.
    """
    if find("gcov") is None:
        msg = "gcov: not installed (package gcc)"
        raise InfraError(msg)
    shutil.rmtree(scratch, ignore_errors=True)
    parts, silent, calls = [], [], []
    for number, name in enumerate(objects):
        data = read_result_bytes(share, f"gcov-{number}.gcda")
        notes = build / PurePosixPath(name).with_suffix(".gcno")
        if not data or not notes.exists():
            silent.append(name)
            continue
        place = scratch / str(number)
        place.mkdir(parents=True)
        shutil.copy2(notes, place / notes.name)
        (place / notes.name).with_suffix(".gcda").write_bytes(data)
        calls.append(run(["gcov", "--json-format", _data(notes.name)], timeout_s=120, cwd=place, log=log))
        try:
            parts.append(parse_gcov(_json(place), source=str(source)))
        except GcovError:
            silent.append(name)
    return merge(parts), tuple(silent), tuple(calls)


def _data(name: str) -> str:
    return str(PurePosixPath(name).with_suffix(".gcda"))


def _json(place: Path) -> bytes:
    for path in place.glob("*.gcov.json.gz"):
        try:
            with gzip.open(path) as file:
                return file.read(_JSON_LIMIT_BYTES)
        except (OSError, EOFError, zlib.error) as error:
            msg = f"gcov's output: {error}"
            raise GcovError(msg) from error
    msg = "gcov wrote nothing"
    raise GcovError(msg)
