"""Patches for user space are told from patches for the kernel, also from those that only add files."""

from __future__ import annotations

import pytest

from reviewbot.model import Patch, Series
from reviewbot.parse.project import other_project

TOP = {"include", "lib", "net", "tools", "security", "Makefile", "MAINTAINERS"}


def told(
    title: str, files: tuple[str, ...], *prefixes: str, existing: tuple[str, ...] = (), expects: bool = False
) -> str:
    patch = Patch(subject=title, message="", diff="", files=files)
    series = Series(title=title, patches=(patch,), prefixes=prefixes)
    return other_project(series, set(files), set(existing), TOP, expects=expects)


@pytest.mark.parametrize(
    ("title", "files", "prefixes"),
    [
        ("ip: x", ("ip/ipaddress.c",), ("iproute2-next",)),
        ("parser: x", ("include/expression.h",), ("nft",)),
        ("libmnl: add a type", ("include/libmnl/libmnl.h",), ()),
        ("generic/777: a test", ("tests/generic/777",), ()),
        ("x", ("src/main.c",), ()),
    ],
)
def test_other_projects(title: str, files: tuple[str, ...], prefixes: tuple[str, ...]) -> None:
    assert told(title, files, *prefixes)


@pytest.mark.parametrize(
    ("title", "files", "prefixes", "existing"),
    [
        ("selinux: add a hook", ("security/selinux/new.c",), ("selinux",), ()),
        ("libbpf: add a file", ("tools/lib/bpf/new.c",), ("bpf-next",), ()),
        ("lib: add a file", ("lib/new.c",), (), ()),
        ("nft: x", ("net/netfilter/x.c",), ("nft",), ("net/netfilter/x.c",)),
        ("a new folder and its entry", ("rust/x.rs", "MAINTAINERS"), (), ("MAINTAINERS",)),
        ("Makefile: x", ("Makefile",), (), ("Makefile",)),
    ],
)
def test_the_kernels_own(
    title: str, files: tuple[str, ...], prefixes: tuple[str, ...], existing: tuple[str, ...]
) -> None:
    assert told(title, files, *prefixes, existing=existing) == ""


def test_a_new_file_in_the_root_says_nothing_but_a_changed_one_must_be_there() -> None:
    assert told("add an editor configuration", (".editorconfig",)) == ""
    assert told("configure: look for a library", ("configure.ac",), expects=True)


def test_a_file_that_is_moved_to_a_new_folder_is_the_trees_own() -> None:
    assert told("move it", ("lib/a.c", "newlib/a.c"), existing=("lib/a.c",), expects=True) == ""
