"""Threads from the network: lore through the b4 program, Patchwork through its own mbox pages.

In: a message id, a lore URL or a Patchwork series URL. Out: the lines of an mbox. b4 is only ever a program, where it
is installed; without it, or without the network, the error says what to do instead.
"""

from __future__ import annotations

import re
import tempfile
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from reviewbot.errors import UsageError
from reviewbot.parse.mail import split_lines
from reviewbot.run import find, run

if TYPE_CHECKING:
    from collections.abc import Iterator

_TIMEOUT_S = 60.0
MAX_DOWNLOAD_BYTES = 64 * 1024 * 1024
_ID = re.compile(r"[^\s<>/]+@[^\s<>/]+")
_SERIES = re.compile(r"[?&]series=(\d{1,12})")


def is_remote(source: str) -> bool:
    """Tell whether source is a URL."""
    return source.startswith(("http://", "https://"))


def fetch_thread(source: str) -> Iterator[bytes]:
    """Return the lines of the thread's mbox. Raises UsageError with the reason and a way out."""
    if is_remote(source) and (url := patchwork_mbox(source)):
        return split_lines(_download(url))
    return split_lines(_through_b4(message_id(source)))


def message_id(source: str) -> str:
    """Return the message id that a lore URL or an id names. Raises UsageError when there is none."""
    parts = urlsplit(source).path.split("/") if is_remote(source) else [source]
    found = next((unquote(p).strip("<> ") for p in parts if "@" in unquote(p)), "")
    if not _ID.fullmatch(found) or found.startswith("-"):
        msg = f"{source}: neither a message id nor the address of a thread or a Patchwork series"
        raise UsageError(msg)
    return found


def patchwork_mbox(url: str) -> str:
    """Return the address of the mbox of a Patchwork series or patch, or an empty string for any other address."""
    parts = urlsplit(url)
    where = f"{parts.scheme}://{parts.netloc}"
    path = parts.path.rstrip("/")
    if path.endswith("/mbox"):
        return url
    if found := _SERIES.search(f"?{parts.query}"):
        return f"{where}/series/{found[1]}/mbox/"
    if re.search(r"/(series|patch|api/[\d.]+/series)/[^/]+$", path) and "patchwork" in parts.netloc + path:
        return f"{where}/series/{path.rsplit('/', 1)[1]}/mbox/" if "/api/" in path else f"{where}{path}/mbox/"
    return ""


def _download(url: str) -> bytes:
    request = urllib.request.Request(url, headers={"User-Agent": "reviewbot"})  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:  # noqa: S310
            data: bytes = answer.read(MAX_DOWNLOAD_BYTES + 1)
    except (OSError, ValueError) as error:
        msg = f"{url}: {error}: save the series as an mbox and give that"
        raise UsageError(msg) from error
    if len(data) > MAX_DOWNLOAD_BYTES:
        msg = f"{url}: more than {MAX_DOWNLOAD_BYTES} bytes (limit MAX_DOWNLOAD_BYTES)"
        raise UsageError(msg)
    return data


def _through_b4(msgid: str) -> bytes:
    if find("b4") is None:
        msg = f"{msgid}: needs the program b4 (not installed): install it, or save the thread as an mbox and give that"
        raise UsageError(msg)
    with tempfile.TemporaryDirectory(prefix="reviewbot-b4-") as name:
        place = Path(name)
        # Homes of its own: b4 writes down every series that it sees.
        env = {"XDG_DATA_HOME": name, "XDG_CACHE_HOME": name, "XDG_CONFIG_HOME": name, "GIT_CONFIG_GLOBAL": "/dev/null"}
        out = place / "out"
        out.mkdir()
        argv = ["b4", "-n", "--no-stdin", "mbox", "-o", str(out), "--", msgid]
        done = run(argv, timeout_s=_TIMEOUT_S, env=env, cwd=place)
        files = [f for f in out.rglob("*") if f.is_file()]
        if not done.ok or not files:
            lines = (done.stderr.strip() or done.stdout.strip() or "no answer").split("\n")
            msg = f"{msgid}: b4 could not fetch the thread: {lines[-1]}: save it as an mbox and give that"
            raise UsageError(msg)
        return b"".join(file.read_bytes() for file in files)
