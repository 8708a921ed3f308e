"""The branch names that subject tags and mailing lists stand for: our defaults, and the user's file over them.

In: branches.toml of the package and of $XDG_CONFIG_HOME/reviewbot (never of the tree under test). Out: a Branches.
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reviewbot.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_OURS = Path(__file__).resolve().parent.parent / "branches.toml"


@dataclass(frozen=True, slots=True)
class Branches:
    """Names to look for in a tree, best first, by subject tag and by list address."""

    tags: Mapping[str, tuple[str, ...]]
    lists: Mapping[str, tuple[str, ...]]

    def named(self, prefixes: Iterable[str], lists: Iterable[str]) -> list[tuple[str, str]]:
        """Return (branch name, why) for subject words and list addresses, subject words first."""
        found = [(b, f"subject tag {p}") for p in prefixes for b in (*self.tags.get(p.lower(), ()), p)]
        found += [(b, f"list {one}") for one in lists for b in self.lists.get(one.lower(), ())]
        return found


def user_file() -> Path:
    """Return where the user's own file would be."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "reviewbot" / "branches.toml"


def load(own: Path | None = None) -> Branches:
    """Read our file and the user's (own, by default user_file()). Raises UsageError for a file that is no such TOML."""
    tags: dict[str, tuple[str, ...]] = {}
    lists: dict[str, tuple[str, ...]] = {}
    for path in (_OURS, own or user_file()):
        data = _read(path)
        tags |= _table(data, "tags", path)
        lists |= _table(data, "lists", path)
    return Branches(tags, lists)


def _read(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        msg = f"{path}: {error}"
        raise UsageError(msg) from error


def _table(data: dict[str, object], name: str, path: Path) -> dict[str, tuple[str, ...]]:
    table = data.get(name, {})
    if isinstance(table, dict) and all(
        isinstance(v, list) and all(isinstance(x, str) for x in v) for v in table.values()
    ):
        return {str(key).lower(): tuple(value) for key, value in table.items()}
    msg = f"{path}: [{name}] must map a name to a list of branch names"
    raise UsageError(msg)
