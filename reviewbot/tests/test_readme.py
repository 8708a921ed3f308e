"""What README.md says is so."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from reviewbot.cli import app
from reviewbot.parse.kconfig import parse_fragment
from reviewbot.pipeline import ON_REQUEST, STAGES
from reviewbot.resources import data_dir
from reviewbot.verdict import EXIT_STATUS

TOP = Path(__file__).resolve().parents[2]
README = (TOP / "README.md").read_text(encoding="utf-8")


def table(first: str) -> list[list[str]]:
    """Return the rows of the table whose header begins with first."""
    body = README.split(f"| {first} |", 1)[1].split("\n\n", 1)[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in body]


def test_the_stages() -> None:
    names = [row[0] for row in table("stage")]
    assert names[: len(STAGES)] == list(STAGES)
    assert names[len(STAGES) :] == list(ON_REQUEST)


def test_the_fragments() -> None:
    assert sorted(row[0] for row in table("fragment")) == sorted(p.stem for p in data_dir("kconfigs").glob("*.config"))


def test_the_exit_statuses() -> None:
    rows = {int(row[0]): row[1] for row in table("exit status")}
    for kind, status in EXIT_STATUS.items():
        assert f"`{kind}`" in rows[status]
    assert set(rows) == {0, 1, 2, 3}


COMMANDS = [
    line.split("#")[0].strip()
    for block in re.findall(r"```sh\n(.*?)```", README, re.S)
    for line in block.splitlines()
    if line.startswith("reviewbot ")
]


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_exists_with_its_options(line: str) -> None:
    words = shlex.split(line)[1:]
    path = words[: 2 if words[0] in ("tree", "selftest") else 1]
    shown = CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": "300", "NO_COLOR": "1", "TERM": "dumb"})
    assert shown.exit_code == 0
    for option in (w for w in words if w.startswith("-") and w != "-"):
        assert option in shown.output


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert "://" in target or (TOP / target).exists(), target
    for target in re.findall(r"`((?:reviewbot|selftests|kconfigs|reports)/[\w./-]*)`", README):
        assert (TOP / target).exists(), target


@pytest.mark.parametrize("path", sorted(data_dir("kconfigs").glob("*.config")), ids=lambda p: p.stem)
def test_every_symbol_has_its_reason(path: Path) -> None:
    assert parse_fragment(path.read_text(encoding="utf-8"), name=path.name)
