"""Whole reviews on the miniature tree: real git, make, gcc and qemu, no kernel."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reviewbot.errors import UsageError
from reviewbot.model import ApplyState, Origin, Report, Status, VerdictKind
from reviewbot.pipeline import review
from reviewbot.progress import Progress
from reviewbot.request import Request
from reviewbot.tests.minitree import FILES, add_tree, commit, patch_of
from reviewbot.tools.git import must

FRAGMENT = "# the only one\nCONFIG_MINI=y\n"


class Bench:
    """A miniature tree, and a way to review what was committed on top of it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.cache, self.tree, self.repo = add_tree(path)
        self.base = must(self.repo, "rev-parse", "HEAD")
        (path / "mini.config").write_text(FRAGMENT)
        self.number = 0

    def request(self, text: str, **more: object) -> Request:
        self.number += 1
        source = self.path / f"series-{self.number}.mbox"
        source.write_text(text)
        known: dict[str, object] = {
            "source": str(source),
            "tree": "mini",
            "fragments": (str(self.path / "mini.config"),),
            "out": self.path / f"out-{self.number}",
            "command": "reviewbot review",
        }
        return Request(**(known | more))  # type: ignore[arg-type]  # a test helper's free-form options

    def review(self, text: str, **more: object) -> tuple[Report, dict[str, object], Path]:
        with Progress(quiet=True) as progress:
            report, out = review(self.request(text, **more), self.cache, progress)
        return report, json.loads((out / "results.json").read_text()), out


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def stage(report: Report, name: str) -> Status:
    return next(s.status for s in report.stages if s.stage == name)


def summary(report: Report, name: str) -> str:
    return next(s.summary for s in report.stages if s.stage == name)


GOOD = FILES["lib/one.c"].replace("return 1", "return 0 + 1")


def test_a_good_patch_comes_as_far_as_the_boot(bench: Bench) -> None:
    commit(bench.repo, {"lib/one.c": GOOD}, "lib: say it longer")
    report, results, out = bench.review(patch_of(bench.repo, bench.base))
    assert [stage(report, n) for n in ("apply", "configure", "build")] == [Status.PASS] * 3
    assert stage(report, "boot") is Status.ERROR
    assert "qemu did not start a kernel" in summary(report, "boot")
    assert stage(report, "selftest") is Status.SKIP
    assert report.verdict is VerdictKind.INCONCLUSIVE
    assert set(results) >= {"schema", "verdict", "reasons", "series", "base", "apply", "stages"}
    assert "<html" in (out / "index.html").read_text()


def test_a_syntax_error_is_the_series_fault(bench: Bench) -> None:
    commit(bench.repo, {"lib/one.c": FILES["lib/one.c"].replace("return 1;", "return 1")}, "lib: break it")
    report, _, _ = bench.review(patch_of(bench.repo, bench.base))
    assert stage(report, "build") is Status.FAIL
    assert "lib/one.c:" in summary(report, "build")
    assert stage(report, "boot") is Status.SKIP
    assert report.verdict is VerdictKind.FAIL


def test_only_the_new_warning_counts(bench: Bench) -> None:
    text = FILES["lib/two.c"].replace("\treturn 2;", "\tint also_unused;\n\n\treturn 2;")
    commit(bench.repo, {"lib/two.c": text}, "lib: warn once more")
    report, _, _ = bench.review(patch_of(bench.repo, bench.base))
    found = next(s for s in report.stages if s.stage == "build").findings
    assert [f.title for f in found if f.counts and f.severity is Status.WARN] == [
        "warning: unused variable 'also_unused' [-Wunused-variable]"
    ]
    assert stage(report, "build") is Status.WARN


def test_a_moved_warning_is_not_new(bench: Bench) -> None:
    commit(bench.repo, {"lib/two.c": "/* a new first line */\n" + FILES["lib/two.c"]}, "lib: comment")
    report, _, _ = bench.review(patch_of(bench.repo, bench.base))
    assert stage(report, "build") is Status.PASS


def test_a_warning_of_an_object_that_was_not_compiled_again_is_not_new(bench: Bench) -> None:
    commit(bench.repo, {"lib/one.c": GOOD}, "lib: say it longer")
    bench.review(patch_of(bench.repo, bench.base))
    report, _, _ = bench.review(patch_of(bench.repo, bench.base))
    assert stage(report, "build") is Status.PASS
    assert "from the cache" in str(next(s for s in report.stages if s.stage == "build").facts)


