"""Patches onto a commit without a work tree: a small index of the touched files alone, and commits made from it.

In: a bare repository, a commit and the paths that the patches touch. Out: how `git apply --cached` took each patch, and
a chain of commits whose ids depend on the input alone. A kernel tree of 93,000 files costs nothing here: git reads only
the directories on the way to the touched files. Nothing is written but blobs, commits and the scratch directory.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reviewbot.errors import InfraError
from reviewbot.tools.git import IDENTITY, git, git_bytes
from reviewbot.tools.objects import TreeEntry, read_objects, tree_entries

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from reviewbot.run import Completed

# Attributes that a tree (or a patch to it) sets must not change what is checked out or compared.
_NO_ATTRIBUTES = "* -text !eol -filter -ident !working-tree-encoding !merge !diff\n"
_OFFSET = re.compile(r"succeeded at \d+ \(offset (-?\d+) lines?\)|Context reduced to \(\d+/\d+\)", re.MULTILINE)
_ABSENT = "0" * 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One commit to be made: author name and address, seconds since the epoch and zone, message, and changed files.

    files maps a path to its new entry, or to None for a path that goes away.
    """

    name: str
    address: str
    epoch: int
    zone: str
    message: str
    files: Mapping[str, TreeEntry | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """How git took one patch: ok, moved (to other lines than the patch names), reduced (with fuzz), and git's words."""

    ok: bool = False
    moved: bool = False
    reduced: bool = False
    output: str = ""
    command: str = ""

    @property
    def first_error(self) -> str:
        """Return git's first error line, without its prefix."""
        lines = [line for line in self.output.split("\n") if line.startswith("error: ")]
        lines = [line for line in lines if not line.startswith("error: while searching for")] or lines
        return lines[0].removeprefix("error: ") if lines else self.output.strip().split("\n")[0]


class SmallIndex:
    """An index file over one commit, with those of the paths that the commit has."""

    def __init__(self, repo: Path, commit: str, paths: Iterable[str], scratch: Path, log: Path | None = None) -> None:
        """Make the index in scratch; paths that the commit does not have are simply not in it."""
        self.repo = repo
        self.scratch = scratch
        self.log = log
        self._file = scratch / "index"
        self._number = 0
        found = tree_entries(repo, commit, paths)
        self.entries = {path: entry for path, entry in found.items() if entry.mode != "040000"}
        self.folders = frozenset(path for path, entry in found.items() if entry.mode == "040000")
        self.start = dict(self.entries)
        self.restore(self.entries)

    @property
    def env(self) -> dict[str, str]:
        """The environment that makes git use this index."""
        return {"GIT_INDEX_FILE": str(self._file)}

    def restore(self, entries: Mapping[str, TreeEntry]) -> None:
        """Make the index hold these entries and no others."""
        self._file.unlink(missing_ok=True)
        lines = b"".join(
            f"{e.mode} {e.oid} 0\t{path}\0".encode("utf-8", "surrogateescape") for path, e in entries.items()
        )
        git_bytes(self.repo, "update-index", "-z", "--index-info", env=self.env, stdin=[lines])
        self.entries = dict(entries)

    def contents(self, paths: Sequence[str]) -> dict[str, bytes]:
        """Return the bytes of the paths that the index has."""
        known = [path for path in paths if path in self.entries]
        objects = read_objects(self.repo, [self.entries[path].oid for path in known])
        return {path: one.data for path, one in zip(known, objects, strict=True) if one is not None}

    def apply(self, diff: bytes, *, options: Sequence[str] = (), check: bool = False) -> Attempt:
        """Apply diff to the index (or only try, with check); options are git-apply(1)'s, constants of ours."""
        self._number += 1
        file = self.scratch / f"{self._number:04}.diff"
        file.write_bytes(diff)
        words = [
            "apply",
            "--cached",
            "--verbose",
            "--whitespace=nowarn",
            *(["--check"] if check else []),
            *options,
            str(file),
        ]
        done = git(self.repo, *words, env=self.env, log=self.log, timeout_s=120)
        if done.ok and not check:
            self.entries = self._read()
        return _attempt(done)

    def tree(self) -> str:
        """Write the index as a tree that holds the touched files alone, and return its id."""
        return git_bytes(self.repo, "write-tree", env=self.env).decode().strip()

    def diff(self, old: str, new: str) -> bytes:
        """Return the diff of two such trees, as git shows it."""
        return git_bytes(
            self.repo, "diff-tree", "-p", "--full-index", "--binary", "--no-ext-diff", "--no-textconv", old, new
        )

    def _read(self) -> dict[str, TreeEntry]:
        data = git_bytes(self.repo, "ls-files", "-s", "-z", env=self.env)
        found = {}
        for record in data.split(b"\0"):
            if record:
                words, _, path = record.partition(b"\t")
                mode, oid, _ = words.decode().split(" ")
                found[path.decode("utf-8", "surrogateescape")] = TreeEntry(mode, oid)
        return found


def _attempt(done: Completed) -> Attempt:
    return Attempt(
        ok=done.ok,
        moved=bool(_OFFSET.search(done.output)),
        reduced="Context reduced to" in done.output,
        output=done.output,
        command=done.command,
    )


def changes(before: Mapping[str, TreeEntry], after: Mapping[str, TreeEntry]) -> dict[str, TreeEntry | None]:
    """Return what differs between two states of an index; None for a path that went away."""
    paths = before.keys() | after.keys()
    return {path: after.get(path) for path in sorted(paths) if before.get(path) != after.get(path)}


def make_commits(repo: Path, base: str, commits: Sequence[Commit]) -> list[str]:
    """Make the chain of commits on base and return their ids; the same input gives the same ids.

    A ref below refs/reviewbot/applied/ keeps them. Raises InfraError when git refuses.
    """
    if not commits:
        return []
    body = b"".join(_fast_import(index, base, commit) for index, commit in enumerate(commits, 1))
    ref = f"refs/reviewbot/applied/{hashlib.sha256(base.encode() + body).hexdigest()[:24]}"
    marks = b"".join(b"get-mark :%d\n" % index for index in range(1, len(commits) + 1))
    stream = body.replace(b"@REF@", ref.encode()) + marks + b"done\n"
    data = git_bytes(repo, "fast-import", "--quiet", "--done", "--force", stdin=[b"feature done\n", stream])
    ids = data.decode().split()
    if len(ids) != len(commits):
        msg = "git fast-import: did not name every commit"
        raise InfraError(msg)
    return ids


def _fast_import(number: int, base: str, commit: Commit) -> bytes:
    message = commit.message.encode("utf-8", "replace")
    when = f"{commit.epoch} {commit.zone}"
    author = f"author {_person(commit.name)} <{_person(commit.address)}> {when}\n"
    lines = [
        b"commit @REF@\n",
        b"mark :%d\n" % number,
        author.encode("utf-8", "replace"),
        f"committer {IDENTITY[0]} <{IDENTITY[1]}> {when}\n".encode(),
        b"data %d\n" % len(message),
        message,
        b"\n",
        f"from {base}\n".encode() if number == 1 else b"from :%d\n" % (number - 1),
    ]
    for path, entry in commit.files.items():
        name = _quoted(path)
        lines.append(b"D " + name + b"\n" if entry is None else f"M {entry.mode} {entry.oid} ".encode() + name + b"\n")
    return b"".join([*lines, b"\n"])


def _quoted(path: str) -> bytes:
    data = path.encode("utf-8", "surrogateescape").replace(b"\\", b"\\\\").replace(b'"', b'\\"')
    return b'"' + data + b'"'


def _person(text: str) -> str:
    return re.sub(r"[<>\x00-\x1f\x7f]", "", text).strip()


def ignore_attributes(repo: Path) -> None:
    """Make git ignore here every attribute that a tree or a patch sets: info/attributes outranks them."""
    file = repo / "info" / "attributes"
    try:
        if not file.exists() or file.read_text("utf-8") != _NO_ATTRIBUTES:
            file.parent.mkdir(exist_ok=True)
            file.write_text(_NO_ATTRIBUTES, encoding="utf-8")
    except OSError as error:
        msg = f"{file}: {error.strerror}"
        raise InfraError(msg) from error
