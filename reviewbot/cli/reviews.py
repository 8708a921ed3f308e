"""Commands that review a series, and the one that renders a saved review again."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reviewbot.cli.common import (
    EXIT_INCONCLUSIVE,
    AsJson,
    Coverage,
    Debug,
    Fragment,
    Inbox,
    Out,
    Quiet,
    note_to_stderr,
    open_cache,
    read_results,
    typed,
)
from reviewbot.cli.requests import takes_request
from reviewbot.errors import UsageError
from reviewbot.request import Request

if TYPE_CHECKING:
    from reviewbot.model import Report
    from reviewbot.tools.cache import Cache

commands = typer.Typer()


@commands.command()
@takes_request
def review(
    request: Request,
    out: Out = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    coverage: Coverage = False,
    debug: Debug = False,
    inbox: Inbox = None,
    allow_fuzz: Annotated[
        bool, typer.Option("--allow-fuzz", help="Let a patch apply where its context differs; the report says so.")
    ] = False,
    fragment: Fragment = None,
    boot_timeout: Annotated[
        int, typer.Option("--boot-timeout", metavar="SECONDS", min=1, help="How long a boot without tests may take.")
    ] = 600,
) -> None:
    """Apply, build, boot and test a patch series, and write a report."""
    request = replace(
        request,
        fragments=tuple(fragment or ()),
        out=out,
        coverage=coverage,
        debug=debug,
        allow_fuzz=allow_fuzz,
        inbox=inbox,
        boot_timeout_s=boot_timeout,
    )
    _review(request, open_cache(), as_json=as_json, quiet=quiet)


@commands.command()
def demo(
    out: Out = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    coverage: Coverage = False,
    debug: Debug = False,
) -> None:
    """Review the packaged build-id series on the Debian kernel that it applies to."""
    from reviewbot.demo import demo_request  # noqa: PLC0415

    cache = open_cache()
    request = demo_request(cache, out=out, command=typed(), on_note=note_to_stderr(quiet))
    request = replace(request, coverage=coverage, debug=debug)
    _review(request, cache, as_json=as_json, quiet=quiet)


def _review(request: Request, cache: Cache, *, as_json: bool, quiet: bool) -> None:
    from reviewbot.pipeline import review as run_review  # noqa: PLC0415
    from reviewbot.progress import Progress  # noqa: PLC0415
    from reviewbot.verdict import EXIT_STATUS  # noqa: PLC0415

    with Progress(quiet=quiet or as_json) as progress:
        report, directory = run_review(request, cache, progress)
    if as_json:
        sys.stdout.write((directory / "results.json").read_text(encoding="utf-8"))
    else:
        _show(report, directory)
    raise typer.Exit(EXIT_STATUS[report.verdict] if report.run.finished else EXIT_INCONCLUSIVE)


def _show(report: Report, directory: Path) -> None:
    from reviewbot.report.text import render_text  # noqa: PLC0415

    print(render_text(report))
    print(f"\nReport: {directory / 'index.html'}\n        {directory / 'results.json'}")


@commands.command("report")
def report_again(
    results: Annotated[Path, typer.Argument(metavar="RESULTS.JSON")],
    form: Annotated[str, typer.Option("--format", metavar="html|text|mail|junit")] = "text",
) -> None:
    """Render a saved results.json again, on standard output."""
    from reviewbot.report.html import render_html  # noqa: PLC0415
    from reviewbot.report.junit import render_junit  # noqa: PLC0415
    from reviewbot.report.mail import render_mail  # noqa: PLC0415
    from reviewbot.report.text import render_text  # noqa: PLC0415

    forms = {"html": render_html, "text": render_text, "mail": render_mail, "junit": render_junit}
    if form not in forms:
        msg = f"--format {form}: not one of {', '.join(forms)}"
        raise UsageError(msg)
    sys.stdout.write(forms[form](read_results(results)) + "\n")