def test_a_warning_in_a_header_is_not_blamed_on_the_next_series(bench: Bench) -> None:
    header = FILES["include/mini.h"]
    commit(bench.repo, {"include/mini.h": header + "static int helper(void) { return 1; }\n"}, "mini: an unused helper")
    report, _, _ = bench.review(patch_of(bench.repo, bench.base))
    assert stage(report, "build") is Status.WARN
    must(bench.repo, "reset", "--quiet", "--hard", bench.base)
    commit(bench.repo, {"include/mini.h": "/* mini */\n" + header}, "mini: a comment")
    report, _, _ = bench.review(patch_of(bench.repo, bench.base))
    assert stage(report, "build") is Status.PASS


def test_a_warning_of_a_header_in_another_object_is_still_there(bench: Bench) -> None:
    helper = "#ifdef WITH_HELPER\nstatic int helper(void) { return 1; }\n#endif\n"
    files = {"include/mini.h": FILES["include/mini.h"] + helper}
    base = commit(bench.repo, {**files, "lib/two.c": "#define WITH_HELPER\n" + FILES["lib/two.c"]}, "mini: warn in one")
    must(bench.tree.repo, "fetch", "--quiet", str(bench.repo), "main")
    commit(bench.repo, {"lib/one.c": GOOD}, "lib: say it longer")
    report, _, _ = bench.review(patch_of(bench.repo, base), base=base)
    found = next(s for s in report.stages if s.stage == "build").findings
    assert [f.title for f in found if f.origin == "fixed"] == []


def test_a_warning_of_the_linker_is_told_at_each_link(bench: Bench) -> None:
    words = "\t@echo 'ld: warning: vmlinux has a LOAD segment with RWX permissions' >&2\n\ttouch $(O)/vmlinux"
    makefile = FILES["Makefile"].replace("\ttouch $(O)/vmlinux", words)
    base = commit(bench.repo, {"Makefile": makefile}, "mini: warn at each link")
    must(bench.tree.repo, "fetch", "--quiet", str(bench.repo), "main")
    commit(bench.repo, {"lib/one.c": GOOD}, "lib: say it longer")
    report, _, _ = bench.review(patch_of(bench.repo, base), base=base)
    assert stage(report, "build") is Status.PASS


def test_a_warning_in_a_new_file_is_gone_with_it(bench: Bench) -> None:
    commit(bench.repo, {"lib/new.c": "static int unused_helper(void) { return 1; }\n", "lib/one.c": GOOD}, "lib: new")
    report, _, _ = bench.review(patch_of(bench.repo, bench.base))
    assert stage(report, "build") is Status.WARN
    must(bench.repo, "reset", "--quiet", "--hard", bench.base)
    commit(bench.repo, {"lib/one.c": GOOD}, "lib: say it longer")
    report, _, _ = bench.review(patch_of(bench.repo, bench.base))
    assert stage(report, "build") is Status.PASS


def ordered(bench: Bench) -> str:
    # A base whose objects are compiled one after the other: one.c, then two.c, which warns.
    base = commit(bench.repo, {"Makefile": ".NOTPARALLEL:\n" + FILES["Makefile"]}, "mini: one after the other")
    must(bench.tree.repo, "fetch", "--quiet", str(bench.repo), "main")
    return base


def test_what_a_failing_build_did_not_come_to_is_not_blamed_on_it(bench: Bench) -> None:
    base = ordered(bench)
    text = FILES["lib/two.c"].replace("\treturn 2;", "\tint also_unused;\n\n\treturn 2;")
    commit(bench.repo, {"lib/two.c": text}, "lib: warn once more")
    report, _, _ = bench.review(patch_of(bench.repo, base), base=base)
    assert stage(report, "build") is Status.WARN
    must(bench.repo, "reset", "--quiet", "--hard", base)
    commit(bench.repo, {"lib/one.c": FILES["lib/one.c"].replace("return 1;", "return 1")}, "lib: break it")
    report, _, _ = bench.review(patch_of(bench.repo, base), base=base)
    found = next(s for s in report.stages if s.stage == "build").findings
    assert [(f.file, f.severity, f.origin) for f in found] == [("lib/one.c", Status.FAIL, Origin.INTRODUCED)]


class Impatient(Progress):
    """Somebody presses Ctrl-C when the second object is compiled."""

    def note(self, stage: str, text: str) -> None:
        if text == "2 objects":
            raise KeyboardInterrupt


