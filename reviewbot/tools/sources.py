"""Where mail comes from: files, maildirs, patch directories, a range of commits, an archive, the network.

In: what the user named. Out: a Source: its mails, and whether they are one series by the way in which they came.
Refused with UsageError, in one line that names the thing: what cannot be read, is empty, or is above a limit.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import re
import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol

from reviewbot.errors import UsageError
from reviewbot.parse.attached import read_mails
from reviewbot.parse.diff import parse_diff
from reviewbot.parse.light import light
from reviewbot.parse.mail import RawMessage, split_messages
from reviewbot.parse.strip import with_one_prefix
from reviewbot.tools.git import git, git_bytes
from reviewbot.tools.inboxindex import thread_of
from reviewbot.tools.lore import fetch_thread, is_remote, message_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from reviewbot.parse.patch import Mail

MAX_INPUT_BYTES = 1024 * 1024 * 1024
MAX_LINE_BYTES = 8 * 1024 * 1024
MAX_MAILS = 100_000
MAX_RANGE = 1000
_PATCH_NAMES = (".patch", ".diff", ".eml", ".mbox", ".txt", ".mail")
_RANGE = re.compile(r"(?P<from>[^\s.]\S*?)\.\.(?P<to>[^\s.]\S*)?")
# What a quilt series file says of a patch: how many components go off its names.
_LEVEL = re.compile(r"-p([0-9])")
_MESSAGE_ID = re.compile(r"<?[^\s<>/]+@[^\s<>/]+>?")


class _Lines(Protocol):
    # What a plain and a compressed file have in common.
    def read(self, size: int, /) -> bytes: ...
    def readline(self, size: int, /) -> bytes: ...


_COMPRESSED: dict[bytes, Callable[[BinaryIO], _Lines]] = {
    b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\x00": lzma.LZMAFile,
}


_BROKEN = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The mails of a source.

    one_series: they are one series, in this order (a directory, a range of commits). by_id: they are the thread of a
    message id that the user named.
    """

    mails: tuple[Mail, ...]
    one_series: bool = False
    by_id: bool = False
    notes: tuple[str, ...] = ()


def read_source(
    source: str,
    *,
    stdin: bytes | None = None,
    repo: Path | None = None,
    inbox: Path | None = None,
    index: Path | None = None,
) -> Source:
    """Read what source names and return its mails.

    source is "-" (stdin), a path, ``BASE..HEAD`` in repo, a message id (looked up in inbox, else on lore through b4),
    or a lore or Patchwork URL. index is where the index of the inbox is kept. Raises UsageError.
    """
    if not source.strip():
        msg = "an empty word is no source: give a file, a directory, a message id, a URL, BASE..HEAD, or -"
        raise UsageError(msg)
    if source == "-":
        return Source(mails=tuple(_read_stream(io.BytesIO(stdin or b""), "stdin")))
    if inbox is not None:
        return Source(mails=tuple(thread_of(inbox, message_id(source), index)), by_id=True)
    path = Path(source)
    try:
        if path.is_dir():
            return _directory(path)
        if path.exists():
            return Source(mails=tuple(_file(path)))
    except OSError as error:
        msg = f"{source}: {error.strerror or error}"
        raise UsageError(msg) from error
    if repo is not None and (match := _RANGE.fullmatch(source)):
        return _range(repo, source, match["from"], match["to"] or "HEAD")
    if is_remote(source) or _MESSAGE_ID.fullmatch(source):
        return Source(mails=tuple(read_all(fetch_thread(source), source)), by_id="@" in source)
    msg = f"{source}: no such file"
    raise UsageError(msg)


def is_mailbox(path: Path) -> bool:
    """Tell whether path is one file, or a maildir, and no repository."""
    return path.is_file() or (path.is_dir() and any((path / part).is_dir() for part in ("cur", "new")))


def raw_messages(path: Path) -> Iterator[RawMessage]:
    """Yield the messages of an mbox (compressed or not) or a maildir of any size, one at a time. Raises UsageError."""
    for file in _maildir(path) if path.is_dir() else [path]:
        try:
            with file.open("rb") as opened:
                yield from split_messages(_plain(opened, limit=0))
        except _BROKEN as error:
            msg = f"{file}: broken compressed file: {error}"
            raise UsageError(msg) from error
        except OSError as error:
            msg = f"{file}: {error.strerror or error}"
            raise UsageError(msg) from error


def _file(path: Path) -> list[Mail]:
    if not path.is_file():
        msg = f"{path}: neither a file nor a directory"
        raise UsageError(msg)
    with path.open("rb") as file:
        return _read_stream(file, str(path))


def _read_stream(file: BinaryIO, name: str) -> list[Mail]:
    try:
        return read_all(_plain(file), name)
    except _BROKEN as error:
        msg = f"{name}: broken compressed file: {error}"
        raise UsageError(msg) from error


