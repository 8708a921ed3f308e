"""A sample type that nobody knows, added with only its TOML file: a right kernel passes, wrong ones are caught.

data/newtype/right.patch implements PERF_SAMPLE_TASK_TIME, task_time.toml describes it. Wrong kernels are that patch
with one of its lines changed; WRONG names the case and the rule that catch each.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from reviewbot.demo import demo_request
from reviewbot.generate.spec_toml import parse_sample
from reviewbot.tools.cache import Cache, default_root

NEWTYPE = Path(__file__).parent / "data" / "newtype"
CODE_PAGE_SIZE = " \tif (sample_type & PERF_SAMPLE_CODE_PAGE_SIZE)\n"
OUTPUT = "+\tif (sample_type & PERF_SAMPLE_TASK_TIME)\n+\t\tperf_output_put(handle, data->task_time);\n+\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    """What is changed in the patch, and what must catch it. Lines of a hunk are changed, never their number."""

    changes: tuple[tuple[str, str], ...]
    case: str
    rule: str


WRONG = {
    "the size in the header lacks a word": Wrong(
        changes=(("sizeof(data->task_time);", "sizeof(data->task_time.runtime);"),),
        case="layout/page_faults.TASK_TIME",
        rule="header.size",
    ),
    "the two words are swapped": Wrong(
        changes=(
            ("task_time.start_time = current->start_boottime", "task_time.runtime = current->start_boottime"),
            ("task_time.runtime = current->se.sum", "task_time.start_time = current->se.sum"),
        ),
        case="layout/page_faults.TASK_TIME",
        rule="sample.task-time",
    ),
    "the time of the process's leader": Wrong(
        changes=(("runtime = current->se.", "runtime = current->group_leader->se."),),
        case="layout/thread.TASK_TIME",
        rule="sample.task-time",
    ),
    "a word that nobody sets": Wrong(
        changes=(("data->task_time.start_time = current->start_boottime;", "/* start_time is left as it is */"),),
        case="layout/page_faults.TASK_TIME",
        rule="sample.task-time",
    ),
    "the bit below PERF_SAMPLE_MAX": Wrong(
        changes=(("PERF_SAMPLE_MAX = 1U << 26", "PERF_SAMPLE_MAX = 1U << 27"),),
        case="abi/unused_bits_refused",
        rule="open.refused",
    ),
    "PERF_SAMPLE_MAX has not moved": Wrong(
        changes=(("+\tPERF_SAMPLE_MAX = 1U << 26", "+\tPERF_SAMPLE_MAX = 1U << 25"),),
        case="abi/refused_on_base_accepted_on_patched.TASK_TIME",
        rule="open.accepted",
    ),
    "the comment has the words the other way round, one of them short": Wrong(
        changes=(("u64			start_time; # CLOCK", "u32			start_time; # CLOCK"),),
        case="abi/documented.TASK_TIME",
        rule="header.comment",
    ),
    "written before the code page size": Wrong(
        changes=(
            (
                "@@ -8446,6 +8449,9 @@ void perf_output_sample(struct perf_output_handle *handle,\n"
                " \t\t\tperf_aux_sample_output(event, handle, data);\n \t}\n \n" + OUTPUT,
                "@@ -8435,6 +8438,9 @@ void perf_output_sample(struct perf_output_handle *handle,\n"
                " \tif (sample_type & PERF_SAMPLE_DATA_PAGE_SIZE)\n"
                " \t\tperf_output_put(handle, data->data_page_size);\n \n" + OUTPUT,
            ),
            (
                " \tif (!event->attr.watermark) {\n \t\tint wakeup_events = event->attr.wakeup_events;\n \n",
                CODE_PAGE_SIZE + " \t\tperf_output_put(handle, data->code_page_size);\n \n",
            ),
        ),
        case="layout/page_faults.TASK_TIME+CODE_PAGE_SIZE",
        rule="sample.task-time",
    ),
}
# The others are as good, and each takes another minute.
TRIED = ("the size in the header lacks a word", "the two words are swapped")


def variant(wrong: Wrong) -> str:
    """Return the patch with its lines changed. Each change is one of its lines, and no other's."""
    text = (NEWTYPE / "right.patch").read_text()
    for old, new in wrong.changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize("name", WRONG)
def test_a_variant_is_a_patch_of_the_same_lines(name: str) -> None:
    lines = variant(WRONG[name]).splitlines()
    right = (NEWTYPE / "right.patch").read_text().splitlines()
    assert [line[:1] for line in lines] == [line[:1] for line in right]


def review(source: Path, out: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    """Review source on the demo's tree as a user does; return the exit status and results.json."""
    tree = demo_request(Cache(default_root()), out=None, command="", on_note=print).tree
    argv = [sys.executable, "-m", "reviewbot.cli", "review", str(source), "--tree", tree, *arguments]
    done = subprocess.run([*argv, "--out", str(out), "--quiet"], capture_output=True, text=True, check=False)
    assert (out / "results.json").is_file(), done.stderr
    return done.returncode, json.loads((out / "results.json").read_text())


def cases(results: dict[str, Any]) -> dict[str, dict[str, Any]]:
    (stage,) = (s for s in results["stages"] if s["stage"] == "selftest")
    return {c["name"]: c for c in stage["cases"]}


@pytest.mark.kernel
def test_a_right_kernel_passes(tmp_path: Path) -> None:
    status, results = review(NEWTYPE / "right.patch", tmp_path / "out", "--specs", str(NEWTYPE))
    ran = cases(results)
    bit = ran["abi/refused_on_base_accepted_on_patched.TASK_TIME"]
    assert (bit["base"], bit["patched"]) == ("pass", "pass")
    assert not [name for name, c in ran.items() if c["origin"] == "introduced"]
    own = {name: c for name, c in ran.items() if name.startswith("layout/") and "TASK_TIME" in name}
    assert {c["base"] for c in own.values()} == {"skip"}
    assert own["layout/page_faults.TASK_TIME+CALLCHAIN"]["patched"] == "pass"
    assert own["layout/thread.TASK_TIME"]["patched"] == "pass"
    assert status == 0
    assert results["verdict"] in ("pass", "warn")


@pytest.mark.kernel
@pytest.mark.parametrize("name", TRIED)
def test_a_wrong_kernel_is_caught(tmp_path: Path, name: str) -> None:
    wrong, source = WRONG[name], tmp_path / "wrong.patch"
    source.write_text(variant(wrong))
    status, results = review(source, tmp_path / "out", "--specs", str(NEWTYPE))
    case = cases(results)[wrong.case]
    assert case["patched"] == "fail"
    assert case["origin"] == "introduced"
    assert wrong.rule in {b["rule"] for b in case["breaches"]}
    assert (results["verdict"], status) == ("fail", 1)


@pytest.mark.kernel
def test_without_its_spec_the_type_runs_unverified(tmp_path: Path) -> None:
    status, results = review(NEWTYPE / "right.patch", tmp_path / "out")
    ran = cases(results)
    assert ran["layout/page_faults.TASK_TIME+TIME"]["patched"] == "pass"
    (stage,) = (s for s in results["stages"] if s["stage"] == "selftest")
    assert dict(map(tuple, stage["facts"]))["payload not verified (no spec)"].startswith("PERF_SAMPLE_TASK_TIME;")
    begun = parse_sample((tmp_path / "out" / "selftest" / "specs" / "task_time.toml").read_text())
    assert [(f.name, f.type) for f in begun.layout] == [("start_time", "u64"), ("runtime", "u64")]
    assert 'name = "PERF_SAMPLE_TASK_TIME"' in stage["excerpt"]
    assert status == 0
