"""parse/diagnostics.py against its corpus (data/diagnostics), and against anything at all."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reviewbot.parse.diagnostics import Diagnostic, compare, parse_build
from reviewbot.tests.corpus import DATA, Sample, samples

TREES = ("/src/linux", "/build/o")


def shown(d: Diagnostic) -> str:
    return f"{d.kind} {d.file}:{d.line}:{d.column} {d.flag} {d.function} | {d.text}"


@pytest.mark.parametrize("sample", samples("diagnostics"), ids=lambda s: s.name)
def test_corpus(sample: Sample) -> None:
    build = parse_build(sample.text, failed=sample.all("failed") == ["yes"], trees=TREES)
    assert [shown(d) for d in build.diagnostics] == sample.all("diagnostic")
    infra = "".join(sample.all("infra"))
    assert build.infra.startswith(infra)
    assert bool(build.infra) == bool(infra)
    for want in sample.all("excerpt"):
        number, text = want.split(" | ", 1)
        assert text in build.diagnostics[int(number) - 1].excerpt


def log_of(name: str) -> tuple[Diagnostic, ...]:
    text = (DATA / "diagnostics" / f"{name}.log").read_text(encoding="utf-8")
    return parse_build(text, failed=True, trees=TREES).diagnostics


def test_another_line_is_the_same_diagnostic() -> None:
    base = log_of("gcc")
    patched = [replace(d, line=d.line + 100, column=1, kind="error", excerpt="") for d in base]
    assert compare(base, patched) == ((), tuple(patched), ())


def test_counts_as_multisets() -> None:
    one, *_ = log_of("gcc")
    moved = replace(one, line=9)
    other = replace(one, text="something else")
    assert compare([one], [moved, one, other]) == ((one, other), (moved,), ())
    assert compare([one, moved], [other]) == ((other,), (), (one, moved))
    assert compare([one, moved], [one]) == ((), (one,), (moved,))


def test_line_numbers_inside_the_text_do_not_matter() -> None:
    one, *_ = log_of("gcc")
    here = replace(one, text="redefined, see include/linux/a.h:12:3 and f+0x12/0x40")
    there = replace(one, text="redefined, see include/linux/a.h:99:7 and f+0x20/0x48")
    assert compare([here], [there]) == ((), (there,), ())
    assert compare([replace(one, text="size 8")], [replace(one, text="size 16")])[0]


def test_a_green_build_has_no_made_up_error() -> None:
    assert parse_build("  CC  a.o\nNo space left on device\n", failed=False).diagnostics == ()
    assert parse_build("  CC  a.o\nNo space left on device\n", failed=False).infra == ""


@given(
    st.lists(st.sampled_from(log_of("gcc") + log_of("ld")), max_size=8),
    st.lists(st.sampled_from(log_of("gcc")), max_size=8),
)
def test_compare_loses_and_invents_nothing(base: list[Diagnostic], patched: list[Diagnostic]) -> None:
    introduced, existing, fixed = compare(base, patched)
    assert len(introduced) + len(existing) == len(patched)
    assert len(fixed) + len(existing) == len(base)


@given(st.text(), st.booleans())
def test_any_text_is_read(text: str, failed: bool) -> None:
    build = parse_build(text, failed=failed)
    assert not failed or build.errors or build.infra


@pytest.mark.parametrize(
    "line",
    ["a:" * 10**6, "a" * 10**6 + ":1:", "ld: " * 10**6, "/bin/sh: 1: " + " 1" * 10**6, "In function '" * 10**5],
    ids=len,
)
def test_a_hostile_line_takes_no_time(line: str) -> None:
    started = time.monotonic()
    parse_build(line, failed=True)
    assert time.monotonic() - started < 2
