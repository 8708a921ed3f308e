"""The entry point: the groups of commands, signals, and the exit status of what ends a run early."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from typing import Annotated, NoReturn

import typer
from pydantic import ValidationError

from reviewbot import __version__
from reviewbot.cli import machine, mail, reviews, selftests, trees
from reviewbot.cli.common import EXIT_INCONCLUSIVE, EXIT_USAGE, die
from reviewbot.errors import InfraError, UsageError

_HELP = """Review a Linux kernel patch series: apply, build, boot, test, report.

Exit status: 0 pass or warn, 1 fail, 2 the request cannot be used, 3 no answer.
"""
# The parent of typer's errors about options and arguments; typer does not export it.
_USAGE: type[typer.BadParameter] = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=_HELP)
for group in (reviews.commands, mail.commands, selftests.commands, machine.commands):
    app.add_typer(group)
app.add_typer(trees.commands, name="tree")
app.add_typer(selftests.group, name="selftest")


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
        die("stopped", EXIT_INCONCLUSIVE)
    except UsageError as error:
        die(str(error), EXIT_USAGE)
    except InfraError as error:
        die(str(error), EXIT_INCONCLUSIVE)
    except _USAGE as error:
        die(_with_value(error, error.format_message()), EXIT_USAGE)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter complains when it flushes
        sys.exit(EXIT_INCONCLUSIVE)
    except Exception:  # a bug: it must not look like the verdict "fail"
        traceback.print_exc()
        sys.exit(EXIT_INCONCLUSIVE)
    sys.exit(status if isinstance(status, int) else 0)


def _with_value(error: BaseException, message: str) -> str:
    """Return message with the value that was refused: typer's alone says what was asked for, not what came."""
    if not isinstance(error.__cause__, ValidationError):
        return message
    given = error.__cause__.errors()[0]["input"]
    return f"{message}, not {given!r}"


def _stop(number: int, _frame: object) -> NoReturn:
    # Whatever ends a run from outside takes the way of Ctrl-C, which leaves a report and no process.
    raise KeyboardInterrupt(signal.Signals(number).name)
