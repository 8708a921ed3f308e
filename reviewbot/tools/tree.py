"""The store of kernel trees: what the user added under a name, as bare git repositories of ours in the cache.

A tree comes from a git repository (URL or path), from a tarball, or from a Debian linux-source package. The user's own
clone is only read. An add is atomic: the repository is made beside the others and renamed, and its record, written
last, is what makes it a tree; what an interrupted add left is removed by the next one.

On disk: trees/NAME.git, trees/NAME.json (the record), sources/NAME (the work tree), builds/NAME/, artefacts/NAME/.
"""

from __future__ import annotations

import contextlib
import re
import shutil
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from reviewbot.errors import InfraError, UsageError
from reviewbot.tools import apt, clone
from reviewbot.tools.fastimport import import_tarball
from reviewbot.tools.git import git, must

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from reviewbot.tools.cache import Cache

    Progress = Callable[[str], None]

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")
_READY = "reviewbot-worktree"


class TreeKind(StrEnum):
    """Where a tree comes from."""

    GIT = "git"
    TARBALL = "tarball"
    DEBIAN = "debian"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Record:
    # What NAME.json holds; the repository's place follows from the name.
    kind: TreeKind
    source: str
    head: str
    describe: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A kernel tree that reviews can name.

    repo is our bare repository. source is the URL, path or Debian request that it was added from. head is the commit
    that the source's HEAD named at the last add or refresh. describe is a human version (``7.2.9-1~bpo13+1``, or what
    git describe says). note is one line that the user must read, or empty: the mirror lacked the version asked for.
    """

    name: str
    repo: Path
    kind: TreeKind
    source: str
    head: str
    describe: str
    note: str = ""

    @property
    def verified(self) -> bool:
        """False for tarballs and Debian packages: their commit ids mean nothing elsewhere."""
        return self.kind is TreeKind.GIT


def add_git(cache: Cache, name: str, source: str | Path, on_progress: Progress | None = None) -> Tree:
    """Clone a git repository (URL or path, which is only read) as the tree name.

    Raises UsageError when the name is taken or unusable, or when the source is no repository with a commit.
    """
    with _adding(cache, name) as place:
        repo = place / "repo.git"
        origin = clone.clone(source, repo, on_progress)
        record = _Record(kind=TreeKind.GIT, source=origin, head=clone.head(repo), describe=clone.describe(repo))
        return _publish(cache, name, repo, record)


def refresh(cache: Cache, tree: Tree, on_progress: Progress | None = None) -> Tree:
    """Fetch what is new in a git tree's source and return the tree with its new head; other kinds do not change."""
    if tree.kind is not TreeKind.GIT:
        return tree
    with cache.lock(f"tree-{tree.name}"):
        clone.fetch(tree.repo, on_progress)
        head = clone.head(tree.repo)
        record = _Record(kind=tree.kind, source=tree.source, head=head, describe=clone.describe(tree.repo))
        return _record(cache, tree.name, record)


def add_tarball(cache: Cache, name: str, path: Path, on_progress: Progress | None = None) -> Tree:
    """Import a source tarball (.tar, .tar.xz, .tar.gz, .tar.bz2) as the tree name.

    Raises UsageError when the name is taken or unusable, or when the file is no kernel source.
    """
    with _adding(cache, name) as place:
        repo = place / "repo.git"
        head = import_tarball(repo, path, message="Import a source tarball\n", on_progress=on_progress)
        record = _Record(
            kind=TreeKind.TARBALL, source=str(path.absolute()), head=head, describe=_kernel_version(repo, path)
        )
        return _publish(cache, name, repo, record)


