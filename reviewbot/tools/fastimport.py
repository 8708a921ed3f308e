"""Turn a source tarball into one commit of a bare git repository.

In: a tar file, plain or compressed with xz, gzip or bzip2. Out: one commit on refs/heads/main, in one pack, without
loose objects. Author, committer, date and message are fixed, so the same content gives the same commit id everywhere.
Refused: a member whose path leaves the tree or enters ``.git``, device files, a damaged or cut-off archive.

The stream goes straight from the archive into git-fast-import(1), never through 93,000 files on disk.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import re
import tarfile
import zlib
from typing import IO, TYPE_CHECKING, cast

from reviewbot.errors import InfraError, UsageError
from reviewbot.tools.git import IDENTITY, git, must

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

BRANCH = "refs/heads/main"
# 1 January 2000, UTC: any fixed time will do, and git's tools dislike the epoch itself.
_WHEN = "946684800 +0000"
_DAMAGED = (tarfile.TarError, lzma.LZMAError, zlib.error, gzip.BadGzipFile, EOFError)
_OPENERS: tuple[tuple[bytes, Callable[[Path], IO[bytes]]], ...] = (
    (b"\xfd7zXZ\x00", lambda path: cast("IO[bytes]", lzma.LZMAFile(path))),  # noqa: SIM115 its caller closes it
    (b"\x1f\x8b", lambda path: cast("IO[bytes]", gzip.GzipFile(path))),
    (b"BZh", lambda path: cast("IO[bytes]", bz2.BZ2File(path))),
)
_BATCH_BYTES = 128 * 1024
# Without deltas: fast-import would try each file against the one before it, which costs a minute and saves little.
_OPTIONS = ("-c", "fastimport.unpackLimit=0", "-c", "pack.compression=1")


def import_tarball(
    repo: Path,
    tarball: Path,
    *,
    message: str,
    on_progress: Callable[[str], None] | None = None,
    timeout_s: float = 1800,
) -> str:
    """Make the bare repository repo out of tarball and return the id of its only commit.

    The archive's single top directory, if it has one, is stripped. on_progress gets a line now and then.

    Raises UsageError when the archive is damaged, hostile or empty, InfraError when git fails (disk full, no git).
    """
    must(None, "init", "--quiet", "--bare", "--initial-branch=main", "--", str(repo))
    try:
        chunks = _stream(tarball, message, on_progress)
        done = git(repo, *_OPTIONS, "fast-import", "--quiet", "--done", "--depth=0", stdin=chunks, timeout_s=timeout_s)
    except _DAMAGED as error:
        msg = f"{tarball}: damaged, or not a tar archive ({error})"
        raise UsageError(msg) from error
    if not done.ok:
        last = (done.stderr.strip().splitlines() or [f"exit status {done.exit_status}"])[0]
        msg = f"git fast-import of {tarball}: {last}"
        raise InfraError(msg)
    return must(repo, "rev-parse", "--verify", BRANCH)


def _stream(tarball: Path, message: str, on_progress: Callable[[str], None] | None) -> Iterator[bytes]:
    # The fast-import commands, in batches: a write a member would cost 93,000 system calls more.
    batch = bytearray()
    with _opened(tarball) as plain:
        for piece in _commands(plain, str(tarball), message, on_progress):
            batch += piece
            if len(batch) >= _BATCH_BYTES:
                yield bytes(batch)
                batch.clear()
    yield bytes(batch)


def _opened(tarball: Path) -> IO[bytes]:
    try:
        with tarball.open("rb") as file:
            start = file.read(6)
        return next((opener for magic, opener in _OPENERS if start.startswith(magic)), lambda p: p.open("rb"))(tarball)
    except OSError as error:
        msg = f"{tarball}: {error.strerror}"
        raise UsageError(msg) from error


def _commands(plain: IO[bytes], name: str, message: str, on_progress: Callable[[str], None] | None) -> Iterator[bytes]:
    text = message.encode()
    who = f"{IDENTITY[0]} <{IDENTITY[1]}> {_WHEN}"
    yield f"feature done\ncommit {BRANCH}\ncommitter {who}\ndata {len(text)}\n".encode() + text + b"\n"
    tops: set[bytes] = set()
    files = 0
    with tarfile.open(fileobj=plain, mode="r|", bufsize=1 << 20, encoding="utf-8", errors="surrogateescape") as archive:
        for member in archive:
            archive.members = []  # type: ignore[attr-defined]  # a streamed archive keeps every header otherwise
            parts = _parts(member.name, name)
            if not parts or member.isdir():
                continue
            # A file at the top means that there is no directory to strip: b"" makes tops hold two names.
            tops |= {parts[0], b""} if len(parts) == 1 else {parts[0]}
            yield from _entry(archive, member, b"/".join(parts), name)
            files += 1
            if on_progress and files % 5000 == 0:
                on_progress(f"{files} files imported")
    if not files:
        msg = f"{name}: holds no files"
        raise UsageError(msg)
    if len(tops) == 1:
        yield b'R %s ""\n' % _quoted(tops.pop())
    yield b"\ndone\n"


def _parts(path: str, name: str) -> list[bytes]:
    # The components of a member's path, or UsageError when it could leave the tree.
    parts = [part for part in os.fsencode(path).split(b"/") if part not in (b"", b".")]
    if path.startswith("/") or any(part == b".." or part.lower() == b".git" for part in parts):
        msg = f"{name}: refused, its member {path!r} leaves the tree"
        raise UsageError(msg)
    return parts


def _entry(archive: tarfile.TarFile, member: tarfile.TarInfo, path: bytes, name: str) -> Iterator[bytes]:
    if member.issym():
        target = os.fsencode(member.linkname)
        yield b"M 120000 inline %s\ndata %d\n%s\n" % (_quoted(path), len(target), target)
    elif member.islnk():
        yield b"C %s %s\n" % (_quoted(b"/".join(_parts(member.linkname, name))), _quoted(path))
    elif member.isfile():
        mode = b"100755" if member.mode & 0o100 else b"100644"
        yield b"M %s inline %s\ndata %d\n" % (mode, _quoted(path), member.size)
        body = cast("IO[bytes]", archive.extractfile(member))
        while chunk := body.read(_BATCH_BYTES):
            yield chunk
        yield b"\n"
    else:
        msg = f"{name}: refused, its member {member.name!r} is neither a file, a directory nor a link"
        raise UsageError(msg)


def _quoted(path: bytes) -> bytes:
    # C-style quoting, as git-fast-import(1) wants it for any path that holds a space, a quote or a line feed.
    escaped = re.sub(rb'[\x00-\x1f"\\\x7f]', lambda match: b"\\%03o" % match[0][0], path)
    return b'"%s"' % escaped
