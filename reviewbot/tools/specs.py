"""Read the specs of sample types that a user adds: directories of TOML files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reviewbot.errors import UsageError
from reviewbot.generate.expression import SpecError
from reviewbot.generate.kselftest import load_specs
from reviewbot.generate.rules import rules_for

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from reviewbot.generate.spec import Specs

SIZE_MAX = 1 << 20


def read_specs(directories: Iterable[Path] = ()) -> Specs:
    """Return the packaged specs and those in the directories' *.toml, which win over packaged ones of the same name.

    Raises UsageError for a directory without a spec, and for a spec that cannot be used.
    """
    own: dict[str, str] = {}
    for directory in directories:
        if not directory.is_dir():
            msg = f"--specs {directory}: no such directory"
            raise UsageError(msg)
        try:
            files = sorted(directory.glob("*.toml"))
            own |= {str(path): _read(path) for path in files}
        except OSError as error:
            msg = f"--specs {directory}: {error.strerror or error}"
            raise UsageError(msg) from error
        if not files:
            msg = f"--specs {directory}: holds no *.toml"
            raise UsageError(msg)
    try:
        specs = load_specs(own)
        rules_for(specs)
    except SpecError as error:
        msg = f"--specs: {error}"
        raise UsageError(msg) from error
    return specs


def _read(path: Path) -> str:
    if path.stat().st_size > SIZE_MAX:
        msg = f"{path.name} is no spec: more than {SIZE_MAX >> 20} MiB"
        raise OSError(msg)
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        msg = f"--specs {path}: {error}"
        raise UsageError(msg) from error
