"""Patches for user space are told from patches for the kernel, also from those that only add files."""

from __future__ import annotations

import pytest

from reviewbot.model import Patch, Series
from reviewbot.parse.project import other_project

TOP = {"include", "lib", "net", "tools", "security", "Makefile", "MAINTAINERS"}


def told(title: str, files: tuple[str, ...], *prefixes: str, existing: tuple[str, ...] = ()) -> str:
    patch = Patch(subject=title, message="", diff="", files=files)
    return other_project(Series(title=title, patches=(patch,), prefixes=prefixes), set(existing), TOP)


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
