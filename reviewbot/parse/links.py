"""Where the symbolic links of a tree lead, told without a file system.

In: the links of a whole tree (path to target). Out: why each one that leads out of the tree does so. Links on the way
are followed: `a -> d/up/../../x` is inside by its letters, and outside when `d/up` is a link to the root.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reviewbot.parse.hostile import is_git, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

# As Linux: more links than this on one way are a loop, which leads nowhere. A target is at most a path long.
_MOST_LINKS = 40
_LONGEST = 4095


def leaving(links: Mapping[str, str]) -> dict[str, str]:
    """Return those of the links (path to target) that must not be in a tree, each with the reason in words."""
    found = {}
    for path, target in links.items():
        if why := _why(path, target, links):
            found[path] = f"symbolic link to {shown(target)}: {why}"
    return found


def _why(path: str, target: str, links: Mapping[str, str]) -> str:
    if not target or len(target.encode("utf-8", "surrogateescape")) > _LONGEST or "\0" in target:
        return "not a path"
    here = path.split("/")[:-1]
    ahead = target.split("/")[::-1]
    followed = 0
    if target.startswith("/"):
        return "an absolute path"
    while ahead:
        part = ahead.pop()
        if part in ("", "."):
            continue
        if part == "..":
            if not here:
                return "it leads out of the tree"
            here.pop()
            continue
        if is_git(part):
            return "it leads into a .git directory"
        here.append(part)
        onward = links.get("/".join(here))
        if onward is None:
            continue
        followed += 1
        if onward.startswith("/"):
            return "it leads out of the tree"
        if followed > _MOST_LINKS:
            return ""
        here.pop()
        ahead += onward.split("/")[::-1]
    return ""
