"""Commands on the trees that series are tested on."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from reviewbot.cli.common import AsJson, Quiet, note_to_stderr, open_cache
from reviewbot.errors import UsageError
from reviewbot.report.clean import one_line

commands = typer.Typer(no_args_is_help=True, help="Kernel trees that series are tested on.")


@commands.command("add")
def tree_add(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    source: Annotated[str, typer.Argument(metavar="[GIT-URL|PATH|TARBALL]", show_default=False)] = "",
    debian: Annotated[
        str, typer.Option("--debian", metavar="7.2[=VERSION]", help="The linux-source package of this version.")
    ] = "",
    quiet: Quiet = False,
) -> None:
    """Add a tree from a git repository, a source tarball or a Debian linux-source package."""
    from reviewbot.tools import tree as trees  # noqa: PLC0415

    if bool(source) == bool(debian):
        msg = f"tree add {name}: give either a git repository or tarball, or --debian VERSION"
        raise UsageError(msg)
    cache, note = open_cache(), note_to_stderr(quiet)
    if debian:
        added = trees.add_debian(cache, name, debian, note)
    elif Path(source).is_file():
        added = trees.add_tarball(cache, name, Path(source), note)
    else:
        added = trees.add_git(cache, name, source, note)
    print(f"{added.name}: {added.describe} ({added.kind}, commit {added.head[:12]})")
    if added.note:
        print(f"note: {one_line(added.note)}")


@commands.command("list")
def tree_list(as_json: AsJson = False) -> None:
    """List the trees."""
    from reviewbot.tools.tree import list_trees  # noqa: PLC0415

    found = list_trees(open_cache())
    if as_json:
        rows = [
            {"name": t.name, "kind": t.kind, "describe": t.describe, "head": t.head, "source": str(t.source)}
            for t in found
        ]
        print(json.dumps(rows, indent=1))
        return
    for tree in found:
        print(f"{tree.name:20} {tree.kind:8} {tree.describe:24} {tree.head[:12]}  {one_line(str(tree.source))}")
    if not found:
        print("no trees; add one: reviewbot tree add NAME --debian 7.2", file=sys.stderr)


@commands.command("remove")
def tree_remove(name: Annotated[str, typer.Argument(metavar="NAME")]) -> None:
    """Remove a tree and everything that was built from it."""
    from reviewbot.tools.tree import remove_tree  # noqa: PLC0415

    remove_tree(open_cache(), name)
    print(f"{name}: removed")