def test_a_warning_of_an_interrupted_base_is_not_blamed_on_the_series(bench: Bench) -> None:
    ordered(bench)
    warns = FILES["lib/one.c"].replace("\treturn 1;", "\tint unused_here;\n\n\treturn 1;")
    base = commit(bench.repo, {"lib/one.c": warns}, "mini: warn in the first")
    must(bench.tree.repo, "fetch", "--quiet", str(bench.repo), "main")
    commit(bench.repo, {"lib/one.c": "/* one */\n" + warns}, "lib: a comment")
    series = patch_of(bench.repo, base)
    with Impatient(quiet=True) as progress:
        report, _ = review(bench.request(series, base=base), bench.cache, progress)
    assert summary(report, "build").startswith("stopped by SIGINT")
    report, _, _ = bench.review(series, base=base)
    assert stage(report, "build") is Status.PASS


def test_a_series_that_breaks_and_repairs(bench: Bench) -> None:
    commit(bench.repo, {"lib/one.c": FILES["lib/one.c"].replace("return 1;", "return 1")}, "lib: break it")
    commit(bench.repo, {"lib/one.c": GOOD}, "lib: repair it")
    report, _, _ = bench.review(patch_of(bench.repo, bench.base))
    found = next(s for s in report.stages if s.stage == "build").findings
    assert any("patch 1/2 breaks the build" in f.title for f in found)
    assert stage(report, "build") is Status.WARN


def test_what_a_prerequisite_brings_is_not_the_series(bench: Bench) -> None:
    text = FILES["lib/two.c"].replace("\treturn 2;", "\tint also_unused;\n\n\treturn 2;")
    middle = commit(bench.repo, {"lib/two.c": text}, "lib: warn once more")
    before = bench.path / "before.mbox"
    before.write_text(patch_of(bench.repo, bench.base))
    commit(bench.repo, {"lib/one.c": GOOD}, "lib: say it longer")
    report, _, _ = bench.review(patch_of(bench.repo, middle), prerequisites=(str(before),))
    found = next(s for s in report.stages if s.stage == "build").findings
    assert [f.blame for f in found if f.origin == "introduced" and "also_unused" in f.title] == ["prerequisite"]
    assert stage(report, "build") is Status.PASS


def test_base_that_does_not_build_blames_nobody(bench: Bench) -> None:
    broken = commit(bench.repo, {"lib/one.c": "int one(void) { return }\n"}, "lib: break base")
    must(bench.tree.repo, "fetch", "--quiet", str(bench.repo), "main")
    commit(bench.repo, {"lib/two.c": "/* first */\n" + FILES["lib/two.c"]}, "lib: comment")
    report, _, _ = bench.review(patch_of(bench.repo, broken), base=broken)
    assert stage(report, "build") is Status.ERROR
    assert summary(report, "build").startswith("base is broken")
    assert report.verdict is VerdictKind.INCONCLUSIVE


def test_a_symbol_that_does_not_stick(bench: Bench) -> None:
    (bench.path / "mini.config").write_text(FRAGMENT + "# never there\nCONFIG_DROPPED=y\n")
    commit(bench.repo, {"lib/one.c": GOOD}, "lib: say it longer")
    report, _, _ = bench.review(patch_of(bench.repo, bench.base))
    assert stage(report, "configure") is Status.ERROR
    found = next(s for s in report.stages if s.stage == "configure").findings
    assert "CONFIG_DROPPED=y did not stick" in found[0].title
    assert "ABSENT" in found[0].title


def test_coverage_is_a_stage_when_it_is_asked_for(bench: Bench) -> None:
    commit(bench.repo, {"lib/one.c": GOOD}, "lib: say it longer")
    text = patch_of(bench.repo, bench.base)
    report, _, _ = bench.review(text, coverage=True)
    assert report.stages[-1].stage == "coverage"
    assert (report.stages[-1].status, report.stages[-1].required) == (Status.SKIP, False)
    assert [s.stage for s in bench.review(text)[0].stages if s.stage == "coverage"] == []


def test_what_does_not_apply_is_no_fail(bench: Bench) -> None:
    commit(bench.repo, {"lib/one.c": GOOD}, "lib: say it longer")
    text = patch_of(bench.repo, bench.base).replace("return 1;", "return 7;")
    report, _, _ = bench.review(text)
    assert report.apply is not None
    assert report.apply.state is ApplyState.DOES_NOT_APPLY
    assert report.verdict is VerdictKind.INCONCLUSIVE
    assert [stage(report, n) for n in ("configure", "build", "boot", "selftest")] == [Status.SKIP] * 4


def test_documentation_needs_no_kernel(bench: Bench) -> None:
    commit(bench.repo, {"Documentation/mini.rst": "Mini\n====\n\nA small tree.\n"}, "docs: say what it is")
    report, _, _ = bench.review(patch_of(bench.repo, bench.base))
    assert [stage(report, n) for n in ("configure", "build", "boot", "selftest")] == [Status.SKIP] * 4
    assert "only documentation" in summary(report, "boot")
    assert report.verdict is not VerdictKind.FAIL


