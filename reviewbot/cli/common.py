"""What the commands share: the options of several commands, standard input, the cache, and the way out."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from reviewbot.errors import UsageError
from reviewbot.report.clean import one_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from reviewbot.model import Report
    from reviewbot.tools.cache import Cache

STDIN_LIMIT_BYTES = 128 << 20  # a series of 1,000 patches has some 30 MiB
EXIT_FAIL, EXIT_USAGE, EXIT_INCONCLUSIVE = 1, 2, 3

TreeName = Annotated[str, typer.Option("--tree", metavar="NAME", help="A tree of `reviewbot tree list`.")]
Out = Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Where the report goes.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print results.json on standard output.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress on the terminal.")]
Base = Annotated[str, typer.Option("--base", metavar="REV", help="Test on this revision of the tree.")]
Prereq = Annotated[
    list[str] | None,
    typer.Option("--prereq", metavar="FILE", help="A series to apply first; repeat for more, in order."),
]
Inbox = Annotated[
    Path | None,
    typer.Option(
        "--inbox", metavar="PATH", help="A public-inbox archive: message ids and prerequisites are found there."
    ),
]
SpecDirs = Annotated[
    list[Path] | None,
    typer.Option("--specs", metavar="DIR", help="Specs of your own, DIR/*.toml; repeat for more."),
]
Every = Annotated[bool, typer.Option("--all", help="Tests of every sample type, not only of those in the series.")]
Fragment = Annotated[
    list[str] | None, typer.Option("--kconfig", metavar="NAME", help="Fragments instead of the default ones.")
]

Coverage = Annotated[
    bool, typer.Option("--coverage", help="Measure which added lines the tests run (one more build and boot).")
]

Debug = Annotated[
    bool,
    typer.Option(
        "--debug", help="Run the tests on a kernel with KASAN, lockdep and kmemleak too (one more build, slow boots)."
    ),
]


def die(text: str, status: int) -> NoReturn:
    """Print one line on standard error and exit with status."""
    print(f"reviewbot: {one_line(text)}", file=sys.stderr)
    sys.exit(status)


def read_results(path: Path) -> Report:
    """Return the report in a results.json. Raises UsageError, which names the file."""
    from reviewbot.report.results import parse_results  # noqa: PLC0415 - the command line starts fast

    try:
        return parse_results(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, UsageError) as error:
        msg = f"{path}: {getattr(error, 'strerror', None) or error}"
        raise UsageError(msg) from error


def read_stdin(source: str) -> bytes | None:
    """Return standard input where source is ``-``, at most STDIN_LIMIT_BYTES (UsageError beyond); else None."""
    if source != "-":
        return None
    data = sys.stdin.buffer.read(STDIN_LIMIT_BYTES + 1)
    if len(data) > STDIN_LIMIT_BYTES:
        msg = f"-: standard input has more than {STDIN_LIMIT_BYTES >> 20} MiB (the limit); give a file"
        raise UsageError(msg)
    return data


def typed() -> str:
    """Return the command line as it was typed, quoted for a shell."""
    return shlex.join(["reviewbot", *sys.argv[1:]])


def open_cache() -> Cache:
    """Return the cache of this user."""
    from reviewbot.tools.cache import Cache, default_root  # noqa: PLC0415

    return Cache(default_root())


def note_to_stderr(quiet: bool) -> Callable[[str], None]:
    """Return what prints a line of progress on standard error, or nothing when quiet."""

    def note(text: str) -> None:
        if not quiet:
            print(one_line(text), file=sys.stderr, flush=True)

    return note
