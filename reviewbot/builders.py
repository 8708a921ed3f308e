"""The Builder of a tree: its build profile, its build directory and where its kernels are kept.

In: a tree, a commit of it, fragments and a compiler. Out: a Builder whose directories belong to (tree, fragments,
profile, compiler), so that whoever asks with the same values goes on from what was built before.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reviewbot.tools.git import git_bytes
from reviewbot.tools.kernel import Builder
from reviewbot.tools.make import Compiler, Make
from reviewbot.tools.profiles import choose_profile
from reviewbot.tools.tree import Tree, worktree

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from reviewbot.stages.configure import Fragments
    from reviewbot.tools.cache import Cache


def new_builder(
    cache: Cache,
    tree: Tree,
    commit: str,
    fragments: Fragments,
    tools: Compiler,
    *,
    log: Path,
    on_progress: Callable[[str], None],
) -> Builder:
    """Return the Builder for the commit's version of the tree; log gets what make prints."""
    profile = choose_profile(git_bytes(tree.repo, "show", f"{commit}:Makefile").decode("utf-8", "replace"))
    key = f"{replace(fragments, wanted=(*fragments.wanted, *profile.wanted)).key}-{tools.key}"
    make = Make(
        source=worktree(cache, tree),
        build=cache.dir("builds", tree.name, key),
        compiler=tools,
        ccache_dir=cache.dir("ccache"),
        log=log,
        cc_flags=profile.cc_flags,
        extra=profile.make,
    )
    store = cache.dir("artefacts", tree.name, key)
    return Builder(make=make, store=store, on_progress=on_progress, profile=profile)
