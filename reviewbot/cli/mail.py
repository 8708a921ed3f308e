"""Commands that read mail and test nothing."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from reviewbot.cli.common import EXIT_INCONCLUSIVE, AsJson, Base, Inbox, open_cache, read_results, read_stdin
from reviewbot.errors import UsageError
from reviewbot.report.clean import one_line, visible

commands = typer.Typer()


@commands.command()
def intake(
    source: Annotated[
        str | None, typer.Argument(metavar="[SOURCE]", help="Mail in any form, a message id or URL, BASE..HEAD, or -.")
    ] = None,
    tree: Annotated[str, typer.Option("--tree", metavar="NAME", help="The tree that BASE..HEAD is read from.")] = "",
    inbox: Inbox = None,
    newest: Annotated[int, typer.Option("--newest", min=0, help="Of a whole archive, only the last mails.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Print what is understood of a series; --inbox alone goes through a whole archive (also an mbox or maildir)."""
    from reviewbot.report.intake import render_intake  # noqa: PLC0415
    from reviewbot.stages.intake import intake as read  # noqa: PLC0415
    from reviewbot.tools.tree import get_tree  # noqa: PLC0415

    if source is None:
        _archive(inbox, newest, as_json=as_json)
        return
    repo = get_tree(open_cache(), tree).repo if tree else None
    outcome = read(source, stdin=read_stdin(source), repo=repo, inbox=inbox)
    if as_json:
        sys.stdout.write(render_intake(outcome))
    else:
        print(one_line(outcome.result.summary))
        for patch in outcome.value.patches if outcome.value else ():
            print(f"  {patch.number or 1}/{patch.total or 1} {one_line(patch.subject)}")
        for name, value in outcome.result.facts:
            print(f"  {one_line(name)}: {one_line(value)}")
    raise typer.Exit(0 if outcome.value else EXIT_INCONCLUSIVE)


def _archive(inbox: Path | None, newest: int, *, as_json: bool) -> None:
    # One line a series as it is found, then what was left out and why.
    from collections import Counter  # noqa: PLC0415

    from reviewbot.stages.intake import archive  # noqa: PLC0415

    if inbox is None:
        msg = "intake: give a SOURCE, or --inbox PATH for a whole archive"
        raise UsageError(msg)
    left: Counter[str] = Counter()
    found = 0
    for assembly in archive(inbox, newest=newest):
        left.update(skipped.reason for skipped in assembly.skipped)
        for series in assembly.series:
            found += 1
            row = {
                "msgid": series.msgid,
                "title": series.title,
                "author": series.author,
                "revision": series.revision,
                "patches": len(series.patches),
                "total": series.total,
                "missing": list(series.missing),
            }
            missing = f" ({series.missing_ranges} missing)" if series.missing else ""
            parts = f"{len(series.patches)}/{series.total or len(series.patches)}"
            text = f"v{series.revision} {parts}{missing} {series.title}"
            print(json.dumps(row) if as_json else one_line(text))
    print(f"{found} series", file=sys.stderr)
    for reason, count in left.most_common():
        print(f"{count:8} left out: {one_line(reason)}", file=sys.stderr)


@commands.command("diff-versions")
def versions(
    old: Annotated[str, typer.Argument(metavar="OLD")],
    new: Annotated[str, typer.Argument(metavar="NEW")],
    tree: Annotated[str, typer.Option("--tree", metavar="NAME", help="Adds git range-diff, where both apply.")] = "",
    base: Base = "",
    reports: Annotated[
        tuple[Path, Path] | None,
        typer.Option("--reports", metavar="OLD.JSON NEW.JSON", help="results.json of both: which findings are gone."),
    ] = None,
) -> None:
    """Compare two revisions of a series patch by patch, and what was found in each."""
    from reviewbot.single import compare_revisions  # noqa: PLC0415

    both = (read_results(reports[0]), read_results(reports[1])) if reports else None
    result = compare_revisions(old, new, open_cache(), tree=tree, base=base, reports=both)
    print(one_line(result.summary))
    for name, value in result.facts:
        print(f"  {one_line(name)}: {one_line(value)}")
    if result.excerpt:
        print("\n" + visible(result.excerpt))
