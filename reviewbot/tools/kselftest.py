"""Write a kselftest directory and compile it statically against a kernel's exported headers."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from reviewbot.run import Completed, run
from reviewbot.tools.make import jobs

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

COMPILE_TIMEOUT_S = 600.0


def write_directory(directory: Path, files: Mapping[str, str]) -> None:
    """Replace directory by the files (relative path to content)."""
    shutil.rmtree(directory, ignore_errors=True)
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def compile_directory(directory: Path, output: Path, headers: Path, log: Path) -> Completed:
    """Compile the programs into output; headers is the usr/include that ``make headers`` exported."""
    output.mkdir(parents=True, exist_ok=True)
    argv = ["make", f"-j{jobs()}", "-C", str(directory), f"OUTPUT={output}", f"KHDR_INCLUDES=-isystem {headers}"]
    return run(argv, timeout_s=COMPILE_TIMEOUT_S, log=log)