def _plain(file: BinaryIO, limit: int = MAX_INPUT_BYTES) -> Iterator[bytes]:
    # The lines of a file that may be compressed or UTF-16, within the limit (0 for none).
    head = file.read(6)
    file.seek(0)
    opener = next((one for magic, one in _COMPRESSED.items() if head.startswith(magic)), None)
    stream: _Lines = opener(file) if opener else file
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        text = stream.read(MAX_INPUT_BYTES).decode("utf-16", "replace")
        stream = io.BytesIO(text.encode("utf-8"))
    total = 0
    for number, line in enumerate(iter(lambda: stream.readline(MAX_LINE_BYTES), b"")):
        total += len(line)
        if total > limit > 0:
            msg = f"more than {limit} bytes (limit MAX_INPUT_BYTES)"
            raise UsageError(msg)
        yield line.removeprefix(codecs.BOM_UTF8) if number == 0 else line


def read_all(lines: Iterator[bytes], name: str) -> list[Mail]:
    """Return the mails that the lines hold. Raises UsageError (with name) when there is nothing at all."""
    raws = _limited(split_messages(lines), name)
    mails = [light(mail) for raw in raws for mail in read_mails(raw.data, oversized=raw.oversized)]
    if not mails:
        msg = f"{name}: empty"
        raise UsageError(msg)
    return mails


def _limited(raws: Iterator[RawMessage], name: str) -> Iterator[RawMessage]:
    for count, raw in enumerate(raws, 1):
        if count > MAX_MAILS:
            msg = f"{name}: more than {MAX_MAILS} mails (limit MAX_MAILS): cut it, or read it as an archive"
            raise UsageError(msg)
        yield raw


def _directory(path: Path) -> Source:
    if (path / "cur").is_dir() or (path / "new").is_dir():
        files = _maildir(path)
        return Source(mails=tuple(m for f in files for m in _mails_of(f)) or _no_mail(path))
    series = path / "series"
    if series.is_file():
        return _quilt(path, series)
    files = sorted(p for p in path.iterdir() if p.is_file() and p.suffix.lower() in _PATCH_NAMES)
    if not files:
        msg = f"{path}: no patch files ({', '.join(_PATCH_NAMES)}), no maildir and no quilt series in this directory"
        raise UsageError(msg)
    return Source(mails=tuple(m for f in files for m in _mails_of(f)), one_series=True)


def _maildir(path: Path) -> list[Path]:
    return sorted(f for part in ("cur", "new") for f in (path / part).glob("*") if f.is_file())


def _no_mail(path: Path) -> tuple[Mail, ...]:
    msg = f"{path}: a maildir without mail"
    raise UsageError(msg)


def _mails_of(file: Path) -> list[Mail]:
    return _file(file) if file.stat().st_size else []


def _quilt(path: Path, series: Path) -> Source:
    names = [line.split("#")[0].split() for line in series.read_text("utf-8", "replace").split("\n")]
    mails: list[Mail] = []
    for words in filter(None, names):
        file = path / words[0]
        if not file.resolve().is_relative_to(path.resolve()):
            msg = f"{series}: {words[0]} is outside the directory"
            raise UsageError(msg)
        if not file.is_file():
            msg = f"{series}: {words[0]}: no such file"
            raise UsageError(msg)
        level = next((int(m[1]) for word in words[1:] if (m := _LEVEL.fullmatch(word))), 1)
        mails += [_stripped(mail, level) for mail in _mails_of(file)]
    if not mails:
        msg = f"{series}: empty"
        raise UsageError(msg)
    return Source(mails=tuple(mails), one_series=True)


def _stripped(mail: Mail, level: int) -> Mail:
    if level == 1:
        return mail
    diff = with_one_prefix(mail.patch.diff, level)
    files = tuple(dict.fromkeys(file.path for file in parse_diff(diff).files))
    note = f"the quilt series says -p{level}: read as -p1"
    return replace(mail, patch=replace(mail.patch, diff=diff, files=files, notes=(*mail.patch.notes, note)))


def _range(repo: Path, source: str, first: str, last: str) -> Source:
    ids = [_commit(repo, source, rev) for rev in (first, last)]
    span = f"{ids[0]}..{ids[1]}"
    count = int(git_bytes(repo, "rev-list", "--count", "--no-merges", span).decode())
    merges = int(git_bytes(repo, "rev-list", "--count", "--merges", span).decode())
    if not count:
        msg = f"{source}: no commits in this range"
        raise UsageError(msg)
    if count > MAX_RANGE:
        msg = f"{source}: {count} commits are above the limit MAX_RANGE ({MAX_RANGE})"
        raise UsageError(msg)
    data = git_bytes(
        repo, "format-patch", "--stdout", "--no-signature", "--full-index", "--binary", "-M", "--numbered", span
    )
    notes = (f"{merges} merge commits of the range are left out",) if merges else ()
    return Source(mails=tuple(_read_stream(io.BytesIO(data), source)), one_series=True, notes=notes)


def _commit(repo: Path, source: str, rev: str) -> str:
    done = git(repo, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{rev}^{{commit}}")
    if not done.ok:
        msg = f"{source}: {rev}: no such revision, and no such file"
        raise UsageError(msg)
    return done.stdout.strip()
