"""What no patch may do to a tree, told before anything is written: paths that leave it, `.git`, symlink tricks.

In: the diffs of a whole series, and what base has at the paths on their way. Out: one line for each offence. The checks
are ours and stricter than git's: it is one series that is judged, since a link may come in one patch and be used in the
next.
"""

from __future__ import annotations

import re
from posixpath import dirname, join, normpath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from reviewbot.parse.diff import FileDiff

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
# Code points that HFS+ ignores in names: ".g\u200cit" is ".git" there (git's CVE-2014-9390).
_IGNORED = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
_MODES = frozenset({"", "100644", "100755", "120000", "100664"})
_LINK = "120000"
# git follows no link here (CVE-2018-11235 and what came after it), other tools may.
_READ_BY_GIT = frozenset({".gitmodules", ".gitattributes", ".gitignore", ".mailmap", "gitmod~1"})
MAX_PATH = 4096
MAX_NAME = 255
MAX_FILES = 50_000


def offences(patches: Sequence[Sequence[FileDiff]], base_modes: Mapping[str, str]) -> list[str]:
    """Return what is hostile in the series. base_modes has the git mode of each path and folder that base has."""
    found: list[str] = []
    links = {path for path, mode in base_modes.items() if mode == _LINK}
    count = 0
    for number, files in enumerate(patches, 1):
        for file in files:
            count += 1
            for path in {file.old, file.new} - {""}:
                found += [f"patch {number}: {shown(path)}: {why}" for why in path_offences(path)]
            found += [f"patch {number}: {shown(file.path)}: {why}" for why in _file_offences(file)]
            if _LINK in (file.new_mode, file.old_mode) or file.old in links:
                links.add(file.path)
            for parent in parents(file.path):
                if parent in links:
                    found.append(f"patch {number}: {shown(file.path)}: goes through the symbolic link {shown(parent)}")
    # A link that a later patch makes is used by an earlier one only after a reordering: no matter, refuse both ways.
    if count > MAX_FILES:
        found.append(f"{count} files are above the limit MAX_FILES ({MAX_FILES})")
    return list(dict.fromkeys(found))


def path_offences(path: str) -> list[str]:
    """Return why a path may not be written to."""
    found = []
    parts = path.split("/")
    if path.startswith("/"):
        found.append("absolute path")
    if ".." in parts:
        found.append("path leaves the tree")
    if "." in parts or ("" in parts and not path.startswith("/")):
        found.append("path with an empty or '.' component")
    if any(is_git(part) for part in parts):
        found.append("path inside a .git directory")
    if _CONTROL.search(path):
        found.append("control characters in the path")
    if len(path) > MAX_PATH or any(len(part.encode("utf-8", "replace")) > MAX_NAME for part in parts):
        found.append("path too long")
    return found


def parents(path: str) -> list[str]:
    """Return the directories above path, nearest last."""
    parts = path.split("/")[:-1]
    return ["/".join(parts[: i + 1]) for i in range(len(parts))]


def shown(path: str) -> str:
    """Return the path as it may be printed: control characters as escapes, at most 200 characters."""
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in path)
    return text if len(text) <= 200 else text[:200] + "…"


def is_git(part: str) -> bool:
    """Tell whether some file system takes this name for `.git`."""
    plain = _IGNORED.sub("", part).lower().rstrip(" .")
    # NTFS: what follows a colon names a stream of the same file (".git::$INDEX_ALLOCATION", ".git:$I30:…").
    return plain in (".git", "git~1") or plain.startswith((".git:", "git~1:", ".git\\"))


def _file_offences(file: FileDiff) -> Iterable[str]:
    for mode in {file.old_mode, file.new_mode}:
        if mode not in _MODES:
            yield "submodules are not for patches" if mode == "160000" else f"file mode {mode[:20]}"
    if file.new_mode != _LINK or file.status == "deleted":
        return
    if _IGNORED.sub("", file.path.rpartition("/")[2]).lower().partition(":")[0].rstrip(" .") in _READ_BY_GIT:
        yield "symbolic link in the place of a file that git reads"
    if file.binary:
        yield "symbolic link in a binary patch"
        return
    for target in file.lines("+"):
        if target.startswith("/"):
            yield f"symbolic link to the absolute path {shown(target)}"
        elif normpath(join(dirname(file.path), target)).startswith(".."):
            yield f"symbolic link target {shown(target)} is outside the tree"
        elif any(is_git(part) for part in target.split("/")):
            yield "symbolic link into a .git directory"
