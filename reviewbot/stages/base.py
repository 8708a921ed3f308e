"""Stage base: which commit the series is tested on, and why the others were not taken.

In: a bare repository, the tree's name, and the series. Out: Outcome[BaseInfo]. Refused with UsageError: a --base
revision that the tree does not have. In this order: --base, base-commit, a branch that holds the prerequisites, the
pre-image blobs of the ``index`` lines, the branch that subject tag, list or MAINTAINERS name, the newest tag before the
mail, HEAD.
"""

from __future__ import annotations

import re
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from reviewbot.errors import InfraError, UsageError
from reviewbot.model import BaseInfo, Outcome, Series, StageResult, Status
from reviewbot.parse.dates import FIXED_EPOCH, commit_date
from reviewbot.parse.maintainers import parse_maintainers, short_name, trees_for
from reviewbot.tools.applier import ALREADY_IN, Step, applies, paths_of, steps_of
from reviewbot.tools.branches import Branches, load
from reviewbot.tools.elsewhere import better_trees
from reviewbot.tools.git import git, must
from reviewbot.tools.history import recent
from reviewbot.tools.objects import read_objects
from reviewbot.tools.refs import Candidate, candidates, preimage, scored
from reviewbot.tools.refusal import refusal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

STAGE = "base"
# What the source's HEAD named at the last refresh of the tree; a tarball's tree has HEAD alone.
_TREE_HEAD = "refs/reviewbot/head"
# How many states of the touched files are tried by applying the series, and how many branches for prerequisites.
_TRIES = 32
_HISTORIES = 4
_LISTED = 12


def choose_base(
    repo: Path,
    tree: str,
    series: Series,
    *,
    rev: str = "",
    describe: str = "",
    config: Path | None = None,
    prerequisites: Sequence[Series] = (),
    others: Mapping[str, Path] | None = None,
) -> Outcome[BaseInfo]:
    """Return the commit of repo (trees/NAME.git, its name is tree) that the series is tested on.

    prerequisites are applied before the series wherever a candidate is tried. others are the further trees that the
    user has (name to repository): where one fits better, the candidates say so first.
    rev is what the user asked for with --base. describe is the tree's own name for its HEAD (a Debian version), used
    where git describe knows nothing. config is the user's branches.toml (in $XDG_CONFIG_HOME/reviewbot by default).
    Raises UsageError for an unknown rev.
    """
    started = time.monotonic()
    choice = _Choice(repo, tree, series, config, tuple(prerequisites)).choose(rev)
    better = choice.elsewhere(others or {}) if not rev else []
    info = BaseInfo(
        tree=tree,
        commit=choice.commit,
        describe=_describe(repo, choice, describe),
        chosen_by=choice.why,
        candidates=(*better, *choice.lost),
        verified=_has_history(repo, choice.commit),
    )
    result = StageResult(
        stage=STAGE,
        status=Status.PASS,
        summary=f"{tree} {info.describe}: {info.chosen_by}",
        duration_s=time.monotonic() - started,
        facts=(
            ("tree", tree),
            ("commit", info.commit),
            ("version", info.describe),
            *(("candidate", line) for line in info.candidates),
        ),
    )
    return Outcome(result=result, value=info)


