"""Objects of a git repository, read in one go through `git cat-file --batch`: no name from a patch is ever an argument.

In: a repository and object names (`COMMIT:path`, hashes). Out: bytes, or tree entries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reviewbot.errors import InfraError
from reviewbot.tools.git import git_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """One entry of a git tree: mode ("100644", "120000", "040000", …) and object id."""

    mode: str
    oid: str


@dataclass(frozen=True, slots=True)
class GitObject:
    """One object: id, type, and its bytes."""

    oid: str
    kind: str
    data: bytes


def read_objects(repo: Path, names: Sequence[str]) -> list[GitObject | None]:
    """Return the object of each name, None for one that the repository does not have.

    A name with a line break has no object, nor has a path that is relative. Raises InfraError when git itself fails.
    """
    asked = _asked(names)
    found: list[GitObject | None] = [None] * len(names)
    if not asked:
        return found
    request = "".join(f"{name}\n" for _, name in asked).encode("utf-8", "surrogateescape")
    data = git_bytes(repo, "cat-file", "--batch", stdin=[request])
    at = 0
    for index, name in asked:
        end = data.find(b"\n", at)
        if end < 0:
            msg = "git cat-file: its output ends early"
            raise InfraError(msg)
        words = data[at:end].split(b" ")
        at = end + 1
        # "NAME missing", and NAME may hold blanks.
        if (
            words[-1] in (b"missing", b"ambiguous")
            or len(words) < 3
            or name.encode("utf-8", "surrogateescape") == data[at:end]
        ):
            continue
        size = int(words[2])
        found[index] = GitObject(words[0].decode(), words[1].decode(), data[at : at + size])
        at += size + 1
    return found


def object_facts(repo: Path, names: Sequence[str]) -> list[tuple[str, int] | None]:
    """Return id and size in bytes of each object, None for one that the repository does not have."""
    asked = _asked(names)
    found: list[tuple[str, int] | None] = [None] * len(names)
    if not asked:
        return found
    request = "".join(f"{name}\n" for _, name in asked).encode("utf-8", "surrogateescape")
    lines = git_bytes(repo, "cat-file", "--batch-check=%(objectsize) %(objectname)", stdin=[request]).split(b"\n")
    for (index, _), line in zip(asked, lines, strict=False):
        size, _, oid = line.partition(b" ")
        if size.isdigit() and len(oid) in (40, 64):
            found[index] = (oid.decode(), int(size))
    return found


def _asked(names: Sequence[str]) -> list[tuple[int, str]]:
    # `COMMIT:../path` makes git give up with all that it was asked, outside of a work tree.
    paths = ((i, name, name.partition(":")[2]) for i, name in enumerate(names) if "\n" not in name)
    return [(i, name) for i, name, path in paths if not path.startswith(("./", "../"))]


def tree_entries(repo: Path, commit: str, paths: Iterable[str]) -> dict[str, TreeEntry]:
    """Return the entries that a commit has for the paths; what it does not have is left out."""
    wanted = {path for path in paths if path}
    folders = sorted({path.rpartition("/")[0] for path in wanted})
    names = [f"{commit}:{folder}" if folder else f"{commit}^{{tree}}" for folder in folders]
    found: dict[str, TreeEntry] = {}
    for folder, tree in zip(folders, read_objects(repo, names), strict=True):
        if tree is None or tree.kind != "tree":
            continue
        for name, entry in _entries(tree.data, len(tree.oid) // 2):
            path = f"{folder}/{name}" if folder else name
            if path in wanted:
                found[path] = entry
    return found


def root_names(repo: Path, commit: str) -> set[str]:
    """Return the names in the root folder of a commit."""
    tree = read_objects(repo, [f"{commit}^{{tree}}"])[0]
    return {name for name, _ in _entries(tree.data, len(tree.oid) // 2)} if tree is not None else set()


def link_entries(repo: Path, commit: str) -> dict[str, TreeEntry]:
    """Return every symbolic link of a commit; the whole tree is listed, which takes a moment for a kernel."""
    found = {}
    for record in git_bytes(repo, "ls-tree", "-r", "-z", commit).split(b"\0"):
        if record.startswith(b"120000 "):
            words, _, path = record.partition(b"\t")
            mode, _, oid = words.decode().split(" ")
            found[path.decode("utf-8", "surrogateescape")] = TreeEntry(mode, oid)
    return found


def folder_files(repo: Path, commit: str, folder: str) -> list[tuple[str, str]]:
    """Return name and object id of the files directly in a folder of a commit; nothing when there is no such folder."""
    tree = read_objects(repo, [f"{commit}:{folder}" if folder else f"{commit}^{{tree}}"])[0]
    if tree is None or tree.kind != "tree":
        return []
    found = _entries(tree.data, len(tree.oid) // 2)
    return [(name, entry.oid) for name, entry in found if entry.mode in ("100644", "100755")]


def _entries(data: bytes, oid_size: int) -> Iterable[tuple[str, TreeEntry]]:
    at = 0
    while at < len(data):
        end = data.index(b"\0", at)
        mode, _, name = data[at:end].partition(b" ")
        oid = data[end + 1 : end + 1 + oid_size]
        yield name.decode("utf-8", "surrogateescape"), TreeEntry(mode.decode().zfill(6), oid.hex())
        at = end + 1 + oid_size
