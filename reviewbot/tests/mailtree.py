"""A small git repository that holds just what the hunks of a case expect to find, so that no kernel tree is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reviewbot.parse.diff import FileDiff, parse_diff
from reviewbot.tools.git import git_bytes, must

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from reviewbot.model import Series

# What a kernel tree has in its root, so that a series that adds files to known folders is told from another project's.
_ROOT = {
    "Makefile": b"# a tree\n",
    "lib/Kconfig": b"#\n",
    "kernel/Makefile": b"#\n",
    "tools/testing/Makefile": b"#\n",
    "include/linux/kernel.h": b"#\n",
}


def files_for(series: Series) -> dict[str, bytes]:
    """Return the files as they are before the series: hunks at their lines, filler in between."""
    states: dict[str, dict[int, str]] = {}
    created: set[str] = set()
    for patch in series.patches:
        for file in parse_diff(patch.diff).files:
            if file.status == "created":
                created.add(file.new)
            elif file.old and file.old not in created and ".." not in file.old:
                lines = states.setdefault(file.old, {})
                _lay(file, lines)
    return {path: _text(lines) for path, lines in states.items()}


def _lay(file: FileDiff, lines: dict[int, str]) -> None:
    for hunk in file.hunks:
        for offset, line in enumerate(hunk.side("-")):
            lines.setdefault(max(1, hunk.old_start) + offset, line)


def _text(lines: dict[int, str]) -> bytes:
    last = max(lines, default=1)
    return "".join(f"{lines.get(n, f'filler {n}')}\n" for n in range(1, last + 1)).encode()


def make_repo(
    path: Path,
    files: dict[str, bytes],
    more: Iterable[dict[str, bytes]] = (),
    *,
    links: frozenset[str] = frozenset(),
) -> str:
    """Make a bare repository at path with one commit a dict of files; return the last commit's id.

    The names in links become symbolic links, whose content is their target.
    """
    must(None, "init", "-q", "--bare", "--initial-branch=main", str(path))
    stream = b"feature done\n"
    for files_of_commit in ({**_ROOT, **files}, *more):
        stream += b"commit refs/heads/main\ncommitter A <a@example.com> 1700000000 +0000\ndata 1\nx\n"
        for name, data in files_of_commit.items():
            mode = b"120000" if name in links else b"100644"
            stream += b'M %s inline "%s"\ndata %d\n%s\n' % (mode, name.encode(), len(data), data)
    git_bytes(path, "fast-import", "--quiet", "--done", stdin=[stream + b"done\n"])
    return must(path, "rev-parse", "HEAD")
