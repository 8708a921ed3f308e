"""Coverage of added lines: a program of our own under the real gcc and gcov, and the join with a diff."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reviewbot.errors import InfraError
from reviewbot.parse.added import added_lines
from reviewbot.parse.coverage import LineKind, classify
from reviewbot.parse.gcov import GcovError, merge, parse_gcov, parse_preprocessed
from reviewbot.tools.gcov import collect_script, make_variables, objects_of, read_counters

DATA = Path(__file__).parent / "data" / "gcov"
SOURCE = (DATA / "sample.c").read_text()
HEADER = (DATA / "sample.h").read_text()


def numbers(text: str, *marks: str) -> list[int]:
    """Return the 1-based lines of text that hold one of the marks."""
    return [n for n, line in enumerate(text.split("\n"), 1) if any(m in line for m in marks)]


def recorded() -> dict[str, dict[int, int]]:
    return parse_gcov((DATA / "sample.gcov.json").read_text(), source="/src")


def kept() -> dict[str, set[int]]:
    return parse_preprocessed((DATA / "sample.i").read_text(), source="/src")


def kinds(text: str, *, file: str = "lib/sample.c", **more: object) -> dict[str, set[LineKind]]:
    """Classify every line and collect the kinds by the word in the line's comment (``/* hit */``)."""
    known: dict[str, object] = {"counts": recorded().get(file, {}), "kept": kept().get(file, ())}
    lines = classify(file, text, range(1, text.count("\n") + 2), **(known | more))  # type: ignore[arg-type]  # free-form
    found: dict[str, set[LineKind]] = {}
    for line in lines:
        if "/*" in line.text:
            found.setdefault(line.text.rpartition("/*")[2].removesuffix("*/").strip(), set()).add(line.kind)
    return found


def test_every_line_is_what_its_comment_says() -> None:
    assert kinds(SOURCE) == {kind.value: {kind} for kind in LineKind}
    assert kinds(HEADER, file="lib/sample.h") == {"hit": {LineKind.HIT}, "no code": {LineKind.NO_CODE}}


def test_without_the_preprocessors_word_nothing_is_called_not_built() -> None:
    found = kinds(SOURCE, kept=None)
    assert LineKind.NOT_BUILT not in found["not built"]
    assert found["hit"] == {LineKind.HIT}


def test_a_file_that_no_object_reads_is_not_built() -> None:
    lines = classify("lib/other.c", SOURCE, numbers(SOURCE, "/* hit */", "/* missed */"), counts={}, kept=())
    assert {line.kind for line in lines} == {LineKind.NOT_BUILT}


def test_the_function_is_named() -> None:
    wanted = numbers(SOURCE, "/* missed */")
    lines = classify("lib/sample.c", SOURCE, wanted, counts=recorded()["lib/sample.c"], kept=None)
    assert {line.function for line in lines} == {"never", "choose"}
    assert [line.line for line in lines] == wanted


def test_a_system_call_is_a_function() -> None:
    text = "int x;\n\nSYSCALL_DEFINE2(mini_open,\n\t\tint, a, int, b)\n{\n\tx = a;\n\treturn b;\n}\nint y;\n"
    found = classify("a.c", text, range(1, 10), counts={7: 0}, kept=None)
    assert [line.function for line in found] == ["", "", *["mini_open"] * 6, ""]
    assert [line.kind for line in found if line.function][3:5] == [LineKind.MERGED, LineKind.MISSED]


def test_lines_beyond_the_file_are_left_out() -> None:
    assert classify("a.c", "int x;\n", [0, 1, 99], counts={}, kept=None)[0].line == 1


def test_added_lines() -> None:
    diff = """\
diff --git a/a.c b/a.c
index 1111111..2222222 100644
--- a/a.c
+++ b/a.c
@@ -3,0 +4,2 @@ int f(void)
+one
+two
@@ -10,2 +12 @@ int g(void)
-old
-old
+new
diff --git a/doc.rst b/doc.rst
index 1111111..2222222 100644
--- a/doc.rst
+++ b/doc.rst
@@ -1 +1 @@
-x
+y
diff --git a/gone.h b/gone.h
deleted file mode 100644
index 1111111..0000000
--- a/gone.h
+++ /dev/null
@@ -1 +0,0 @@
-x
"""
    assert added_lines(diff) == {"a.c": (4, 5, 12)}