def test_usage_errors_write_nothing(bench: Bench) -> None:
    commit(bench.repo, {"lib/one.c": GOOD}, "lib: say it longer")
    text = patch_of(bench.repo, bench.base)
    for more in ({"tree": "nowhere"}, {"base": "v9.9"}, {"fragments": ("nothing",)}, {"prerequisites": ("/absent",)}):
        with pytest.raises(UsageError) as error:
            bench.review(text, **more)
        assert str(next(iter(more.values()))).strip("(),'") in str(error.value)
    assert not list(bench.path.glob("out-*"))


def test_a_missing_qemu_is_said(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = bench.path / "bin"
    programs.mkdir()
    for directory in [*os.environ["PATH"].split(":"), "/usr/sbin", "/sbin"]:
        for program in Path(directory).glob("*") if Path(directory).is_dir() else ():
            if not program.name.startswith("qemu") and not (programs / program.name).exists():
                (programs / program.name).symlink_to(program)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setattr("reviewbot.run._SYSTEM_PATH", "")
    commit(bench.repo, {"lib/one.c": GOOD}, "lib: say it longer")
    report, _, _ = bench.review(patch_of(bench.repo, bench.base))
    assert stage(report, "boot") is Status.ERROR
    assert "qemu-system-x86_64: not installed" in summary(report, "boot")


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small file system")
@pytest.mark.parametrize("room_kib", [0, 12, 24])
def test_a_full_disk_is_the_machines_fault(bench: Bench, room_kib: int) -> None:
    small = bench.path / "small"
    small.mkdir()
    mount = shutil.which("mount") or "mount"
    subprocess.run([mount, "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(small)], check=True)
    try:
        commit(bench.repo, {"lib/one.c": GOOD}, "lib: say it longer")
        (bench.cache.root / "builds").symlink_to(small)
        (small / "ballast").write_bytes(b"x" * (600 - room_kib) * 1024)
        report, _, _ = bench.review(patch_of(bench.repo, bench.base))
    finally:
        subprocess.run([shutil.which("umount") or "umount", str(small)], check=True)
    assert report.verdict is VerdictKind.INCONCLUSIVE
    texts = " ".join(s.summary for s in report.stages if s.status is Status.ERROR)
    assert "space" in texts.lower()


def test_ctrl_c_leaves_a_report_and_no_process(bench: Bench) -> None:
    slow = FILES["Makefile"].replace("\tcat $^ >", "\tsleep 321\n\tcat $^ >")
    base = commit(bench.repo, {"Makefile": slow}, "mini: sleep")
    must(bench.tree.repo, "fetch", "--quiet", str(bench.repo), "main")
    commit(bench.repo, {"lib/one.c": GOOD}, "lib: say it longer")
    request = bench.request(patch_of(bench.repo, base))
    argv = [sys.executable, "-m", "reviewbot.cli", "review", request.source, "--tree", "mini", "--base", base]
    argv += ["--kconfig", request.fragments[0], "--out", str(request.out), "--quiet"]
    child = subprocess.Popen(argv, env={**os.environ, "REVIEWBOT_CACHE": str(bench.cache.root)})
    results = Path(str(request.out)) / "results.json"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not _running("sleep 321"):
        time.sleep(0.1)
    child.send_signal(signal.SIGINT)
    assert child.wait(30) == 3
    assert not _running("sleep 321")
    saved = json.loads(results.read_text())
    assert saved["verdict"] == "inconclusive"
    assert saved["run"]["stopped_by"] == "SIGINT"
    last = saved["stages"][-1]
    assert (last["stage"], last["status"]) == ("build", "error")
    assert last["summary"].startswith("stopped by SIGINT")


def _running(words: str) -> bool:
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if entry.read_bytes().replace(b"\0", b" ").decode().strip() == words:
                return True
        except (OSError, UnicodeDecodeError):
            continue
    return False


def test_a_merged_series_is_built_where_it_is(bench: Bench) -> None:
    tip = commit(bench.repo, {"lib/one.c": GOOD}, "lib: say it longer")
    must(bench.tree.repo, "fetch", "--quiet", str(bench.repo), "main")
    report, _, _ = bench.review(patch_of(bench.repo, bench.base), base=tip)
    assert report.apply is not None
    assert report.apply.state is ApplyState.ALREADY_MERGED
    assert stage(report, "build") is Status.PASS
    assert summary(report, "build") == "base builds"
    assert report.verdict is VerdictKind.INCONCLUSIVE
