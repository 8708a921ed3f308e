"""What the commands that take a series have in common: the options that a Request is made of."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, Concatenate

import typer

from reviewbot.cli.common import Base, Every, Prereq, SpecDirs, TreeName, read_stdin, typed
from reviewbot.request import Request


def _request(
    series: Annotated[str, typer.Argument(metavar="SERIES", help="mbox, .patch, directory of patches, or -")],
    tree: TreeName,
    base: Base = "",
    prereq: Prereq = None,
    every: Every = False,
    specs: SpecDirs = None,
) -> Request:
    return Request(
        source=series,
        tree=tree,
        stdin=read_stdin(series),
        base=base,
        prerequisites=tuple(prereq or ()),
        every=every,
        specs=tuple(specs or ()),
        command=typed(),
    )


def takes_request(command: Callable[Concatenate[Request, ...], None]) -> Callable[..., None]:
    """Make a command of a function that is given a Request: the request's options, and then the function's own.

    The function's parameters after the first are options with an Annotated type, as in any other command.
    """
    shared = inspect.signature(_request, eval_str=True).parameters
    _, *own = inspect.signature(command, eval_str=True).parameters.values()

    @functools.wraps(command)
    def run(**values: Any) -> None:
        request = _request(**{name: values.pop(name) for name in shared})
        command(request, **values)

    # What typer reads. A parameter without a default goes before those that have one.
    both = sorted((*shared.values(), *own), key=lambda p: p.default is not p.empty)
    run.__signature__ = inspect.Signature(both)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in both}
    return run