def add_debian(cache: Cache, name: str, request: str, on_progress: Progress | None = None) -> Tree:
    """Download and import a Debian linux-source package as the tree name.

    request is a series (``7.2``: its newest version) or ``SERIES=VERSION``. A version that the mirror no longer has is
    replaced by the nearest one of the series, and the tree's note says so.

    Raises UsageError when the name is taken, or when the mirror has no such series (the message lists those it has).
    """
    series, wanted = apt.parse_request(request)
    say = on_progress or (lambda _: None)
    with _adding(cache, name) as place:
        version, note = _choose(cache, series, wanted, say)
        for part in ("deb", "unpacked"):
            (place / part).mkdir()
        say(f"downloading linux-source-{series} {version}")
        deb = apt.download(cache, series, version, place / "deb")
        tarball = apt.source_tarball(deb, place / "unpacked")
        repo = place / "repo.git"
        head = import_tarball(repo, tarball, message=f"linux-source-{series} {version}\n", on_progress=on_progress)
        source = f"linux-source-{series}={version}"
        return _publish(
            cache,
            name,
            repo,
            _Record(kind=TreeKind.DEBIAN, source=source, head=head, describe=version, note=note),
        )


def _choose(cache: Cache, series: str, wanted: str, say: Progress) -> tuple[str, str]:
    # The version to import, and a note when it is not the one wanted.
    say("reading Debian's package lists")
    versions = apt.available_debian(cache, series)
    if wanted and wanted not in versions:
        versions = apt.available_debian(cache, series, refresh=True)
    if not versions:
        known = ", ".join(apt.available_series(cache))
        msg = f"the Debian mirror has no linux-source-{series}; it has {known or 'none'}"
        raise UsageError(msg)
    if not wanted or wanted in versions:
        return wanted or versions[0], ""
    version = apt.nearest(versions, wanted)
    return version, f"the Debian mirror no longer has {wanted}; {version} is the nearest version that it has"


def list_trees(cache: Cache) -> tuple[Tree, ...]:
    """Return every tree, by name."""
    return tuple(_load(cache, path.name.removesuffix(".json")) for path in sorted(cache.trees.glob("[!.]*.json")))


def other_repos(cache: Cache, name: str) -> dict[str, Path]:
    """Return the repositories of every tree but name, by their names."""
    return {tree.name: tree.repo for tree in list_trees(cache) if tree.name != name}


def get_tree(cache: Cache, name: str) -> Tree:
    """Return the tree called name; UsageError names the trees that there are when it is not one of them."""
    if not _NAME.fullmatch(name) or not (cache.trees / f"{name}.json").exists():
        known = ", ".join(tree.name for tree in list_trees(cache)) or "none; see `reviewbot tree add`"
        msg = f"no tree is called {name!r}; known trees: {known}"
        raise UsageError(msg)
    return _load(cache, name)


def remove_tree(cache: Cache, name: str) -> None:
    """Remove a tree, its work tree and its build directories; UsageError when it is unknown or a review uses it."""
    tree = get_tree(cache, name)
    with cache.lock(f"tree-{name}", wait=False), source_lock(cache, name, wait=False):
        (cache.trees / f"{name}.json").unlink(missing_ok=True)
        for path in (cache.sources / name, cache.builds / name, cache.artefacts / name, tree.repo):
            shutil.rmtree(path, ignore_errors=True)


def source_lock(
    cache: Cache, name: str, *, wait: bool = True, note: Callable[[str], None] | None = None
) -> contextlib.AbstractContextManager[None]:
    """Return the lock that a run holds while it uses the work tree of the tree called name (see Cache.lock).

    note is told when another run has it.
    """
    waiting = f"waiting for another run on {name} to end"
    return cache.lock(f"source-{name}", wait=wait, on_wait=(lambda: note(waiting)) if note else None)


