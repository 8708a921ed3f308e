"""The options that a Request is made of, as every command that takes a series has them."""

import io
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import pytest
import typer

from reviewbot.cli import app
from reviewbot.cli.requests import takes_request
from reviewbot.request import Request


@takes_request
def _command(
    request: Request, number: Annotated[int, typer.Option("--number")], word: Annotated[str, typer.Option()] = "none"
) -> None:
    _command.seen = (request, number, word)  # type: ignore[attr-defined]


def parse(monkeypatch: pytest.MonkeyPatch, *argv: str) -> tuple[Request, int, str]:
    commands = typer.Typer()
    commands.command()(_command)
    monkeypatch.setattr("sys.argv", ["reviewbot", *argv])
    commands([*argv], standalone_mode=False)
    return _command.seen  # type: ignore[attr-defined, no-any-return]


def test_the_options_make_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    argv = ["a.patch", "--tree", "t", "--base", "v7", "--prereq", "one", "--prereq", "two", "--all"]
    argv += ["--specs", "s1", "--specs", "s2", "--number", "5"]
    request = Request(
        source="a.patch",
        tree="t",
        base="v7",
        prerequisites=("one", "two"),
        every=True,
        specs=(Path("s1"), Path("s2")),
        command="reviewbot " + " ".join(argv),
    )
    assert parse(monkeypatch, *argv) == (request, 5, "none")


def test_a_command_has_options_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    request, number, word = parse(monkeypatch, "a.patch", "--tree", "t", "--number", "7", "--word", "w")
    assert (request.base, request.prerequisites, request.every, number, word) == ("", (), False, 7, "w")


def test_a_series_comes_on_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"From x")))
    assert parse(monkeypatch, "-", "--tree", "t", "--number", "1")[0].stdin == b"From x"


@pytest.mark.parametrize("missing", ["a.patch", "--tree", "--number"])
def test_what_has_no_default_is_required(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    argv = {"a.patch": ["a.patch"], "--tree": ["--tree", "t"], "--number": ["--number", "1"]}
    with pytest.raises(typer.BadParameter.__mro__[1]) as raised:
        parse(monkeypatch, *(word for name, words in argv.items() if name != missing for word in words))
    assert "Missing" in str(raised.value)


@pytest.mark.parametrize("command", [("review",), ("selftest", "generate"), ("mutate",)])
def test_the_commands_that_take_a_series(command: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    app([*command, "--help"], standalone_mode=False)
    shown = capsys.readouterr().out
    assert all(option in shown for option in ("SERIES", "--tree", "--base", "--prereq", "--all", "--specs"))


@pytest.mark.parametrize(
    ("option", "value"), [("--jobs", "0"), ("--jobs", "two"), ("--sample", "-1"), ("--budget", "1 h")]
)
def test_an_option_that_is_refused_is_named_with_its_value(option: str, value: str) -> None:
    argv = [sys.executable, "-m", "reviewbot.cli", "mutate", "x", "--tree", "y", option, value]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert option in done.stderr
    assert repr(value) in done.stderr
