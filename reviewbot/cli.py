"""The command line: argv and environment to a Request; the only print, the only exit.

Exit status: 0 pass or warn, 1 fail, 2 the request cannot be used, 3 no answer (the machine failed, or it was stopped).
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
import traceback
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from reviewbot import __version__
from reviewbot.errors import InfraError, UsageError
from reviewbot.report.clean import one_line, visible

if TYPE_CHECKING:
    from collections.abc import Callable

    from reviewbot.model import Report
    from reviewbot.request import Request
    from reviewbot.tools.cache import Cache

STDIN_LIMIT_BYTES = 128 << 20  # a series of 1,000 patches has some 30 MiB
EXIT_FAIL, EXIT_USAGE, EXIT_INCONCLUSIVE = 1, 2, 3

_HELP = """Review a Linux kernel patch series: apply, build, boot, test, report.

Exit status: 0 pass or warn, 1 fail, 2 the request cannot be used, 3 no answer.
"""
# The parent of typer's errors about options and arguments; typer does not export it.
_USAGE: type[typer.BadParameter] = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=_HELP)
tree_app = typer.Typer(no_args_is_help=True, help="Kernel trees that series are tested on.")
selftest_app = typer.Typer(no_args_is_help=True, help="Generated kselftests.")
app.add_typer(tree_app, name="tree")
app.add_typer(selftest_app, name="selftest")

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
Every = Annotated[bool, typer.Option("--all", help="Tests of every sample type, not only of those in the series.")]

Coverage = Annotated[
    bool, typer.Option("--coverage", help="Measure which added lines the tests run (one more build and boot).")
]


def _print_version(asked: bool) -> None:
    if asked:
        print(f"reviewbot {__version__}")
        raise typer.Exit


@app.callback()
def _top(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def main() -> NoReturn:
    """Run the command line and exit."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _stop)
    try:
        status = app(standalone_mode=False)
    except (typer.Abort, KeyboardInterrupt):
        _die("stopped", EXIT_INCONCLUSIVE)
    except UsageError as error:
        _die(str(error), EXIT_USAGE)
    except InfraError as error:
        _die(str(error), EXIT_INCONCLUSIVE)
    except _USAGE as error:
        _die(error.format_message(), EXIT_USAGE)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter complains when it flushes
        sys.exit(EXIT_INCONCLUSIVE)
    except Exception:  # a bug: it must not look like the verdict "fail"
        traceback.print_exc()
        sys.exit(EXIT_INCONCLUSIVE)
    sys.exit(status if isinstance(status, int) else 0)


def _stop(number: int, _frame: object) -> NoReturn:
    # Whatever ends a run from outside takes the way of Ctrl-C, which leaves a report and no process.
    raise KeyboardInterrupt(signal.Signals(number).name)


def _die(text: str, status: int) -> NoReturn:
    print(f"reviewbot: {one_line(text)}", file=sys.stderr)
    sys.exit(status)


@app.command()
def review(
    series: Annotated[str, typer.Argument(metavar="SERIES", help="mbox, .patch, directory of patches, or -")],
    tree: TreeName,
    base: Base = "",
    prereq: Prereq = None,
    out: Out = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    every: Every = False,
    coverage: Coverage = False,
    inbox: Inbox = None,
    allow_fuzz: Annotated[
        bool, typer.Option("--allow-fuzz", help="Let a patch apply where its context differs; the report says so.")
    ] = False,
    fragment: Annotated[
        list[str] | None, typer.Option("--kconfig", metavar="NAME", help="Fragments instead of the default ones.")
    ] = None,
    boot_timeout: Annotated[
        int, typer.Option("--boot-timeout", metavar="SECONDS", min=1, help="How long a boot without tests may take.")
    ] = 600,
) -> None:
    """Apply, build, boot and test a patch series, and write a report."""
    from reviewbot.request import Request  # noqa: PLC0415 - the command line starts fast

    request = Request(
        source=series,
        tree=tree,
        stdin=_stdin(series),
        base=base,
        prerequisites=tuple(prereq or ()),
        fragments=tuple(fragment or ()),
        out=out,
        every=every,
        coverage=coverage,
        allow_fuzz=allow_fuzz,
        inbox=inbox,
        boot_timeout_s=boot_timeout,
        command=_typed(),
    )
    _review(request, _cache(), as_json=as_json, quiet=quiet)


