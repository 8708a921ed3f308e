"""The branches and tags of a repository as candidates for a base, and how well each fits the pre-image of a series.

In: a repository, and the blob ids that the ``index`` lines of a series name. Out: Candidates with their scores.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from reviewbot.tools.git import git, git_bytes
from reviewbot.tools.objects import object_facts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from reviewbot.parse.diff import FileDiff

MAX_REFS = 300
_BRANCHES = 25
_DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Candidate:
    """A commit that may be the base: its name for a reader, its id, and how many of the pre-image blobs it has (hits).

    kind is "head", "branch", "tag", or "before" (a branch as it was when the mail was sent). when is the time of the
    ref in seconds since the epoch. files are the object ids that it has at the paths of the series: where they are
    equal, the series applies alike.
    """

    name: str
    commit: str
    when: int
    kind: str
    hits: int = 0
    files: tuple[str, ...] = ()


def candidates(repo: Path, head: str, sent: int) -> list[Candidate]:
    """Return HEAD, the branches (now, and as they were when the mail was sent) and the tags, nearest to sent first.

    At most MAX_REFS tags and branches are looked at. sent is 0 when the mail has no date.
    """
    form = "%(refname) %(objectname) %(*objectname) %(creatordate:unix)"
    lines = (
        git_bytes(repo, "for-each-ref", f"--format={form}", "refs/heads", "refs/remotes", "refs/tags")
        .decode()
        .split("\n")
    )
    found = [Candidate("HEAD", head, 0, "head")]
    refs = [one for line in lines if (one := _ref(line))]
    refs.sort(key=lambda c: abs(c.when - sent) if sent else -c.when)
    found += refs[:MAX_REFS]
    if sent:
        found += [one for ref in refs[:MAX_REFS] if ref.kind == "branch" for one in _before(repo, ref, sent)][
            :_BRANCHES
        ]
    return found


def _ref(line: str) -> Candidate | None:
    words = line.split(" ")
    if len(words) != 4 or words[0].endswith("/HEAD"):
        return None
    name, oid, peeled, when = words
    short = name.split("/", 2)[2]
    kind = "tag" if name.startswith("refs/tags/") else "branch"
    return Candidate(short, peeled or oid, int(when or 0), kind)


def _before(repo: Path, ref: Candidate, sent: int) -> list[Candidate]:
    if ref.when <= sent:
        return []
    done = git(repo, "rev-list", "-1", "--first-parent", f"--before={sent}", ref.commit, "--", timeout_s=30)
    commit = done.stdout.strip()
    return [Candidate(f"{ref.name} as of the mail's date", commit, sent, "before")] if done.ok and commit else []


def preimage(patches: Sequence[Sequence[FileDiff]]) -> dict[str, str]:
    """Return path to (abbreviated) blob id of each file as the series expects it in base: its first change counts."""
    found: dict[str, str] = {}
    seen: set[str] = set()
    for files in patches:
        for file in files:
            if file.old and file.old not in seen and file.old_blob.strip("0") and len(file.old_blob) >= 7:
                found[file.old] = file.old_blob
            seen |= {file.old, file.new}
    return found


def scored(
    repo: Path, found: Sequence[Candidate], blobs: Mapping[str, str], paths: Iterable[str] = ()
) -> list[Candidate]:
    """Return the candidates with hits and files, read in one go.

    blobs map a path to the (abbreviated) id of its pre-image; paths are all that the series touches.
    """
    unique = list(dict.fromkeys(c.commit for c in found))
    asked = list(dict.fromkeys([*blobs, *paths]))
    facts = object_facts(repo, [f"{commit}:{path}" for commit in unique for path in asked])
    oids = [fact[0] if fact is not None else "" for fact in facts]
    files = {c: tuple(oids[n * len(asked) : (n + 1) * len(asked)]) for n, c in enumerate(unique)}
    wanted = list(blobs.values())
    hits = {c: sum(o.startswith(w) for o, w in zip(own, wanted, strict=False)) for c, own in files.items()}
    return [replace(c, hits=hits[c.commit], files=files[c.commit]) for c in found]
