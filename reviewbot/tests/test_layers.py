"""Who may import whom, who starts programs, and who prints: the design's rules, read from the syntax trees."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1]

# From the top down: a module imports from the layers below its own. A new module at the top gets its place here, and
# so may a module of a package that stands deeper than the rest of it.
LAYERS = (
    {"cli"},
    {"mutate", "plain"},
    {"pipeline", "demo", "record", "single", "builders", "extras"},
    {"stages"},
    {"checks"},
    {"tools"},
    {
        "run",
        "generate",
        "parse",
        "report",
        "verdict",
        "findings",
        "mutate.kills",
        "mutate.ranking",
        "progress",
    },
    {"pipes", "session", "threads", "request", "resources", "workers"},
    {"model", "errors", "__version__"},
)
RANK = {unit: rank for rank, units in enumerate(reversed(LAYERS)) for unit in units}
# Inside one layer. generate and findings read what parse makes; progress shows text that report has cleaned.
BESIDE = {
    ("generate", "parse"),
    ("findings", "parse"),
    ("findings", "generate"),
    ("mutate.kills", "findings"),
    ("progress", "report"),
    ("pipeline", "record"),
    ("pipeline", "builders"),
    ("pipeline", "extras"),
    ("extras", "builders"),
    ("extras", "record"),
    ("pipeline", "single"),
}
# Packages whose modules use each other; stages and checks meet in the pipeline and in the registry.
CLOSED = {"stages", "checks"}
SHARED = {"contract"}  # what every check is made of
COLLECTS = {"registry"}  # the list of every check
# Data in, data out.
PURE = {
    "generate",
    "parse",
    "report",
    "verdict",
    "findings",
    "mutate.kills",
    "mutate.ranking",
    "model",
    "errors",
}
IMPURE_MODULES = {"os", "shutil", "socket", "tempfile", "time", "threading", "multiprocessing", "asyncio", "requests"}
PROGRAM_STARTERS = {"subprocess", "multiprocessing", "pty", "asyncio", "concurrent", "runpy", "importlib"}
IMPORTLIB_READS = {"importlib.metadata", "importlib.resources"}
OS_STARTERS = ("system", "popen", "exec", "spawn", "posix_spawn", "fork")


def _modules() -> Iterator[tuple[str, str]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).with_suffix("").as_posix().replace("/", ".")
        if not name.startswith("tests.") and name not in ("__init__", "__main__"):
            yield name.removesuffix(".__init__"), path.read_text(encoding="utf-8")


MODULES = dict(_modules())


def _imports(source: str) -> Iterator[str]:
    # Every module that the source imports, at any depth; `from reviewbot.parse import ktap` gives reviewbot.parse.ktap.
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _unit(module: str) -> str:
    # What has the module's place in LAYERS: the module itself where it has one, else its package.
    own = ".".join(module.split(".")[:2])
    return own if own in RANK else own.partition(".")[0]


def _own(source: str) -> Iterator[str]:
    return (name.removeprefix("reviewbot.") for name in _imports(source) if name.startswith("reviewbot."))


def _layer_faults(module: str, source: str) -> list[str]:
    unit, leaf = _unit(module), module.partition(".")[2]
    if unit not in RANK:
        return [f"{module}: has no layer; give {unit} a place in LAYERS"]
    faults = [f"{module}: relative import {name}" for name in _imports(source) if name.startswith(".")]
    for name in _own(source):
        target, other = _unit(name), "".join(name.split(".")[1:2])
        if target not in RANK:
            faults.append(f"{module}: imports reviewbot.{target}, which has no layer")
        elif target == unit and unit in CLOSED:
            if other != leaf and other not in SHARED and leaf not in COLLECTS:
                faults.append(f"{module}: imports its neighbour {target}.{other}")
        elif target != unit and (unit, target) not in BESIDE and RANK[target] >= RANK[unit]:
            faults.append(f"{module}: imports {target}, which is not below it")
    return faults


def _called(node: ast.AST) -> str:
    return ast.unparse(node.func) if isinstance(node, ast.Call) else ""


def _program_faults(module: str, source: str) -> list[str]:
    names = {
        name
        for name in _imports(source)
        if name.split(".")[0] in PROGRAM_STARTERS and not any(name.startswith(read) for read in IMPORTLIB_READS)
    }
    calls = {call for node in ast.walk(ast.parse(source)) for call in [_called(node)] if call.startswith("os.")}
    started = {call for call in calls if call.removeprefix("os.").startswith(OS_STARTERS)}
    return [f"{module}: {name} starts programs" for name in sorted(names | started)]


def _output_faults(module: str, source: str) -> list[str]:
    faults = []
    for node in ast.walk(ast.parse(source)):
        if _called(node) in ("print", "input", "exit", "quit", "sys.exit", "os._exit", "breakpoint"):
            faults.append(f"{module}:{node.lineno}: {_called(node)}")  # type: ignore[attr-defined]
        elif isinstance(node, ast.Attribute) and ast.unparse(node) in ("sys.stdout", "sys.stderr", "sys.stdin"):
            faults.append(f"{module}:{node.lineno}: {ast.unparse(node)}")
        elif isinstance(node, ast.Name) and node.id == "SystemExit":
            faults.append(f"{module}:{node.lineno}: SystemExit")
    return faults


def _purity_faults(module: str, source: str) -> list[str]:
    faults = [f"{module}: imports {n}" for n in _imports(source) if n.split(".")[0] in IMPURE_MODULES]
    for node in ast.walk(ast.parse(source)):
        call = _called(node)
        if call == "open" or call.endswith((".write_text", ".write_bytes", ".now", ".today", ".unlink", ".mkdir")):
            faults.append(f"{module}:{node.lineno}: {call}")  # type: ignore[attr-defined]
    return faults


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_from_below(module: str) -> None:
    assert _layer_faults(module, MODULES[module]) == []


# run starts other programs, workers our own processes.
@pytest.mark.parametrize("module", [name for name in MODULES if name not in ("run", "workers")])
def test_only_run_starts_programs(module: str) -> None:
    assert _program_faults(module, MODULES[module]) == []


@pytest.mark.parametrize("module", [name for name in MODULES if name.split(".")[0] != "cli"])
def test_only_cli_prints_or_exits(module: str) -> None:
    assert _output_faults(module, MODULES[module]) == []


@pytest.mark.parametrize("module", [name for name in MODULES if _unit(name) in PURE])
def test_what_is_pure_does_no_io(module: str) -> None:
    assert _purity_faults(module, MODULES[module]) == []


def test_every_layer_is_still_there() -> None:
    units = {_unit(module) for module in MODULES}
    assert {"run", "cli", "model", "tools", "parse"} <= units
    assert set(RANK) - units <= {"__version__"}


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("parse.ktap", "from reviewbot.tools.git import git"),
        ("parse.ktap", "def f():\n    from reviewbot import run"),
        ("report.html", "import reviewbot.parse.ktap"),
        ("stages.apply", "from reviewbot.stages.base import x"),
        ("stages.apply", "from reviewbot.stages import base"),
        ("stages.apply", "from reviewbot import pipeline"),
        ("checks.uapi", "from reviewbot.checks import trailers"),
        ("checks.uapi", "from reviewbot.checks.registry import CHECKS"),
        ("checks.uapi", "from reviewbot.stages.apply import x"),
        ("tools.git", "from reviewbot.checks.contract import Check"),
        ("tools.git", "from ..run import run"),
        ("model", "from reviewbot.run import run"),
        ("run", "from reviewbot.brandnew import x"),
        ("brandnew", ""),
        ("pipeline", "from reviewbot.cli import main"),
        ("pipeline", "from reviewbot.mutate.mutate import mutate"),
        ("mutate.kills", "from reviewbot.mutate import trial"),
        ("mutate.kills", "from reviewbot.tools.git import git"),
    ],
)
def test_a_wrong_import_is_found(module: str, source: str) -> None:
    assert _layer_faults(module, source)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("tools.tree", "from reviewbot.tools import apt\nfrom reviewbot.run import run"),
        ("checks.uapi", "from reviewbot.checks.contract import Check"),
        ("checks.registry", "from reviewbot.checks import uapi"),
        ("stages.check", "from reviewbot.checks.registry import CHECKS"),
        ("generate.scope", "from reviewbot.parse.uapi import read"),
        ("cli", "import reviewbot.pipeline"),
        ("mutate.trial", "from reviewbot.mutate import kills"),
        ("mutate.trial", "from reviewbot.mutate.campaign import Campaign"),
    ],
)
def test_a_right_import_is_let_through(module: str, source: str) -> None:
    assert _layer_faults(module, source) == []


@pytest.mark.parametrize(
    "source",
    [
        "import subprocess",
        "def f():\n    from subprocess import run",
        "import os\nos.system('x')",
        "import os\nos.execvp('x', [])",
        "import os\nos.posix_spawn('x', [], {})",
        "from multiprocessing import Process",
        "import importlib\nimportlib.import_module('subprocess')",
    ],
)
def test_a_program_started_elsewhere_is_found(source: str) -> None:
    assert _program_faults("tools.x", source)


def test_reading_metadata_starts_no_program() -> None:
    assert _program_faults("x", "import importlib.metadata\nfrom importlib.resources import files\nimport os") == []


@pytest.mark.parametrize(
    "source",
    ["print(1)", "import sys\nsys.exit(1)", "raise SystemExit", "import sys\nsys.stderr.write('x')", "input()"],
)
def test_output_elsewhere_is_found(source: str) -> None:
    assert _output_faults("tools.x", source)


@pytest.mark.parametrize(
    "source",
    ["import os", "open('x')", "p.write_text('x')", "datetime.now()", "import time", "from threading import Thread"],
)
def test_impurity_is_found(source: str) -> None:
    assert _purity_faults("parse.x", source)
