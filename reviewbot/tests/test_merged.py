"""When "already merged" may be said: the change stands in its own place, and in the tree itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reviewbot.model import ApplyState
from reviewbot.tests.test_apply import FILE, patch, run, series

if TYPE_CHECKING:
    from pathlib import Path


def function(name: str, log: str) -> str:
    return f"int {name}(int a)\n{{\n\tint r = 0;\n\n\tif (a)\n\t\treturn -1;\n{log}\n\treturn 0;\n}}\n\n"


def removal(heading: str) -> str:
    body = ' \n \tif (a)\n \t\treturn -1;\n-\tlog_old("f2");\n \n \treturn 0;\n }\n'
    return f"--- a/{FILE}\n+++ b/{FILE}\n@@ -14,7 +14,6 @@ {heading}\n{body}".replace("@@ \n", "@@\n")


OLD, NEW = '\tlog_old("f2");\n', '\tlog_new("f2");\n'


@pytest.mark.parametrize("heading", ["int f2(int a)", ""])
def test_another_function_that_looks_the_same_is_no_proof(tmp_path: Path, heading: str) -> None:
    base = function("f1", "") + function("f2", NEW) + function("f3", OLD.replace("f2", "f3"))
    got = run(tmp_path, series(patch(removal(heading))), base=base)
    assert got.state is ApplyState.DOES_NOT_APPLY, got.summary


def test_the_same_function_elsewhere_is(tmp_path: Path) -> None:
    base = "".join(f"int head_{n};\n" for n in range(30)) + function("f1", OLD.replace("f2", "f1")) + function("f2", "")
    got = run(tmp_path, series(patch(removal("int f2(int a)"))), base=base)
    assert got.state is ApplyState.ALREADY_MERGED, got.summary


def test_labels_are_no_functions(tmp_path: Path) -> None:
    body = " \tint b;\n \tint c;\n+\tint added_here;\n \tint d;\n"
    text = f"--- a/{FILE}\n+++ b/{FILE}\n@@ -4,3 +4,4 @@ int g(void)\n{body}"
    base = "int z;\n" * 9 + "int g(void)\n{\nout:\n\tint b;\n\tint c;\n\tint added_here;\n\tint d;\n}\n"
    assert run(tmp_path, series(patch(text)), base=base).state is ApplyState.ALREADY_MERGED
