"""Write a kselftest directory and compile it statically against a kernel's exported headers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reviewbot.errors import UsageError
from reviewbot.generate.rules import Tree
from reviewbot.run import Completed, run
from reviewbot.tools.git import git
from reviewbot.tools.make import jobs

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from reviewbot.model import Series

COMPILE_TIMEOUT_S = 600.0
# Names the files that we wrote, so that writing again replaces them and nothing else.
_MANIFEST = ".reviewbot-files"


def write_directory(directory: Path, files: Mapping[str, str]) -> None:
    """Make directory hold the files (relative path to content) and nothing else.

    A directory that holds something which is not from us is refused (UsageError): nothing of the user's is lost.
    """
    try:
        foreign = directory.exists() and (not directory.is_dir() or (any(directory.iterdir()) and not _ours(directory)))
        if foreign:
            msg = f"{directory}: exists and is not a directory that reviewbot made; give a new or empty one"
            raise UsageError(msg)
        directory.mkdir(parents=True, exist_ok=True)
        for name in (directory / _MANIFEST).read_text(encoding="utf-8").splitlines() if _ours(directory) else ():
            if name not in files and "/" not in name:
                (directory / name).unlink(missing_ok=True)
        for name, text in {**files, _MANIFEST: "\n".join(sorted(files)) + "\n"}.items():
            (directory / name).write_text(text, encoding="utf-8")
    except OSError as error:
        msg = f"{directory}: {error.strerror}"
        raise UsageError(msg) from error


def _ours(directory: Path) -> bool:
    return (directory / _MANIFEST).is_file()


def rules_tree(repo: Path, commit: str, header: str, series: Series) -> Tree:
    """Return where the rules stand: the header that is tested, and what the author says."""
    shown = git(repo, "show", f"{commit}:{header}")
    mails = [series.cover] if series.cover else []
    messages = tuple((p.subject, p.message) for p in [*mails, *series.patches])
    return Tree(header=shown.stdout if shown.ok else "", messages=messages)


def compile_directory(directory: Path, output: Path, headers: Path, log: Path) -> Completed:
    """Compile the programs into output; headers is the usr/include that ``make headers`` exported."""
    output.mkdir(parents=True, exist_ok=True)
    argv = ["make", f"-j{jobs()}", "-C", str(directory), f"OUTPUT={output}", f"KHDR_INCLUDES=-isystem {headers}"]
    return run(argv, timeout_s=COMPILE_TIMEOUT_S, log=log)
