"""parse/dmesg.py against its corpus (data/dmesg), and against anything at all."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reviewbot.parse.dmesg import (
    Splat,
    kernel_version,
    new_splats,
    panic_of,
    parse_console,
    reached_userspace,
    result_like_lines,
)
from reviewbot.tests.corpus import DATA, Sample, samples


def shown(splat: Splat) -> str:
    place = f"{splat.file}:{splat.line or ''}"
    return f"{splat.kind} | {splat.title} | {splat.function} | {place} | {'fatal' if splat.fatal else 'not fatal'}"


@pytest.mark.parametrize("sample", samples("dmesg"), ids=lambda s: s.name)
def test_corpus(sample: Sample) -> None:
    splats = parse_console(sample.text)
    assert [shown(splat) for splat in splats] == sample.all("splat")
    assert panic_of(sample.text) == "".join(sample.all("panic"))
    for want in sample.all("version"):
        assert kernel_version(sample.text) == want
    for want in sample.all("excerpt"):
        number, text = want.split(" | ", 1)
        assert text in splats[int(number) - 1].excerpt
    for want in sample.all("like"):
        assert want in result_like_lines(sample.text)


def text_of(name: str) -> str:
    return (DATA / "dmesg" / f"{name}.log").read_text(encoding="utf-8")


def test_an_excerpt_holds_its_own_splat_only() -> None:
    for splat in parse_console(text_of("lockdep-others")):
        assert splat.excerpt.count("</TASK>") == 1, splat.excerpt


def test_other_addresses_tasks_and_lines_are_the_same_splat() -> None:
    text = text_of("refcount-and-list")
    moved = text.replace("ffff888004b4a011", "ffff8880deadbeef").replace("CPU#1: perf/12", "CPU#0: swapper/7/9")
    moved = moved.replace("list_debug.c:62", "list_debug.c:99").replace("active state 0", "active state 5")
    assert new_splats(parse_console(text), parse_console(moved)) == ()


def test_new_splats_count_as_a_multiset() -> None:
    splat = Splat(kind="warning", title="WARNING at a.c", function="f", line=3)
    other = Splat(kind="warning", title="WARNING at a.c", function="g")
    moved = Splat(kind="warning", title="WARNING at a.c", function="f", line=9)
    assert new_splats([splat], [moved, other]) == (other,)
    assert new_splats([splat], [moved, splat]) == (splat,)
    assert new_splats([splat, other], []) == ()


def test_userspace_is_reached_only_by_a_program() -> None:
    boot = "[    0.100000] Run /init as init process\n"
    assert reached_userspace(f"{boot}RB-START 5a5a\n", "RB-START 5a5a")
    assert not reached_userspace(f"{boot}[    0.200000] RB-START 5a5a\n", "RB-START 5a5a")
    assert reached_userspace(f"{boot}RB-START 5a5a[    0.200000] late line\n", "RB-START 5a5a")
    assert not reached_userspace(boot, "RB-START 5a5a")


def test_userspace_on_a_console_without_stamps() -> None:
    assert not reached_userspace("Command line: marker=RB-START quiet\n", "RB-START")
    assert reached_userspace("Run /init as init process\r\nRB-START\r\n", "RB-START")


def test_a_program_cannot_fake_a_splat_where_the_console_has_stamps() -> None:
    assert parse_console("[    0.100000] Run /init\nKernel panic - not syncing: not really\n") == ()


def test_a_splat_without_a_trace_stays_short() -> None:
    text = "".join(f"[    1.{n:06}] line {n}\n" for n in range(500))
    (splat,) = parse_console("[    1.000000] BUG: Bad page state in process x  pfn:1\n" + text)
    assert len(splat.excerpt.splitlines()) <= 20


def test_a_flood_is_bounded() -> None:
    assert len(parse_console("[    1.000000] BUG: x\n" * 5000)) == 500


LINES = st.sampled_from(
    [
        "------------[ cut here ]------------", "=" * 66, "WARNING: a.c:1 at f+0x1/0x2, CPU#0: x/1", "Call Trace:",
        " <TASK>", " f+0x1/0x2", " ? g+0x1/0x2", " </TASK>", "---[ end trace 0 ]---", "RIP: 0010:f+0x1/0x2",
        "BUG: KASAN: use-after-free in f+0x1/0x2", "Kernel panic - not syncing: Fatal exception", "noise", "",
        "unreferenced object 0xffff (size 3):", "Oops: Oops: 0000 [#1] SMP", "WARNING: suspicious RCU usage",
    ]
)  # fmt: skip


@given(st.lists(LINES, max_size=40), st.booleans())
def test_any_order_of_lines_keeps_the_rules(lines: list[str], stamped: bool) -> None:
    text = "".join(f"{'[    1.000000] ' if stamped else ''}{line}\n" for line in lines)
    for splat in parse_console(text):
        assert splat.title
        assert splat.excerpt
    assert new_splats(parse_console(text), parse_console(text)) == ()


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    parse_console(text)
    parse_console(f"[    1.000000] BUG: {text}")
    reached_userspace(text, "marker")


@pytest.mark.parametrize(
    "line",
    [
        "INFO: task " + "a:1 blocked " * 10**5,
        "BUG: KASAN: " + "a " * 10**6,
        "WARNING: " + "a/" * 10**6,
        "BUG: " + "0" * 10**6,
    ],
    ids=len,
)
def test_a_hostile_line_takes_no_time(line: str) -> None:
    started = time.monotonic()
    parse_console(f"[    1.000000] {line}\n")
    assert time.monotonic() - started < 2
