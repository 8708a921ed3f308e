"""Calls of the kernel's checkpatch.pl, the one of the base tree: a series cannot change the script that judges it.

In: a repository and a commit to take the script from; a patch as ``git format-patch`` writes it. Out: Complaints. The
user's and the tree's ``.checkpatch.conf`` are not read: the script runs in a directory of ours with an empty one.

Source: Documentation/dev-tools/checkpatch.rst
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reviewbot.errors import InfraError
from reviewbot.run import run
from reviewbot.tools.objects import read_objects

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SCRIPT = "scripts/checkpatch.pl"
_FILES = (SCRIPT, "scripts/spelling.txt", "scripts/const_structs.checkpatch")
_CONFIG = ".checkpatch.conf"
_HEAD = re.compile(r"(?P<level>ERROR|WARNING|CHECK):(?P<kind>[A-Z0-9_]+): (?P<text>.+)")
_PLACE = re.compile(r"#\d+: FILE: (?P<file>.+?):(?P<line>\d{1,9}):?")
_TIMEOUT_S = 120
_MAX_EXCERPT = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Complaint:
    """One message of checkpatch. level is "error", "warning" or "check"; kind is its type (``LONG_LINE``).

    file and line (1-based) are where it points to in the patched tree; empty and 0 for the commit message.
    """

    level: str
    kind: str
    text: str
    file: str = ""
    line: int = 0
    excerpt: str = ""


def extract_checkpatch(repo: Path, commit: str, where: Path) -> Path | None:
    """Write commit's checkpatch.pl and its word lists below where, and return the script.

    None when the tree has no such script.
    """
    directory = where / f"checkpatch-{commit[:16]}"
    script = directory / "checkpatch.pl"
    if script.is_file():
        return script
    found = read_objects(repo, [f"{commit}:{path}" for path in _FILES])
    if found[0] is None or found[0].kind != "blob":
        return None
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for path, item in reversed(list(zip(_FILES, found, strict=True))):
            if item is not None and item.kind == "blob":
                (directory / path.rpartition("/")[2]).write_bytes(item.data)
    except OSError as error:
        msg = f"{directory}: {error.strerror}"
        raise InfraError(msg) from error
    return script


def checkpatch(
    script: Path, patch: Path, *, ignore: Sequence[str] = (), git_dir: Path | None = None, log: Path | None = None
) -> tuple[Complaint, ...]:
    """Return what script says of the patch in the file patch; types in ignore are left out.

    git_dir lets it look up the commits that a message names; without it such names are not checked. Raises InfraError
    when perl is not installed, or when the script breaks.
    """
    workdir = script.parent
    (workdir / _CONFIG).touch()
    options = ["--no-tree", "--show-types", "--no-summary", "--quiet"]
    if ignore:
        options.append(f"--ignore={','.join(ignore)}")
    env = {"CHECKPATCH_CONFIG_DIR": str(workdir), "HOME": str(workdir), "GIT_DIR": str(git_dir or workdir / "no-git")}
    done = run(["perl", str(script), *options, "-"], timeout_s=_TIMEOUT_S, cwd=workdir, stdin=patch, log=log, env=env)
    found = parse_complaints(done.stdout)
    if done.timed_out:
        msg = f"checkpatch.pl took longer than {_TIMEOUT_S} s"
        raise InfraError(msg)
    if done.exit_status not in (0, 1) or (done.exit_status == 1 and not found):
        last = (done.stderr.strip().splitlines() or [f"exit status {done.exit_status}"])[-1]
        msg = f"checkpatch.pl: {last[:200]}"
        raise InfraError(msg)
    return found


def parse_complaints(text: str) -> tuple[Complaint, ...]:
    """Return the complaints in the output of ``checkpatch.pl --show-types``."""
    found = []
    for block in re.split(r"\n\s*\n", text):
        lines = block.strip("\n").splitlines()
        head = _HEAD.match(lines[0]) if lines else None
        if head is None:
            continue
        place = next((match for line in lines[1:] if (match := _PLACE.match(line))), None)
        found.append(
            Complaint(
                level=head["level"].lower(),
                kind=head["kind"],
                text=head["text"].strip(),
                file=place["file"] if place else "",
                line=int(place["line"]) if place else 0,
                excerpt="\n".join(lines[1:_MAX_EXCERPT]),
            )
        )
    return tuple(found)
