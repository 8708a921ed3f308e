"""Stage apply: prerequisites and series onto base, one patch a step, and an honest state when that fails.

In: a bare repository, the base, the series and its prerequisites. Out: Outcome[ApplyResult] with the commits made, or
with the state (does not apply, already merged, malformed, hostile, …) and the evidence for it. No work tree is touched:
what fails leaves no trace. patch(1) is never run, and nothing is written before the whole series was checked for
hostile paths.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reviewbot.model import (
    AppliedPatch,
    ApplyResult,
    ApplyState,
    BaseInfo,
    Blame,
    Outcome,
    Patch,
    Series,
    StageResult,
    Status,
)
from reviewbot.parse.adapt import adapt
from reviewbot.parse.address import split_author
from reviewbot.parse.dates import commit_date
from reviewbot.parse.diagnose import diagnose
from reviewbot.parse.diff import ParsedDiff, parse_diff
from reviewbot.parse.hostile import offences, parents, shown
from reviewbot.parse.merged import merged_evidence
from reviewbot.parse.project import other_project
from reviewbot.tools.objects import read_objects, tree_entries
from reviewbot.tools.patching import Attempt, Commit, SmallIndex, changes, ignore_attributes, make_commits

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from reviewbot.model import HunkFailure
    from reviewbot.tools.objects import TreeEntry

STAGE = "apply"
_FLAGGED = (".gitattributes", ".gitmodules", ".gitignore", ".b4-config")
_SHOWN = 8


@dataclass(frozen=True, slots=True)
class _Step:
    # One patch on its way: whose it is, its place in the series, and its diff.
    patch: Patch
    role: Blame
    label: str
    diff: ParsedDiff


def apply(
    repo: Path,
    base: BaseInfo,
    series: Series,
    prerequisites: Sequence[Series],
    *,
    scratch: Path,
    log: Path,
    allow_fuzz: bool = False,
) -> Outcome[ApplyResult]:
    """Apply prerequisites, then series, on base.commit of the bare repository repo.

    scratch is a directory of ours for the small index and the diffs as git saw them; log gets git's own words. The
    result is PASS with commits that depend on the input alone, else SKIP: no state of applying is a fault of the
    series.
    """
    started = time.monotonic()
    scratch.mkdir(parents=True, exist_ok=True)
    ignore_attributes(repo)
    steps = _steps(series, prerequisites)
    work = _Work(repo, base, series, steps=steps, scratch=scratch, log=log, allow_fuzz=allow_fuzz)
    result = work.run()
    (scratch / "index").unlink(missing_ok=True)
    status = Status.PASS if result.applied else Status.SKIP
    stage = StageResult(
        stage=STAGE,
        status=status,
        summary=result.summary,
        duration_s=time.monotonic() - started,
        facts=_facts(result, work.notes),
        commands=tuple(work.commands),
        excerpt=_excerpt(result),
    )
    return Outcome(result=stage, value=result)


def _steps(series: Series, prerequisites: Sequence[Series]) -> list[_Step]:
    steps: list[_Step] = []
    needed = [patch for one in prerequisites for patch in one.patches]
    steps += [_Step(p, Blame.PREREQUISITE, f"prerequisite {p.subject!r}", parse_diff(p.diff)) for p in needed]
    count = len(series.patches)
    for index, patch in enumerate(series.patches, 1):
        number, total = (patch.number, patch.total) if patch.total else (index, count)
        steps.append(_Step(patch, Blame.SERIES, f"patch {number}/{total} {patch.subject!r}", parse_diff(patch.diff)))
    return steps


class _Work:
    # The state of one application. Everything that it learns ends in the ApplyResult that run() returns.
    def __init__(
        self,
        repo: Path,
        base: BaseInfo,
        series: Series,
        *,
        steps: list[_Step],
        scratch: Path,
        log: Path,
        allow_fuzz: bool,
    ) -> None:
        self.repo = repo
        self.base = base
        self.series = series
        self.steps = steps
        self.scratch = scratch
        self.log = log
        self.allow_fuzz = allow_fuzz
        self.notes: list[str] = []
        self.commands: list[str] = []
        self.already: list[_Step] = []
        self.fuzzy: list[_Step] = []
        self.made: list[tuple[_Step, dict[str, TreeEntry | None]]] = []

    def run(self) -> ApplyResult:
        if refused := self._refused():
            return refused
        paths = {p for s in self.steps for f in s.diff.files for p in (f.old, f.new) if p}
        self.index = SmallIndex(self.repo, self.base.commit, paths, self.scratch, self.log)
        for step in self.steps:
            if failed := self._step(step):
                return failed
        return self._finish()

    def _refused(self) -> ApplyResult | None:
        files = [s.diff.files for s in self.steps]
        paths = {p for group in files for f in group for p in (f.old, f.new) if p}
        safe = {p for p in paths if ".." not in p and not p.startswith("/")}
        above = {parent for p in safe for parent in parents(p)}
        entries = tree_entries(self.repo, self.base.commit, safe | above)
        modes = {path: entry.mode for path, entry in entries.items()}
        if bad := offences(files, modes):
            return self._state(ApplyState.HOSTILE, f"refused: {bad[0]}", evidence=tuple(bad[:50]))
        for step in self.steps:
            if combined := next((f for f in step.diff.files if f.status == "combined"), None):
                text = f"{step.label}: combined (merge) diffs cannot be applied ({shown(combined.path)})"
                return self._state(ApplyState.MALFORMED, text)
            if not step.diff.files:
                return self._state(ApplyState.MALFORMED, f"{step.label}: holds no diff")
        top = self._top_level()
        touched = {p for patch in self.series.patches for p in patch.files}
        if other := other_project(self.series, touched & entries.keys(), top):
            return self._state(ApplyState.OTHER_PROJECT, f"not for this tree: {other}")
        blobs = {path for path in above if path in modes and modes[path] not in ("040000", "120000")}
        for step in self.steps:
            for file in step.diff.files:
                if under := next((p for p in parents(file.path) if p in blobs), None):
                    text = f"{step.label}: {shown(file.path)}: {shown(under)} is a file in {self.base.tree}"
                    return self._state(ApplyState.DOES_NOT_APPLY, text)
        return None

    def _top_level(self) -> set[str]:
        root = read_objects(self.repo, [f"{self.base.commit}^{{tree}}"])[0]
        if root is None:
            return set()
        parts = root.data.split(b"\0")
        names = {parts[0].partition(b" ")[2]}
        size = len(root.oid) // 2
        names |= {part[size:].partition(b" ")[2] for part in parts[1:-1]}
        return {name.decode("utf-8", "replace") for name in names}

    def _step(self, step: _Step) -> ApplyResult | None:
        before = self.index.entries
        data = self._bytes(step)
        options = ["-p0"] if any(f.prefixless for f in step.diff.files) else []
        attempt = self.index.apply(data, options=options)
        self.commands.append(attempt.command)
        if attempt.ok and not attempt.moved:
            self._took(step, before)
            return None
        after = self.index.entries
        self.index.restore(before)
        back = self.index.apply(data, options=[*options, "-R"], check=True)
        if back.ok and (not attempt.ok or not back.moved):
            self.already.append(step)
            self.notes.append(f"{step.label} is in the tree already (its reverse applies)")
            return None
        if attempt.ok:
            self.index.restore(after)
            self._took(step, before)
            return None
        if fuzz := self._with_fuzz(data, options):
            if self.allow_fuzz and self.index.apply(data, options=[*options, fuzz]).ok:
                self.fuzzy.append(step)
                self.notes.append(f"{step.label} was applied with fuzz ({fuzz})")
                self._took(step, before)
                return None
            return self._failed(step, attempt, " (would need fuzz: --allow-fuzz)")
        return self._failed(step, attempt, "")

    def _bytes(self, step: _Step) -> bytes:
        files = step.diff.files
        contents = self.index.contents([f.old or f.new for f in files])
        data, notes = adapt(step.diff, contents)
        self.notes += [f"{step.label}: {note}" for note in notes]
        flagged = [f.path for f in files if f.path.rpartition("/")[2] in _FLAGGED]
        self.notes += [f"{step.label} changes {shown(path)}: git ignores it here" for path in flagged]
        return data

    def _took(self, step: _Step, before: dict[str, TreeEntry]) -> None:
        self.made.append((step, changes(before, self.index.entries)))

    def _with_fuzz(self, data: bytes, options: list[str]) -> str:
        return next((c for c in ("-C2", "-C1") if self.index.apply(data, options=[*options, c], check=True).ok), "")

    def _failed(self, step: _Step, attempt: Attempt, fuzz: str) -> ApplyResult:
        if step.diff.problems:
            problem = step.diff.problems[0]
            text = f"{step.label} is malformed at line {problem.line} of its diff: {problem.text}{self._flowed(step)}"
            return self._state(ApplyState.MALFORMED, text, evidence=(f"git: {attempt.first_error}",))
        if "corrupt patch" in attempt.output or "patch fragment without header" in attempt.output:
            return self._state(ApplyState.MALFORMED, f"{step.label} is malformed: {attempt.first_error}")
        if step.role is Blame.SERIES and (merged := self._merged()):
            return merged
        texts = self._texts(step)
        failures = diagnose(step.patch.subject, step.diff.files, texts)
        evidence = [f"git: {attempt.first_error}"]
        state, why = self._kind(step, failures)
        where = f"{failures[0].file}: {failures[0].reason}" if failures else attempt.first_error
        summary = f"{step.label} does not apply to {self.base.tree} {self.base.describe}{fuzz}: {where}{why}"
        return self._state(state, summary, failures=failures, evidence=tuple(evidence))

    def _flowed(self, step: _Step) -> str:
        return next((f" ({note})" for note in step.patch.notes if "format=flowed" in note), "")

    def _kind(self, step: _Step, failures: Sequence[HunkFailure]) -> tuple[ApplyState, str]:
        if step.role is Blame.PREREQUISITE:
            return ApplyState.BLOCKED, "; the series was not tried"
        missing = [n for n in self.series.missing if n < step.patch.number]
        if not missing:
            return ApplyState.DOES_NOT_APPLY, ""
        are = "is" if len(missing) == 1 else "are"
        why = f"; a likely reason: {_parts(missing)} of {self.series.total} {are} not in the input"
        absent = failures and all(f.reason == "the file does not exist" for f in failures)
        return (ApplyState.INCOMPLETE if absent else ApplyState.DOES_NOT_APPLY), why

    def _texts(self, step: _Step) -> dict[str, str]:
        contents = self.index.contents([f.old or f.new for f in step.diff.files])
        return {path: data.decode("utf-8", "replace") for path, data in contents.items()}

    def _merged(self) -> ApplyResult | None:
        # The whole series taken back from its end; then by content, for what has evolved since.
        steps = [s for s in self.steps if s.role is Blame.SERIES]
        here = self.index.entries
        self._to_start()
        try:
            if all(self._takes_back(step) for step in reversed(steps)):
                evidence = tuple(f"{s.label}: its reverse applies" for s in steps)
                return self._state(
                    ApplyState.ALREADY_MERGED, f"the series is in {self.base.tree} already", evidence=evidence
                )
            self._to_start()
            files = [f for s in steps for f in s.diff.files]
            contents = self.index.contents([f.path for f in files])
            texts: dict[str, str | None] = {f.path: None for f in files}
            found = merged_evidence(files, texts | {p: d.decode("utf-8", "replace") for p, d in contents.items()})
            if not found.merged:
                return None
            text = f"the change is in {self.base.tree} already, in a form that has evolved since"
            return self._state(ApplyState.ALREADY_MERGED, text, evidence=found.lines)
        finally:
            self.index.restore(here)

    def _to_start(self) -> None:
        # Back to the tip of the prerequisites.
        entries = dict(self.index.start)
        for step, changed in self.made:
            if step.role is Blame.PREREQUISITE:
                for path, entry in changed.items():
                    entries.pop(path, None)
                    if entry is not None:
                        entries[path] = entry
        self.index.restore(entries)

    def _takes_back(self, step: _Step) -> bool:
        options = ["-p0"] if any(f.prefixless for f in step.diff.files) else []
        return self.index.apply(self._plain_bytes(step), options=[*options, "-R"]).ok

    def _plain_bytes(self, step: _Step) -> bytes:
        return adapt(step.diff, self.index.contents([f.path for f in step.diff.files]))[0]

    def _finish(self) -> ApplyResult:
        own = [s for s in self.steps if s.role is Blame.SERIES]
        if own and all(s in self.already for s in own):
            evidence = tuple(f"{s.label}: its reverse applies" for s in own)
            return self._state(
                ApplyState.ALREADY_MERGED, f"the series is in {self.base.tree} already", evidence=evidence
            )
        ids = make_commits(self.repo, self.base.commit, [_commit(step, changed) for step, changed in self.made])
        patches = tuple(_applied(step, commit) for (step, _), commit in zip(self.made, ids, strict=True))
        before = [p.commit for p in patches if p.role is Blame.PREREQUISITE]
        state = ApplyState.APPLIED_WITH_FUZZ if self.fuzzy else ApplyState.APPLIED
        return ApplyResult(
            state=state,
            summary=self._applied_summary(patches),
            base_commit=self.base.commit,
            prerequisite_commit=before[-1] if before else self.base.commit,
            tip_commit=ids[-1],
            patches=patches,
            evidence=tuple(self.notes),
        )

    def _applied_summary(self, patches: Sequence[AppliedPatch]) -> str:
        own = sum(1 for p in patches if p.role is Blame.SERIES)
        words = [f"{own} patch{'es' * (own != 1)} applied to {self.base.tree} {self.base.describe}"]
        if others := len(patches) - own:
            words.append(f"after {others} prerequisite{'s' * (others != 1)}")
        if self.fuzzy:
            words.append(f"WITH FUZZ in {len(self.fuzzy)}")
        if self.already:
            words.append(f"{len(self.already)} in the tree already")
        if self.series.missing:
            words.append(f"the series is incomplete ({self.series.missing_ranges} of {self.series.total} missing)")
        return ", ".join(words)

    def _state(
        self,
        state: ApplyState,
        summary: str,
        *,
        failures: tuple[HunkFailure, ...] = (),
        evidence: tuple[str, ...] = (),
    ) -> ApplyResult:
        return ApplyResult(
            state=state, summary=summary, base_commit=self.base.commit, failures=failures, evidence=evidence
        )


def _parts(numbers: Sequence[int]) -> str:
    shown_numbers = ", ".join(map(str, numbers[:_SHOWN])) + (", …" if len(numbers) > _SHOWN else "")
    return f"patch {shown_numbers}" if len(numbers) == 1 else f"patches {shown_numbers}"


def _commit(step: _Step, changed: dict[str, TreeEntry | None]) -> Commit:
    name, address = split_author(step.patch.author)
    epoch, zone = commit_date(step.patch.date)
    return Commit(
        name=name or "unknown",
        address=address,
        epoch=epoch,
        zone=zone,
        message=f"{step.patch.subject}\n\n{step.patch.message}",
        files=changed,
    )


def _applied(step: _Step, commit: str) -> AppliedPatch:
    return AppliedPatch(
        subject=step.patch.subject,
        commit=commit,
        role=step.role,
        files=tuple(dict.fromkeys(f.path for f in step.diff.files)),
        insertions=sum(len(f.lines("+")) for f in step.diff.files),
        deletions=sum(len(f.lines("-")) for f in step.diff.files),
    )


def _facts(result: ApplyResult, notes: Sequence[str]) -> tuple[tuple[str, str], ...]:
    facts = [("state", result.state.value), ("base", result.base_commit)]
    if result.applied:
        facts.append(("patched", result.tip_commit))
    facts += [(p.role.value, f"{p.commit[:12]} {p.subject}") for p in result.patches[:50]]
    return (*facts, *(("note", note) for note in notes))


def _excerpt(result: ApplyResult) -> str:
    parts = [
        f"{f.file}, hunk {f.hunk} {f.header}\n{f.reason}\n{f.difference}".rstrip() for f in result.failures[:_SHOWN]
    ]
    return "\n\n".join(parts or result.evidence[:20]) if not result.applied else ""