@app.command()
def intake(
    source: Annotated[
        str, typer.Argument(metavar="[SOURCE]", help="Mail in any form, a message id or URL, BASE..HEAD, or -.")
    ] = "",
    tree: Annotated[str, typer.Option("--tree", metavar="NAME", help="The tree that BASE..HEAD is read from.")] = "",
    inbox: Inbox = None,
    newest: Annotated[int, typer.Option("--newest", min=0, help="Of a whole archive, only the last mails.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Print what is understood of a series; --inbox without SOURCE goes through the whole archive."""
    from reviewbot.report.intake import render_intake  # noqa: PLC0415
    from reviewbot.stages.intake import intake as read  # noqa: PLC0415
    from reviewbot.tools.tree import get_tree  # noqa: PLC0415

    if not source:
        _archive(inbox, newest, as_json=as_json)
        return
    repo = get_tree(_cache(), tree).repo if tree else None
    outcome = read(source, stdin=_stdin(source), repo=repo, inbox=inbox)
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


@app.command("diff-versions")
def versions(
    old: Annotated[str, typer.Argument(metavar="OLD")],
    new: Annotated[str, typer.Argument(metavar="NEW")],
    tree: Annotated[str, typer.Option("--tree", metavar="NAME", help="Adds git range-diff, where both apply.")] = "",
    base: Base = "",
) -> None:
    """Compare two revisions of a series patch by patch."""
    from reviewbot.single import compare_revisions  # noqa: PLC0415

    result = compare_revisions(old, new, _cache(), tree=tree, base=base)
    print(one_line(result.summary))
    for name, value in result.facts:
        print(f"  {one_line(name)}: {one_line(value)}")
    if result.excerpt:
        print("\n" + visible(result.excerpt))


@app.command()
def demo(out: Out = None, as_json: AsJson = False, quiet: Quiet = False, coverage: Coverage = False) -> None:
    """Review the packaged build-id series on the Debian kernel that it applies to."""
    from reviewbot.demo import demo_request  # noqa: PLC0415

    cache = _cache()
    request = demo_request(cache, out=out, command=_typed(), on_note=_note(quiet))
    request = replace(request, coverage=coverage)
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


@app.command()
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
        _die(f"cannot review without: {', '.join(missing)}", EXIT_INCONCLUSIVE)


@tree_app.command("add")
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
    cache, note = _cache(), _note(quiet)
    if debian:
        added = trees.add_debian(cache, name, debian, note)
    elif Path(source).is_file():
        added = trees.add_tarball(cache, name, Path(source), note)
    else:
        added = trees.add_git(cache, name, source, note)
    print(f"{added.name}: {added.describe} ({added.kind}, commit {added.head[:12]})")
    if added.note:
        print(f"note: {one_line(added.note)}")


@tree_app.command("list")
def tree_list(as_json: AsJson = False) -> None:
    """List the trees."""
    from reviewbot.tools.tree import list_trees  # noqa: PLC0415

    found = list_trees(_cache())
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


@tree_app.command("remove")
def tree_remove(name: Annotated[str, typer.Argument(metavar="NAME")]) -> None:
    """Remove a tree and everything that was built from it."""
    from reviewbot.tools.tree import remove_tree  # noqa: PLC0415

    remove_tree(_cache(), name)
    print(f"{name}: removed")


@selftest_app.command("generate")
def selftest_generate(
    series: Annotated[str, typer.Argument(metavar="SERIES")],
    tree: TreeName,
    directory: Annotated[
        Path, typer.Option("-o", "--output", metavar="DIR", help="Where the kselftest directory goes.")
    ],
    base: Base = "",
    prereq: Prereq = None,
    every: Every = False,
) -> None:
    """Write the kselftests for a series' sample types, without building or booting anything."""
    from reviewbot.request import Request  # noqa: PLC0415
    from reviewbot.single import generate_selftests  # noqa: PLC0415

    request = Request(
        source=series,
        tree=tree,
        stdin=_stdin(series),
        base=base,
        prerequisites=tuple(prereq or ()),
        out=directory,
        every=every,
        command=_typed(),
    )
    names = generate_selftests(request, _cache())
    print(f"{directory}: {', '.join(names)}")


@app.command()
def mutate(
    series: Annotated[str, typer.Argument(metavar="SERIES", help="mbox, .patch, directory of patches, or -")],
    tree: TreeName,
    base: Base = "",
    prereq: Prereq = None,
    out: Out = None,
    every: Every = False,
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
    quiet: Quiet = False,
) -> None:
    """Try wrong kernels: say how many of them the generated tests catch, and which lines no test verifies."""
    from reviewbot.campaign import Options  # noqa: PLC0415
    from reviewbot.mutate import mutate as run_mutants  # noqa: PLC0415
    from reviewbot.report.mutants import render_text  # noqa: PLC0415
    from reviewbot.request import Request  # noqa: PLC0415

    request = Request(
        source=series,
        tree=tree,
        stdin=sys.stdin.buffer.read() if series == "-" else None,
        base=base,
        prerequisites=tuple(prereq or ()),
        out=out,
        every=every,
        command=_typed(),
    )
    options = Options(seed=seed, sample=sample, budget_s=budget, resume=resume, functions=tuple(function or ()))
    report, directory = run_mutants(request, _cache(), options, _note(quiet))
    print(render_text(report), end="")
    print(f"\nReport: {directory / 'mutants.html'}\n        {directory / 'mutants.json'}")
    raise typer.Exit(0 if report.finished else EXIT_INCONCLUSIVE)


@app.command("report")
def report_again(
    results: Annotated[Path, typer.Argument(metavar="RESULTS.JSON")],
    form: Annotated[str, typer.Option("--format", metavar="html|text|mail|junit")] = "text",
) -> None:
    """Render a saved results.json again, on standard output."""
    from reviewbot.report.html import render_html  # noqa: PLC0415
    from reviewbot.report.junit import render_junit  # noqa: PLC0415
    from reviewbot.report.mail import render_mail  # noqa: PLC0415
    from reviewbot.report.results import parse_results  # noqa: PLC0415
    from reviewbot.report.text import render_text  # noqa: PLC0415

    forms = {"html": render_html, "text": render_text, "mail": render_mail, "junit": render_junit}
    if form not in forms:
        msg = f"--format {form}: not one of {', '.join(forms)}"
        raise UsageError(msg)
    try:
        text = results.read_text(encoding="utf-8")
        report = parse_results(text)
    except (OSError, UnicodeDecodeError, UsageError) as error:
        msg = f"{results}: {getattr(error, 'strerror', None) or error}"
        raise UsageError(msg) from error
    sys.stdout.write(forms[form](report) + "\n")


def _stdin(source: str) -> bytes | None:
    if source != "-":
        return None
    data = sys.stdin.buffer.read(STDIN_LIMIT_BYTES + 1)
    if len(data) > STDIN_LIMIT_BYTES:
        msg = f"-: standard input has more than {STDIN_LIMIT_BYTES >> 20} MiB (the limit); give a file"
        raise UsageError(msg)
    return data


def _typed() -> str:
    return shlex.join(["reviewbot", *sys.argv[1:]])


def _cache() -> Cache:
    from reviewbot.tools.cache import Cache, default_root  # noqa: PLC0415

    return Cache(default_root())


def _note(quiet: bool) -> Callable[[str], None]:
    def note(text: str) -> None:
        if not quiet:
            print(one_line(text), file=sys.stderr, flush=True)

    return note


if __name__ == "__main__":
    main()
