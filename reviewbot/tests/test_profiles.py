"""Build profiles of old trees, and what becomes of symbols that a tree does not know."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from reviewbot.parse.kconfig import Wanted
from reviewbot.stages.configure import configure, load_fragments
from reviewbot.tests.minitree import FILES, MAKEFILE, make_repo
from reviewbot.tools.git import must
from reviewbot.tools.kernel import Builder
from reviewbot.tools.make import Make, compiler
from reviewbot.tools.profiles import choose_profile, stand_ins

if TYPE_CHECKING:
    from pathlib import Path


def makefile(version: str) -> str:
    major, minor = version.split(".")
    return (
        f"# SPDX-License-Identifier: GPL-2.0\nVERSION = {major}\nPATCHLEVEL = {minor}\nSUBLEVEL = 4\nEXTRAVERSION =\n"
    )


def test_a_tree_of_2016() -> None:
    profile = choose_profile(makefile("4.7"))
    assert profile.names == ("before-6.5", "before-6.3", "before-5.4", "before-5.3", "before-5.0")
    assert profile.cc_flags == "-fno-pie"
    assert profile.make == ("LD=ld -z max-page-size=0x200000", "HOSTCFLAGS=-O2", "KCFLAGS=-w")
    assert profile.headers == "headers_install"
    assert [(w.symbol, w.value) for w in profile.wanted] == [
        ("BLOCK", "y"),
        ("INET", "y"),
        *((name, "y") for name in ("NET_SCHED", "NET_CLS_ACT", "NET_CLS_BPF", "NET_SCH_INGRESS", "PACKET")),
    ]
    assert 'CC="gcc -fno-pie", LD="ld -z max-page-size=0x200000"' in dict(profile.facts)["build profile before-5.0"]


@pytest.mark.parametrize(
    ("version", "names"),
    [
        ("4.20", ("before-6.5", "before-6.3", "before-5.4", "before-5.3", "before-5.0")),
        ("5.0", ("before-6.5", "before-6.3", "before-5.4", "before-5.3")),
        ("5.3", ("before-6.5", "before-6.3", "before-5.4")),
        ("5.4", ("before-6.5", "before-6.3")),
        ("6.2", ("before-6.5", "before-6.3")),
        ("6.3", ("before-6.5",)),
        ("6.5", ()),
        ("7.2", ()),
    ],
)
def test_each_profile_ends_where_it_says(version: str, names: tuple[str, ...]) -> None:
    assert choose_profile(makefile(version)).names == names


@pytest.mark.parametrize("text", ["", "VERSION = four\n", "obj-y += a.o\n", MAKEFILE])
def test_a_tree_without_a_version_is_built_as_it_is(text: str) -> None:
    profile = choose_profile(text)
    assert (profile.names, profile.headers, profile.make, profile.cc_flags) == ((), "headers", (), "")


def test_every_stand_in_has_a_reason() -> None:
    wanted = {w.symbol: w for w in load_fragments(("boot", "perf", "bpf", "tracing", "gcov", "pmu")).wanted}
    for symbol, stand_in in stand_ins().items():
        assert stand_in.reason
        assert wanted[symbol].value == "y"


KCONFIG = 'config MINI\n\tbool "mini"\n\nconfig FRAME_POINTER\n\tbool "fp"\n\nmenuconfig VIRTIO_MENU\n\tbool "menu"\n'
# Only symbols of Kconfig stay, as with the real one.
MAKE = MAKEFILE.replace("grep -v CONFIG_DROPPED", "grep -E 'CONFIG_(MINI|FRAME_POINTER)='")


def test_a_symbol_that_the_tree_does_not_know(tmp_path: Path) -> None:
    builder = mini(tmp_path)
    names = ("MINI", "UNWINDER_FRAME_POINTER", "UNWIND_USER")
    done = builder.configure([Wanted(symbol=n, value="y", reason="wanted") for n in names])
    assert done.lost == ()
    assert "CONFIG_FRAME_POINTER=y" in done.text.splitlines()
    assert [symbol for symbol, _ in done.unknown] == ["CONFIG_UNWINDER_FRAME_POINTER", "CONFIG_UNWIND_USER"]
    assert "CONFIG_FRAME_POINTER is set in its place" in done.unknown[0][1]


def test_a_symbol_that_the_tree_knows_stays_lost(tmp_path: Path) -> None:
    # VIRTIO_MENU has a stand-in, but this tree defines it: that it does not stick has another reason.
    done = mini(tmp_path).configure([Wanted(symbol="VIRTIO_MENU", value="y", reason="wanted")])
    assert [m.wanted.symbol for m in done.lost] == ["VIRTIO_MENU"]
    assert done.unknown == ()


def test_a_symbol_without_a_stand_in_stays_lost(tmp_path: Path) -> None:
    done = mini(tmp_path).configure([Wanted(symbol="NEVER_HEARD_OF", value="y", reason="wanted")])
    assert [m.wanted.symbol for m in done.lost] == ["NEVER_HEARD_OF"]


def test_flags_of_a_profile_follow_the_compiler(tmp_path: Path) -> None:
    make = replace(mini(tmp_path).make, cc_flags="-fno-pie", extra=("LD=ld -z max-page-size=0x200000",))
    command = make("headers").command
    assert "gcc -fno-pie'" in command
    assert "'LD=ld -z max-page-size=0x200000'" in command


def test_the_report_names_profile_and_stand_ins(tmp_path: Path) -> None:
    builder = mini(tmp_path)
    fragment = tmp_path / "mini.config"
    fragment.write_text("# a\nCONFIG_MINI=y\n# b\nCONFIG_POSIX_TIMERS=y\n")
    fragments = load_fragments((str(fragment),))
    base = must(builder.make.source, "rev-parse", "HEAD")
    profile = replace(choose_profile(makefile("4.7")), wanted=())
    result = configure(replace(builder, profile=profile), base, fragments, tmp_path).result
    facts = dict(result.facts)
    assert result.summary.endswith("build profile before-6.5, before-6.3, before-5.4, before-5.3, before-5.0")
    assert "1 of 2 wanted symbols" in result.summary
    assert "dropped" in facts["CONFIG_POSIX_TIMERS"]
    assert "build profile before-5.0" in facts


def mini(path: Path) -> Builder:
    """Return a builder for a miniature tree of which Kconfig knows three symbols."""
    source = make_repo(path / "source", {**FILES, "Makefile": MAKE, "Kconfig": KCONFIG})
    (path / "build").mkdir()
    make = Make(
        source=source, build=path / "build", compiler=compiler(), ccache_dir=path / "ccache", log=path / "make.log"
    )
    return Builder(make=make, store=path / "store", on_progress=lambda _: None)
