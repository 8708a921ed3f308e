"""What the user asked of a review, checked as far as it can be without the tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One review. source is a path, or "-" for stdin (then stdin holds its bytes).

    out is the directory of this run (made when needed); None puts it below reports/. every asks for the tests of
    every sample type. allow_fuzz lets a patch apply with less context; the report says so. coverage measures which
    added lines the tests run, and debug runs them on a kernel that checks itself. specs are directories of the user's
    own specs. inbox is a public-inbox archive in which message ids and prerequisites are looked up. command is what the
    user typed.
    """

    source: str
    tree: str
    stdin: bytes | None = None
    base: str = ""
    prerequisites: tuple[str, ...] = ()
    fragments: tuple[str, ...] = ()
    out: Path | None = None
    every: bool = False
    coverage: bool = False
    debug: bool = False
    allow_fuzz: bool = False
    inbox: Path | None = None
    boot_timeout_s: float = 600
    specs: tuple[Path, ...] = ()
    command: str = ""