def worktree(cache: Cache, tree: Tree) -> Path:
    """Return the tree's persistent work tree, sources/NAME: a git worktree of our bare repository, HEAD detached.

    The caller holds source_lock. It is made on first use (8 s for a kernel on 2 cores) and after damage; afterwards it
    is handed out as the last review left it, and the caller checks out what it needs, so that unchanged files keep
    their time stamps and make compiles only what differs.
    """
    path = cache.sources / tree.name
    ready = tree.repo / _READY
    if not (ready.exists() and path.is_dir() and _belongs(path, tree.repo)):
        ready.unlink(missing_ok=True)
        shutil.rmtree(path, ignore_errors=True)
        must(tree.repo, "worktree", "prune", "--expire=now")
        must(
            tree.repo,
            "-c", "checkout.workers=0",
            "worktree", "add", "--quiet", "--force", "--detach", "--", str(path), tree.head,
            timeout_s=900,
        )  # fmt: skip
        ready.touch()
    # A git that was killed leaves its lock behind; the source lock says that no git of ours runs now.
    Path(must(path, "rev-parse", "--absolute-git-dir"), "index.lock").unlink(missing_ok=True)
    return path


def _belongs(path: Path, repo: Path) -> bool:
    # Asked by name: a work tree that lost its .git file would be found in a repository around the cache.
    done = git(path, "rev-parse", "--path-format=absolute", "--git-common-dir", "--verify", "HEAD")
    return done.ok and Path(done.stdout.splitlines()[0]).resolve() == repo.resolve()


@contextlib.contextmanager
def _adding(cache: Cache, name: str) -> Iterator[Path]:
    # A directory to make the tree in, on the file system where it will stay, under the tree's lock.
    if not _NAME.fullmatch(name):
        msg = f"{name!r} cannot name a tree: letters, digits, dots, dashes and underscores, not starting with - or ."
        raise UsageError(msg)
    with cache.lock(f"tree-{name}"):
        if (cache.trees / f"{name}.json").exists():
            msg = f"a tree is called {name} already; `reviewbot tree remove {name}` removes it"
            raise UsageError(msg)
        place = cache.trees / f".adding-{name}"
        for stale in (place, cache.trees / f"{name}.git", cache.sources / name):
            shutil.rmtree(stale, ignore_errors=True)
        place.mkdir()
        try:
            yield place
        finally:
            shutil.rmtree(place, ignore_errors=True)


def _publish(cache: Cache, name: str, repo: Path, record: _Record) -> Tree:
    repo.rename(cache.trees / f"{name}.git")
    return _record(cache, name, record)


def _record(cache: Cache, name: str, record: _Record) -> Tree:
    path = cache.trees / f"{name}.json"
    part = cache.trees / f".{name}.json.part"
    try:
        part.write_bytes(msgspec.json.format(msgspec.json.encode(record)) + b"\n")
        part.replace(path)
    except OSError as error:
        msg = f"{path}: {error.strerror}"
        raise InfraError(msg) from error
    return _load(cache, name)


def _load(cache: Cache, name: str) -> Tree:
    path = cache.trees / f"{name}.json"
    try:
        record = msgspec.json.decode(path.read_bytes(), type=_Record)
    except (OSError, msgspec.DecodeError) as error:
        msg = f"{path}: unreadable ({error}); remove it and add the tree again"
        raise InfraError(msg) from error
    return Tree(
        name=name,
        repo=cache.trees / f"{name}.git",
        kind=record.kind,
        source=record.source,
        head=record.head,
        describe=record.describe,
        note=record.note,
    )


def _kernel_version(repo: Path, tarball: Path) -> str:
    # VERSION.PATCHLEVEL.SUBLEVEL of the top Makefile, else the tarball's name.
    shown = git(repo, "show", "HEAD:Makefile")
    if not shown.ok:
        msg = f"{tarball}: no kernel source, it has no Makefile at its top"
        raise UsageError(msg)
    makefile = git(
        repo, "grep", "-hE", "^(VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION) *=", "HEAD", "--", "Makefile"
    ).stdout
    values: dict[str, str] = dict(re.findall(r"^(\w+) *= *(\S*)", makefile, re.MULTILINE))
    if "VERSION" not in values:
        return tarball.name.split(".tar")[0]
    number = ".".join(values[key] for key in ("VERSION", "PATCHLEVEL", "SUBLEVEL") if values.get(key))
    return number + values.get("EXTRAVERSION", "")