def test_counts_of_inlined_code_add_up() -> None:
    text = (
        '{"files": [{"file": "/src/a.h", "lines": [{"line_number": 3, "count": 2}, {"line_number": 3, "count": 5}]}]}'
    )
    assert parse_gcov(text, source="/src") == {"a.h": {3: 7}}
    assert merge([{"a.h": {3: 7}}, {"a.h": {3: 1, 4: 0}}]) == {"a.h": {3: 8, 4: 0}}


@given(st.text())
def test_no_text_but_gcovs_is_taken(text: str) -> None:
    with pytest.raises(GcovError):
        parse_gcov(text)


@given(st.text(alphabet='#if endif/*"\n\\ x;{}()', max_size=200), st.sets(st.integers(0, 30)))
def test_any_text_is_classified(text: str, lines: set[int]) -> None:
    found = classify("a.c", text, range(1, 40), counts={}, kept=lines)
    assert len(found) == min(39, text.count("\n") + 1)
    assert not {line.kind for line in found} & {LineKind.HIT, LineKind.MISSED}


@given(st.text())
def test_any_text_is_read_as_preprocessed(text: str) -> None:
    for lines in parse_preprocessed(text).values():
        assert all(n >= 0 for n in lines)


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """The sample, compiled as kbuild does: from the build directory, with counters."""
    build = tmp_path / "build"
    (build / "lib").mkdir(parents=True)
    shutil.copytree(DATA, tmp_path / "src" / "lib")
    source = tmp_path / "src" / "lib" / "sample.c"
    flags = ["-O2", "-fprofile-arcs", "-ftest-coverage", "-fno-early-inlining", "-c", "-o", "lib/sample.o"]
    subprocess.run(["gcc", *flags, str(source)], cwd=build, check=True)
    subprocess.run(["gcc", "--coverage", "lib/sample.o", "-o", "sample"], cwd=build, check=True)
    subprocess.run(["./sample"], cwd=build, check=True)
    (build / "lib" / ".sample.o.cmd").write_text(f"deps_lib/sample.o := \\\n  {tmp_path}/src/lib/sample.h \\\n")
    return build


def test_counters_come_back_through_the_share(built: Path, tmp_path: Path) -> None:
    share = tmp_path / "share"
    (share / "out").mkdir(parents=True)
    (built / "lib/sample.gcda").rename(share / "out" / "gcov-0.gcda")
    log = tmp_path / "gcov.log"
    objects = ("lib/sample.o", "lib/absent.o")
    counters, silent, calls = read_counters(objects, built, share, tmp_path / "scratch", log, source=tmp_path / "src")
    assert silent == ("lib/absent.o",)
    assert len(calls) == 1
    fresh = {n: count > 0 for n, count in counters["lib/sample.c"].items()}
    assert fresh == {n: count > 0 for n, count in recorded()["lib/sample.c"].items()}


@pytest.mark.parametrize("what", ["link", "garbage", "other stamp", "directory"])
def test_what_the_guest_leaves_is_hostile(built: Path, tmp_path: Path, what: str) -> None:
    share = tmp_path / "share"
    (share / "out").mkdir(parents=True)
    place = share / "out" / "gcov-0.gcda"
    good = (built / "lib/sample.gcda").read_bytes()
    if what == "link":
        place.symlink_to(built / "lib/sample.gcda")
    elif what == "garbage":
        place.write_bytes(os.urandom(4096))
    elif what == "other stamp":
        place.write_bytes(good[:8] + b"\xff" * 4 + good[12:])
    else:
        place.mkdir()
    counters, silent, _ = read_counters(
        ("lib/sample.o",), built, share, tmp_path / "scratch", tmp_path / "log", source=tmp_path / "src"
    )
    assert silent == ("lib/sample.o",) or not any(n for lines in counters.values() for n in lines.values())


def test_objects_of_a_header_are_those_beside_it(built: Path) -> None:
    assert objects_of(("lib/sample.c",), built) == ("lib/sample.o",)
    assert objects_of(("lib/sample.h",), built) == ("lib/sample.o",)
    assert objects_of(("lib/other.h", "include/x.h", "lib/other.c"), built) == ()


def test_make_and_guest_words() -> None:
    assert make_variables(("kernel/events/core.o", "kernel/sched/core.o", "a/b.o")) == (
        "GCOV_PROFILE_b.o=y",
        "GCOV_PROFILE_core.o=y",
    )
    script = collect_script(("kernel/events/core.o",), Path("/c/build"))
    assert script == "cat /sys/kernel/debug/gcov/c/build/kernel/events/core.gcda >/rb/out/gcov-0.gcda"
    with pytest.raises(InfraError, match="cannot be given"):
        collect_script((), Path("/c/my build; reboot"))
