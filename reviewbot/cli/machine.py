"""The command that looks at this machine."""

from __future__ import annotations

import typer

from reviewbot.cli.common import EXIT_INCONCLUSIVE, die

commands = typer.Typer()


@commands.command()
def doctor() -> None:
    """List the programs and kernel facilities that are needed, and what is lost without each."""
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    from reviewbot.tools.doctor import examine  # noqa: PLC0415

    table = Table("", "needs", "found", "without it", box=None, header_style="bold")
    facilities = examine()
    for item in facilities:
        mark = "ok" if item.version else ("MISSING" if item.needed else "absent")
        table.add_row(mark, item.name, item.version or "-", "" if item.version else item.lost)
    Console(soft_wrap=False).print(table)
    missing = [f.name for f in facilities if f.needed and not f.version]
    if missing:
        die(f"cannot review without: {', '.join(missing)}", EXIT_INCONCLUSIVE)
