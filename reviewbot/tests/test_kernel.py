"""Real reviews on a real kernel (minutes): the demo, and kernels that are wrong in ways that must be told apart.

The tree is the demo's; its base is built once and kept in the cache, so each test compiles only what its patch touches.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reviewbot.demo import DEBIAN_SERIES, EXAMPLE, demo_request
from reviewbot.resources import example_dir
from reviewbot.stages.configure import DEFAULT_FRAGMENTS, load_fragments
from reviewbot.tools.cache import Cache, default_root
from reviewbot.tools.guest import GuestTest, prepare_root, read_result
from reviewbot.tools.make import compiler
from reviewbot.tools.vng import Ending, Machine

if TYPE_CHECKING:
    from reviewbot.request import Request

pytestmark = pytest.mark.kernel
CASES = Path(__file__).parent / "data" / "kernel"


@pytest.fixture(scope="module")
def cache() -> Cache:
    return Cache(default_root())


@pytest.fixture(scope="module")
def demo(cache: Cache) -> Request:
    return demo_request(cache, out=None, command="", on_note=print)


def reviewbot(*arguments: str, out: Path) -> tuple[int, dict[str, Any]]:
    """Run the command as a user does; return its exit status and results.json."""
    argv = [sys.executable, "-m", "reviewbot.cli", *arguments, "--out", str(out), "--quiet"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (out / "results.json").is_file(), done.stderr
    return done.returncode, json.loads((out / "results.json").read_text())


def stages(results: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {s["stage"]: s for s in results["stages"]}


def test_the_demo(cache: Cache, demo: Request, tmp_path: Path) -> None:
    status, results = reviewbot("demo", out=tmp_path / "out")
    done = stages(results)
    assert [p["role"] for p in results["apply"]["patches"]] == ["prerequisite", "prerequisite", "series"]
    assert results["apply"]["state"] == "applied"
    assert {done[n]["status"] for n in ("configure", "build", "boot")} == {"pass"}
    assert results["series"]["missing"] == [1, 2, 4, 5, 6, 7, 8]
    assert any("incomplete" in r and "8" in r for r in results["reasons"])
    cases = {c["name"]: c for c in done["selftest"]["cases"]}
    for bit in ("BUILD_ID_OFFSET", "CALLCHAIN_BUILD_ID_OFFSET"):
        new_bit = cases[f"abi/refused_on_base_accepted_on_patched.{bit}"]
        assert (new_bit["base"], new_bit["patched"]) == ("pass", "pass")
        alone = [c for n, c in cases.items() if n.startswith("layout/") and n.endswith(f".{bit}")]
        assert alone
        assert {c["base"] for c in alone} == {"skip"}
        assert "pass" in {c["patched"] for c in alone}
    assert len(cases) > 200
    assert status == (1 if results["verdict"] == "fail" else 0)
    for case in cases.values():
        assert set(case) >= {"name", "base", "patched", "reason"}
        assert case["patched"] != "error", case
    findings = [f for f in done["selftest"]["findings"] if f["origin"] == "introduced"]
    assert {f["rule"]: {line["function"] for line in f["lines"] if line["writes"]} for f in findings} == {
        "header.size": {"perf_prepare_sample"},
        "build-id.size": {"perf_bpf_to_sample_bid_offset"},
        "build-id.mapping": {"perf_output_sample_build_id"},
        "build-id.kernel": {"perf_output_sample_build_id"},
        "deferred.address": {"perf_resolve_build_id_offsets"},
    }
    assert {line["patch"] for f in findings for line in f["lines"]} == {3}
    reproducers_tell_base_from_patched(cache, demo, results, tmp_path / "out")


def reproducers_tell_base_from_patched(cache: Cache, demo: Request, results: dict[str, Any], out: Path) -> None:
    """Every reproducer compiles as its head says, fails on patched, and does not on base."""
    sources = sorted((out / "selftest" / "reproduce").glob("*.c"))
    failing = [
        c
        for c in stages(results)["selftest"]["cases"]
        if c["patched"] in ("fail", "warn") and c["origin"] == "introduced"
    ]
    assert len(sources) == len(failing)
    share = out.parent / "reproduce"
    (share / "bin").mkdir(parents=True)
    for number, source in enumerate(sources):
        argv = ["gcc", "-static", "-O2", "-Wall", "-Werror", "-o", str(share / "bin" / f"r{number}"), str(source)]
        subprocess.run(argv, check=True)
    names = [f"r{number}" for number in range(len(sources))]
    machine = Machine(cache=cache, root=prepare_root(cache), timeout_s=240)
    key = f"{load_fragments(DEFAULT_FRAGMENTS).key}-{compiler().key}"
    for side, wanted in (("tip_commit", {"1"}), ("base_commit", {"0", "4"})):
        image = cache.artefacts / demo.tree / key / results["apply"][side] / "bzImage"
        tests = tuple(GuestTest(name=name, program=name) for name in names)
        machine.boot(image, share, out.parent / f"{side}.log", tests=tests)
        ends = {
            source.name: (read_result(share, f"{n}.rc") or "").strip() for n, source in zip(names, sources, strict=True)
        }
        assert set(ends.values()) <= wanted, (side, ends)


def broken_seed(tmp_path: Path, old: str, new: str) -> Path:
    """Return the seed with one line of its patch changed; the hunk keeps its length."""
    text = (example_dir(EXAMPLE) / "series.txt").read_text()
    assert text.count(old) == 1
    path = tmp_path / "series.txt"
    path.write_text(text.replace(old, new))
    return path


@pytest.mark.parametrize(
    ("old", "new", "case"),
    [
        (
            "+\t\tsize += sizeof(struct perf_sample_build_id_offset);",
            "+\t\tsize += sizeof(struct perf_sample_build_id_offset) - 8;",
            "BUILD_ID_OFFSET",
        ),
        (
            "+\t\t\tperf_output_copy(handle, &buf->bids[0],",
            "+\t\t\tbuf->bids[0].ip = data->ip; perf_output_copy(handle, &buf->bids[0],",
            "build_id/",
        ),
    ],
    ids=["size missing from the header", "IP in place of the offset"],
)
def test_one_wrong_line_is_caught(demo: Request, tmp_path: Path, old: str, new: str, case: str) -> None:
    source = broken_seed(tmp_path, old, new)
    prerequisites = [word for path in demo.prerequisites for word in ("--prereq", path)]
    status, results = reviewbot("review", str(source), "--tree", demo.tree, *prerequisites, out=tmp_path / "out")
    findings = [f for f in stages(results)["selftest"]["findings"] if f["origin"] == "introduced"]
    assert any(case in name for f in findings for name in f["cases"])
    assert results["verdict"] == "fail"
    assert status == 1
    assert any(f["title"][:60] in reason for f in findings for reason in results["reasons"])


@pytest.mark.parametrize(
    ("patch", "stage", "words"),
    [
        ("panic.patch", "boot", "panics"),
        ("hang.patch", "boot", "hangs before the first command"),
        ("warn.patch", "boot", "WARNING"),
        ("build-error.patch", "build", "lib/math/gcd.c:"),
    ],
)
def test_a_wrong_kernel(demo: Request, tmp_path: Path, patch: str, stage: str, words: str) -> None:
    arguments = ("review", str(CASES / patch), "--tree", demo.tree, "--boot-timeout", "40")
    status, results = reviewbot(*arguments, out=tmp_path / "out")
    done = stages(results)
    assert done[stage]["status"] == "fail"
    assert words in done[stage]["summary"]
    assert (results["verdict"], status) == ("fail", 1)
    assert done["selftest"]["status"] == "skip" or stage == "boot"


def test_a_test_that_never_ends(cache: Cache, demo: Request, tmp_path: Path) -> None:
    machine = Machine(cache=cache, root=prepare_root(cache), timeout_s=120)
    key = f"{load_fragments(DEFAULT_FRAGMENTS).key}-{compiler().key}"
    image = next((cache.artefacts / demo.tree / key).glob("*/bzImage"))
    share = tmp_path / "share"
    (share / "bin").mkdir(parents=True)
    (share / "bin" / "forever").write_text("#!/bin/sh\necho 'TAP version 13'\nsleep 1000\n")
    (share / "bin" / "forever").chmod(0o755)
    test = GuestTest(name="forever", program="forever", timeout_s=5)
    boot = machine.boot(image, share, tmp_path / "console.log", tests=(test,))
    assert boot.ending is Ending.FINISHED
    assert read_result(share, "forever.rc") == "137\n"
    assert boot.duration_s < 60


def test_the_merged_seed_is_tested_where_it_is(demo: Request, tmp_path: Path) -> None:
    source = example_dir("raw-nonlinear") / "series.txt"
    status, results = reviewbot("review", str(source), "--tree", demo.tree, out=tmp_path / "out")
    assert results["apply"]["state"] == "already merged"
    assert results["apply"]["evidence"]
    selftest = stages(results)["selftest"]
    assert selftest["status"] in ("pass", "warn")
    assert any(c["name"].startswith("raw/") and c["patched"] == "pass" for c in selftest["cases"])
    assert (results["verdict"], status) == ("inconclusive", 3)


def test_a_guest_sees_no_file_of_the_host(cache: Cache, demo: Request, tmp_path: Path) -> None:
    machine = Machine(cache=cache, root=prepare_root(cache), timeout_s=120)
    key = f"{load_fragments(DEFAULT_FRAGMENTS).key}-{compiler().key}"
    image = next((cache.artefacts / demo.tree / key).glob("*/bzImage"))
    share = tmp_path / "share"
    (share / "bin").mkdir(parents=True)
    lines = [
        "#!/bin/sh",
        "ls / /root /home >/rb/out/seen",
        "for d in / /etc /usr /root /home; do echo x >$d/reviewbot-canary; done",
        f"ls {Path.home()}/.cache >>/rb/out/seen",
        "ln -s /etc/passwd /rb/out/link",
    ]
    (share / "bin" / "look").write_text("\n".join(lines) + "\n")
    (share / "bin" / "look").chmod(0o755)
    machine.boot(image, share, tmp_path / "c.log", tests=(GuestTest(name="look", program="look"),))
    assert ".cache" not in (read_result(share, "seen") or "")
    assert read_result(share, "link") is None
    assert not list(machine.root.rglob("reviewbot-canary"))
    assert not Path("/reviewbot-canary").exists()
    assert DEBIAN_SERIES
