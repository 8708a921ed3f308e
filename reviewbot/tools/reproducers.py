"""Write the reproducers of failing cases into the run directory."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reviewbot.generate.reproducer import UAPI, Subject, about, file_name, render_reproducer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from reviewbot.generate.scope import Scope
    from reviewbot.generate.spec import Specs
    from reviewbot.model import Case, Finding
    from reviewbot.tools.kernel import Kernel

DIRECTORY = "selftest/reproduce"


def write_reproducers(
    run_dir: Path, findings: Sequence[Finding], cases: Sequence[Case], *, scope: Scope, specs: Specs, patched: Kernel
) -> tuple[Finding, ...]:
    """Write a C file for each case of a finding, and return the findings with the path of their first one.

    Pre-existing findings have none, nor has what a program did as a whole.
    """
    header = (patched.headers / UAPI).read_text(encoding="utf-8")
    directory = run_dir / DIRECTORY
    named = {case.name: case for case in cases}
    done = []
    for finding in findings:
        ours = [named[name] for name in finding.cases if "/" in name] if finding.counts else []
        for case in ours:
            lines = about(case, finding, f"the patched kernel, {patched.release}")
            text = render_reproducer(scope, header, Subject(case=case.name, rule=finding.rule, about=lines), specs)
            directory.mkdir(parents=True, exist_ok=True)
            (directory / file_name(case.name)).write_text(text, encoding="utf-8")
        done.append(replace(finding, reproducer=f"{DIRECTORY}/{file_name(ours[0].name)}") if ours else finding)
    return tuple(done)