def resolve(repo: Path, rev: str) -> str:
    """Return the commit id of a revision, or an empty string."""
    done = git(repo, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{rev}^{{commit}}")
    return done.stdout.strip() if done.ok else ""


@dataclass(slots=True)
class _Choice:
    # The search: commit, name and why are its answer, lost what was passed over.
    repo: Path
    tree: str
    series: Series
    config: Path | None
    prerequisites: tuple[Series, ...]
    commit: str = ""
    name: str = ""
    why: str = ""
    lost: list[str] = field(default_factory=list)
    by_footer: bool = False

    def choose(self, rev: str) -> _Choice:
        if rev:
            commit = resolve(self.repo, rev)
            if not commit:
                msg = f"--base {rev}: no such revision in the tree {self.tree}"
                raise UsageError(msg)
            return self._take(Candidate(rev, commit, 0, "head"), f"--base {rev}")
        head = resolve(self.repo, _TREE_HEAD) or resolve(self.repo, "HEAD")
        if not head:
            msg = f"tree {self.tree}: the repository has no HEAD commit"
            raise InfraError(msg)
        if self.series.base_commit:
            if commit := resolve(self.repo, self.series.base_commit):
                self.by_footer = True
                return self._take(Candidate(commit, commit, 0, "head"), _by_footer(self.series.base_commit))
            self.lost.append(f"base-commit {self.series.base_commit}: unknown, tested on {self.tree} instead")
        else:
            self.lost.append("no base-commit in the series")
        return self._search(head)

    def _take(self, one: Candidate, why: str) -> _Choice:
        self.commit, self.name, self.why = one.commit, one.name, why
        return self

    def elsewhere(self, others: Mapping[str, Path]) -> list[str]:
        """Return what speaks for other trees than the one in use."""
        if not others or self.by_footer:
            return []
        blobs = self._preimage()
        here = Candidate(self.name, self.commit, 0, "head")
        hits = scored(self.repo, [here], blobs)[0].hits
        return better_trees(others, self.series.base_commit, blobs, hits, _sent(self.series))

    def _preimage(self) -> dict[str, str]:
        return preimage([step.diff.files for step in steps_of(self.series)])

    def _search(self, head: str) -> _Choice:
        epoch, _ = commit_date(self.series.date)
        found = candidates(self.repo, head, _sent(self.series))
        steps = steps_of(self.series, self.prerequisites)
        blobs = self._preimage()
        found = scored(self.repo, found, blobs, sorted(paths_of(steps)))
        top = found[0]
        if len({c.commit for c in found}) == 1:
            return self._take(top, f"HEAD of {self.tree}, its only commit with a name{_share(top, len(blobs))}")
        if one := self._with_prerequisites(found):
            return self._take(one, f"{one.name} holds the prerequisites")
        ordered = list(self._ordered(found, epoch))
        if not blobs:
            self.lost.append("no pre-image blobs: the patches have no index lines")
        return self._tried(ordered, steps, len(blobs), top)

    def _ordered(self, found: list[Candidate], epoch: int) -> Iterator[tuple[Candidate, str]]:
        # Everything once, with why it stands here: best blob score (named branches first), named branches, newest tag
        # before the mail, HEAD, the rest.
        seen: set[str] = set()
        for one, why in self._ranked(found, epoch):
            if one.commit not in seen:
                seen.add(one.commit)
                yield one, why

    def _ranked(self, found: list[Candidate], epoch: int) -> Iterator[tuple[Candidate, str]]:
        best = max(c.hits for c in found)
        named = self._named(found)
        yield from ((c, why) for c, why in named if c.hits == best)
        if best:
            yield from ((c, "most pre-image blobs") for c in found if c.hits == best)
        yield from named
        before = [c for c in found if c.kind == "tag" and c.when <= epoch]
        yield from ((c, "newest tag before the mail") for c in sorted(before, key=lambda c: -c.when)[:1])
        yield from ((c, f"HEAD of {self.tree}") for c in found[:1])
        yield from ((c, "nearest in time") for c in sorted(found, key=lambda c: -c.hits))

    def _named(self, found: list[Candidate]) -> list[tuple[Candidate, str]]:
        branches: Branches = load(self.config)
        out = []
        for name, why in [
            *branches.named(self.series.prefixes, self.series.lists),
            *self._maintainers(found[0].commit),
        ]:
            out += [(c, why) for c in found if c.name == name or c.name.startswith((f"{name}/", f"{name} as of"))]
        return sorted(out, key=lambda pair: pair[0].kind != "before")

    def _maintainers(self, head: str) -> list[tuple[str, str]]:
        blob = read_objects(self.repo, [f"{head}:MAINTAINERS"])[0]
        if blob is None:
            return []
        paths = [path for patch in self.series.patches for path in patch.files]
        trees = trees_for(parse_maintainers(blob.data.decode("utf-8", "replace")), paths[:200])
        return [
            (
                f"{short_name(address)}/{branch}" if branch else short_name(address),
                f"MAINTAINERS T: {short_name(address)}",
            )
            for address, branch in trees[:6]
        ]

    def _with_prerequisites(self, found: list[Candidate]) -> Candidate | None:
        wanted = [need for need in self.series.prerequisites if need.startswith(("patch-id", "message-id"))]
        if not wanted:
            return None
        unique = {c.commit: c for c in reversed(found) if c.kind in ("head", "branch")}
        for one in list(unique.values())[:_HISTORIES]:
            history = recent(self.repo, one.commit)
            if all(history.commit_for(need) for need in wanted):
                return one
        self.lost.append("no branch holds the prerequisites")
        return None

    def _tried(
        self, ordered: Sequence[tuple[Candidate, str]], steps: list[Step], total: int, head: Candidate
    ) -> _Choice:
        # The first one that the series applies to; those with all blobs are in front, and as a rule the first does.
        exact = [c for c, _ in ordered if total and c.hits == total]
        holders: list[Candidate] = []
        with tempfile.TemporaryDirectory(prefix="reviewbot-base-") as scratch:
            for one, why, same in _states(ordered)[:_TRIES]:
                reason = self._reason(one, steps, Path(scratch))
                if not reason and one in exact:
                    self._list([c for c, _ in ordered if c.hits < total], total)
                    more = f" (and {len(exact) - 1} others)" if len(exact) > 1 else ""
                    return self._take(one, f"all {total} pre-image blobs are in {one.name}{more}")
                if not reason:
                    return self._take(one, f"{one.name} ({why}{_share(one, total)}): the series applies")
                if reason == ALREADY_IN:
                    holders.append(one)
                self.lost.append(f"{one.name}{_others(same)} ({why}{_share(one, total)}): {reason}")
        if holders:
            return self._take(holders[0], f"{holders[0].name}: the series is in it already, and applies to no other")
        # With no blob in common a date says little: the tree's own HEAD.
        best = ordered[0][0] if ordered[0][0].hits else head
        return self._take(best, f"{best.name}{_share(best, total)}; the series applies to none of those tried")

    def _list(self, lost: Sequence[Candidate], total: int) -> None:
        self.lost += [f"{c.name}: {c.hits} of {total} pre-image blobs" for c in lost[:_LISTED]]
        if len(lost) > _LISTED:
            self.lost.append(f"… and {len(lost) - _LISTED} more")

    def _reason(self, one: Candidate, steps: list[Step], scratch: Path) -> str:
        if refused := refusal(self.repo, one.commit, self.series, steps):
            return refused.text
        return applies(self.repo, one.commit, steps, scratch=scratch)


def _sent(series: Series) -> int:
    epoch, _ = commit_date(series.date)
    return 0 if epoch == FIXED_EPOCH else epoch


def _by_footer(base_commit: str) -> str:
    by_name = "" if re.fullmatch(r"[0-9a-f]+", base_commit) else f", the tag {base_commit}"
    return f"base-commit of the series{by_name}"


def _states(ordered: Sequence[tuple[Candidate, str]]) -> list[tuple[Candidate, str, int]]:
    # Where the touched files are the same, the series applies alike: the first, why it stands here, how many more.
    groups: dict[tuple[str, ...], tuple[Candidate, str, int]] = {}
    for one, why in ordered:
        first, reason, more = groups.get(one.files, (one, why, -1))
        groups[one.files] = (first, reason, more + 1)
    return list(groups.values())


def _others(same: int) -> str:
    return f" and {same} with the same files" if same else ""


def _share(one: Candidate, total: int) -> str:
    return f", {one.hits} of {total} pre-image blobs" if total else ""


def _has_history(repo: Path, commit: str) -> bool:
    return bool(must(repo, "rev-list", "--max-count=1", "--parents", commit).partition(" ")[2])


def _describe(repo: Path, choice: _Choice, given: str) -> str:
    if given and choice.commit in (resolve(repo, _TREE_HEAD), resolve(repo, "HEAD")):
        return given
    done = git(repo, "describe", "--tags", "--always", "--abbrev=12", choice.commit, timeout_s=60)
    return done.stdout.strip() or choice.commit[:12]
