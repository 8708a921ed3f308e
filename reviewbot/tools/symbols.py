"""Which of some C names does a commit know? Looked up where the kernel keeps what code may use.

In: a repository, a commit, names, and the folders of the touched files. Out: the names that stand in include/, in an
architecture's include folder, or in one of the folders. Generated headers are not seen.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from reviewbot.tools.git import git
from reviewbot.tools.objects import folder_files, read_objects

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path

_WORD = re.compile(rb"[A-Za-z_]\w{2,}")
_HEADERS = ("include", "arch/*/include", "tools/include", "tools/testing/selftests/*.h", "tools/lib")
_MAX_NAMES = 200


def known_names(repo: Path, commit: str, names: Collection[str], folders: Iterable[str], scratch: Path) -> set[str]:
    """Return those of the names that the commit knows; scratch is a directory for the list of names.

    Of more than 200 names, the first 200 (sorted) are looked up, and the others count as known.
    """
    wanted = sorted(names)[:_MAX_NAMES]
    known = set(names) - set(wanted)
    known |= set(wanted) & _in_folders(repo, commit, folders)
    left = [name for name in wanted if name not in known]
    if not left:
        return known
    file = scratch / "names"
    file.write_text("".join(f"{name}\n" for name in left), encoding="utf-8")
    found: list[bytes] = []
    done = git(
        repo,
        "grep",
        "-h",
        "-o",
        "-w",
        "-F",
        "-f",
        str(file),
        commit,
        "--",
        *_HEADERS,
        on_output=found.append,
        timeout_s=120,
    )
    # Status 1 says that nothing was found.
    return known | set(b"".join(found).decode("utf-8", "replace").split()) if done.exit_status in (0, 1) else set(names)


def _in_folders(repo: Path, commit: str, folders: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for folder in sorted(set(folders))[:20]:
        oids = [oid for name, oid in folder_files(repo, commit, folder) if name.endswith((".c", ".h", ".S"))]
        for one in read_objects(repo, oids[:400]):
            if one is not None:
                found.update(word.decode() for word in set(_WORD.findall(one.data)))
    return found
