"""Commands on the generated selftests: write them, and ask how good they are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from reviewbot.cli.common import (
    EXIT_FAIL,
    EXIT_INCONCLUSIVE,
    Base,
    Fragment,
    Out,
    Quiet,
    SpecDirs,
    TreeName,
    note_to_stderr,
    open_cache,
)
from reviewbot.cli.requests import takes_request
from reviewbot.request import Request

commands = typer.Typer()
group = typer.Typer(no_args_is_help=True, help="Generated kselftests.")


@group.command("generate")
@takes_request
def selftest_generate(
    request: Request,
    directory: Annotated[
        Path, typer.Option("-o", "--output", metavar="DIR", help="Where the kselftest directory goes.")
    ],
) -> None:
    """Write the kselftests for a series' sample types, without building or booting anything."""
    from reviewbot.single import generate_selftests  # noqa: PLC0415 - the command line starts fast

    names = generate_selftests(replace(request, out=directory), open_cache())
    print(f"{directory}: {', '.join(names)}")


@group.command("run")
def selftest_run(
    tree: TreeName,
    base: Base = "",
    runs: Annotated[int, typer.Option("--runs", metavar="N", min=1, help="How often the kernel is booted.")] = 1,
    out: Out = None,
    fragment: Fragment = None,
    specs: SpecDirs = None,
    quiet: Quiet = False,
) -> None:
    """Run the tests of every sample type on a tree as it is, without a series."""
    from reviewbot.plain import render_plain, run_plain  # noqa: PLC0415

    directory = out or Path("reports") / "plain" / tree
    report = run_plain(
        tree,
        open_cache(),
        directory,
        rev=base,
        runs=runs,
        fragments=fragment or (),
        spec_dirs=specs or (),
        note=note_to_stderr(quiet),
    )
    print(render_plain(report), end="")
    print(f"\nKTAP and consoles: {directory}")
    if not report.finished:
        raise typer.Exit(EXIT_INCONCLUSIVE)
    raise typer.Exit(EXIT_FAIL if report.bad else 0)


@commands.command()
@takes_request
def mutate(
    request: Request,
    out: Out = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="The order in which candidates are drawn.")] = 0,
    sample: Annotated[
        int, typer.Option("--sample", metavar="N", min=0, help="How many wrong kernels to try; 0 is all.")
    ] = 0,
    budget: Annotated[
        int, typer.Option("--budget", metavar="SECONDS", min=0, help="Stop after this time; 0 is no limit.")
    ] = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run that --out holds.")] = False,
    function: Annotated[
        list[str] | None,
        typer.Option("--function", metavar="FILE:NAME", help="Mutate a whole function too; repeat for more."),
    ] = None,
    only: Annotated[
        str, typer.Option("--only", metavar="ID[,ID]", help="Try these mutants (ids as in the report), no sample.")
    ] = "",
    jobs: Annotated[int, typer.Option("--jobs", metavar="N", min=1, help="How many guests run at once.")] = 1,
    listing: Annotated[bool, typer.Option("--list", help="Print every candidate and its id; build nothing.")] = False,
    quiet: Quiet = False,
) -> None:
    """Try wrong kernels: say how many of them the generated tests catch, and which lines no test verifies."""
    from reviewbot.mutate.campaign import Options  # noqa: PLC0415
    from reviewbot.mutate.mutate import list_mutants  # noqa: PLC0415
    from reviewbot.mutate.mutate import mutate as run_mutants  # noqa: PLC0415
    from reviewbot.report.mutants import render_list, render_text  # noqa: PLC0415

    request = replace(request, out=out)
    options = Options(
        seed=seed,
        sample=sample,
        budget_s=budget,
        resume=resume,
        functions=tuple(function or ()),
        jobs=jobs,
        only=tuple(word.strip() for word in only.split(",") if word.strip()),
    )
    if listing:
        campaign = list_mutants(request, open_cache(), options)
        print(render_list(campaign.current(), campaign.order), end="")
        return
    report, directory = run_mutants(request, open_cache(), options, note_to_stderr(quiet))
    print(render_text(report), end="")
    print(f"\nReport: {directory / 'mutants.html'}\n        {directory / 'mutants.json'}")
    raise typer.Exit(0 if report.finished else EXIT_INCONCLUSIVE)
