"""The demo: the build-id series, with its two prerequisites, on the Debian kernel tree that it applies to.

In: the cache. Out: a Request for pipeline.review(). The pinned version is used where the mirror has it, else the
nearest one on which the series applies; which one and why is said through on_note.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from reviewbot.errors import InfraError, UsageError
from reviewbot.request import Request
from reviewbot.resources import example_dir
from reviewbot.stages.apply import apply
from reviewbot.stages.base import choose_base
from reviewbot.stages.intake import intake
from reviewbot.tools.apt import available_debian, nearest
from reviewbot.tools.tree import Tree, add_debian, get_tree, list_trees

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from reviewbot.model import Series
    from reviewbot.tools.cache import Cache

DEBIAN_SERIES = "7.2"
DEBIAN_VERSION = "7.2.9-1~bpo13+1"
EXAMPLE = "build-id-offset"


def demo_request(cache: Cache, *, out: Path | None, command: str, on_note: Callable[[str], None]) -> Request:
    """Add the demo's tree when it is not there yet, and return what to review.

    Raises InfraError when no version of the tree can be had.
    """
    example = example_dir(EXAMPLE)
    prerequisites = tuple(str(p) for p in sorted((example / "prerequisites").glob("*.patch")))
    tree = _tree(cache, str(example / "series.txt"), prerequisites, on_note)
    return Request(
        source=str(example / "series.txt"), tree=tree.name, prerequisites=prerequisites, out=out, command=command
    )


def _tree(cache: Cache, source: str, prerequisites: tuple[str, ...], on_note: Callable[[str], None]) -> Tree:
    pinned = _name(DEBIAN_VERSION)
    if any(tree.name == pinned for tree in list_trees(cache)):
        return get_tree(cache, pinned)
    on_note(f"looking for linux-source-{DEBIAN_SERIES}={DEBIAN_VERSION}")
    left = list(available_debian(cache, DEBIAN_SERIES))
    if not left:
        msg = f"no linux-source-{DEBIAN_SERIES} in any suite of the Debian mirror"
        raise InfraError(msg)
    first: Tree | None = None
    while left:
        version = DEBIAN_VERSION if DEBIAN_VERSION in left else nearest(left, DEBIAN_VERSION)
        left.remove(version)
        tree = _added(cache, version, on_note)
        first = first or tree
        if version == DEBIAN_VERSION or _applies(cache, tree, source, prerequisites):
            if version != DEBIAN_VERSION:
                on_note(f"the mirror has no {DEBIAN_VERSION}; {version} is the nearest on which the series applies")
            return tree
        on_note(f"the series does not apply on {version}")
    if first is None:
        msg = f"no linux-source-{DEBIAN_SERIES} could be added"
        raise InfraError(msg)
    return first


def _name(version: str) -> str:
    return "debian-" + version.split("-", maxsplit=1)[0]


def _added(cache: Cache, version: str, on_note: Callable[[str], None]) -> Tree:
    try:
        return get_tree(cache, _name(version))
    except UsageError:
        return add_debian(cache, _name(version), f"{DEBIAN_SERIES}={version}", on_note)


def _applies(cache: Cache, tree: Tree, source: str, prerequisites: tuple[str, ...]) -> bool:
    before = [_series(path) for path in prerequisites]
    series = _series(source)
    base = choose_base(tree.repo, tree.name, series, describe=tree.describe).value
    if base is None:
        return False
    scratch = cache.dir("scratch", f"demo-{os.getpid()}")
    outcome = apply(tree.repo, base, series, before, scratch=scratch, log=scratch / "apply.log")
    return outcome.value is not None and outcome.value.applied


def _series(path: str) -> Series:
    value = intake(path).value
    if value is None:
        msg = f"{path}: the packaged example cannot be read"
        raise InfraError(msg)
    return value
