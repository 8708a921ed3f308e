"""Stage intake: what the user named to one Series.

In: a path (mbox, .patch, .eml, .txt, a directory of patches) or "-" for stdin. Out: Outcome[Series]. Refused with
UsageError: a source that cannot be read, is empty, or holds no patch at all.
"""

from __future__ import annotations

import codecs
import time
from pathlib import Path
from typing import TYPE_CHECKING

from reviewbot.errors import UsageError
from reviewbot.model import Outcome, Series, StageResult, Status
from reviewbot.parse.mail import split_lines, split_messages
from reviewbot.parse.patch import Mail, read_mail
from reviewbot.parse.series import Assembly, Skipped, assemble

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

STAGE = "intake"
MAX_INPUT_BYTES = 1024 * 1024 * 1024
_PATCH_NAMES = (".patch", ".diff", ".eml", ".mbox", ".txt", ".mail")


def intake(source: str, *, stdin: bytes | None = None) -> Outcome[Series]:
    """Read source and return the one series that it holds.

    stdin is the whole input when source is "-". The result is SKIP, without a value, when the source is mail but no
    patch series (a pull request, bot mail, a cover letter alone). Raises UsageError for a source that cannot be used,
    and for one that holds several series.
    """
    started = time.monotonic()
    mails, one_series = read_source(source, stdin=stdin)
    assembly = assemble(mails, source=source, one_series=one_series)
    return _outcome(source, assembly, time.monotonic() - started)


def read_source(source: str, *, stdin: bytes | None = None) -> tuple[list[Mail], bool]:
    """Return the mails of a source, and whether they are one series by the way in which they came (a directory)."""
    if source == "-":
        return _mails(stdin or b"", "stdin"), False
    path = Path(source)
    try:
        if path.is_dir():
            return _directory(path), True
        return _mails(_read(path), source), False
    except OSError as error:
        msg = f"{source}: {error.strerror or error}"
        raise UsageError(msg) from error


def _read(path: Path) -> bytes:
    if not path.exists():
        msg = f"{path}: no such file"
        raise UsageError(msg)
    if not path.is_file():
        msg = f"{path}: neither a file nor a directory"
        raise UsageError(msg)
    size = path.stat().st_size
    if size > MAX_INPUT_BYTES:
        msg = f"{path}: {size} bytes are above the limit MAX_INPUT_BYTES ({MAX_INPUT_BYTES})"
        raise UsageError(msg)
    return path.read_bytes()


def _directory(path: Path) -> list[Mail]:
    series = path / "series"
    if series.is_file():
        words = [line.split("#")[0].split() for line in series.read_text("utf-8", "replace").split("\n")]
        files = [path / word[0] for word in words if word]
    else:
        files = sorted(p for p in path.iterdir() if p.is_file() and p.suffix.lower() in _PATCH_NAMES)
    if not files:
        msg = f"{path}: no patch files ({', '.join(_PATCH_NAMES)}) in this directory"
        raise UsageError(msg)
    return [mail for file in files for mail in _mails(_read(file), str(file))]


def _mails(data: bytes, name: str) -> list[Mail]:
    if not data.strip():
        msg = f"{name}: empty"
        raise UsageError(msg)
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        data = data.decode("utf-16", "replace").encode("utf-8")
    data = data.removeprefix(codecs.BOM_UTF8)
    return list(_read_all(split_lines(data)))


def _read_all(lines: Iterable[bytes]) -> Iterator[Mail]:
    for raw in split_messages(lines):
        yield read_mail(raw.data, oversized=raw.oversized)


def _outcome(source: str, assembly: Assembly, duration_s: float) -> Outcome[Series]:
    facts = tuple((f"left out: {s.reason}", s.subject or s.msgid) for s in assembly.skipped[:50])
    if len(assembly.series) > 1:
        shown = "; ".join(s.title for s in assembly.series[:5])
        msg = f"{source}: {len(assembly.series)} different series ({shown}): give one of them"
        raise UsageError(msg)
    if not assembly.series:
        return Outcome(result=_nothing(source, assembly.skipped, facts, duration_s))
    series = assembly.series[0]
    result = StageResult(
        stage=STAGE,
        status=Status.PASS,
        summary=_summary(series),
        duration_s=duration_s,
        facts=(*_facts(series), *facts),
    )
    return Outcome(result=result, value=series)


def _nothing(
    source: str, skipped: tuple[Skipped, ...], facts: tuple[tuple[str, str], ...], duration_s: float
) -> StageResult:
    if all(s.reason == "no patch" for s in skipped):
        msg = f"{source}: no patch in it"
        raise UsageError(msg)
    reasons = ", ".join(dict.fromkeys(s.reason for s in skipped))
    summary = f"no patch series: {reasons}"
    return StageResult(stage=STAGE, status=Status.SKIP, summary=summary, duration_s=duration_s, facts=facts)


def _summary(series: Series) -> str:
    count = len(series.patches)
    words = [f"{count} patch{'es' * (count != 1)}", f"v{series.revision}"]
    if series.missing:
        words.append(f"incomplete: {series.missing_ranges} of {series.total} missing")
    return ", ".join(words)


def _facts(series: Series) -> list[tuple[str, str]]:
    facts = [("title", series.title), ("author", series.author or "none"), ("revision", f"v{series.revision}")]
    facts.append(("patches", f"{len(series.patches)} of {series.total}"))
    optional = (
        ("prefixes", " ".join(series.prefixes)),
        ("base-commit", series.base_commit),
        ("change-id", series.change_id),
        ("prerequisites", ", ".join(series.prerequisites)),
    )
    facts += [(name, value) for name, value in optional if value]
    return facts + [("note", note) for note in series.notes]
