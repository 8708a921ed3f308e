"""The boots of a mutation run: the right kernel, the one that holds the mutants, and each wrong one.

In: a campaign, a bench to boot on and a builder. Out: each mutant of the sample settled in the campaign: killed when
what the tests report differs twice, or when the kernel complains or goes down twice; equivalent when its object code is
the original's.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from reviewbot import kills
from reviewbot.errors import InfraError
from reviewbot.report.mutants import Fate
from reviewbot.tools import mutation
from reviewbot.tools.vng import Ending

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from reviewbot.campaign import Campaign
    from reviewbot.generate.mutants import Mutant
    from reviewbot.tools.kernel import Builder, Kernel
    from reviewbot.tools.programs import Bench, Seen

_EVIDENCE_MAX = 12


@dataclass(slots=True, kw_only=True)
class Trial:
    """The boots of one run; files are the patched ones, mutants are by number."""

    campaign: Campaign
    bench: Bench
    builder: Builder
    repo: Path
    tip: str
    files: dict[str, bytes]
    mutants: dict[int, Mutant]
    note: Callable[[str], None]
    checked: set[int] = field(default_factory=set)
    hits: frozenset[int] = frozenset()

    def run(self, kernel: Kernel) -> None:
        """Try the sample, until it is done or the time is over."""
        image = self.schema()
        if self.campaign.over():
            return
        right = self.baseline(kernel.image, image)
        self.campaign.facts["not compared (flaky)"] = ", ".join(sorted(right.unstable)) or "nothing"
        self.campaign.facts["cases"] = f"{len(right.names)}, of which {len(right.bad)} fail on the patched kernel"
        while not self.campaign.over():
            waiting = self.campaign.waiting()
            if waiting:
                self.one(waiting[0], image, right)
            elif not self.equivalents():
                return

    def baseline(self, patched: Path, image: Path) -> kills.Expected:
        """Boot the right kernel and the one that holds the mutants, none of them active: they must be the same.

        What their runs do not agree on from run to run is not compared. Raises InfraError when they differ.
        """
        seen: dict[str, list[Seen]] = {"patched": [], "schema": []}
        self.right(seen, "patched", patched, None)
        self.bench = self.bench.patient(seen["patched"][0])
        self.right(seen, "schema", image, 0)
        self.right(seen, "schema", image, 0)
        sides = [_expected(seen[side]) for side in seen]
        if kills.contrast(*sides):
            self.right(seen, "patched", patched, None)
            sides = [_expected(seen[side]) for side in seen]
        if different := kills.contrast(*sides):
            msg = f"the kernel that holds the mutants differs with none active: {', '.join(different[:8])}"
            raise InfraError(msg)
        self.hits = frozenset().union(*(one.hits for one in seen["schema"]))
        results = self.campaign.results
        inside = [n for n, r in results.items() if not r.own_build and r.fate not in (Fate.INVALID, Fate.EQUIVALENT)]
        results |= {n: replace(results[n], reached=n in self.hits) for n in inside}
        reach = sum(1 for n in inside if n in self.hits)
        self.campaign.facts["reached"] = f"{reach} of {len(inside)} mutants stand where the tests come by"
        return kills.join(*sides)

    def right(self, seen: dict[str, list[Seen]], label: str, image: Path, number: int | None) -> None:
        """Boot a kernel that is right once more."""
        count = len(seen[label]) + 1
        self.note(f"{label} kernel, run {count}")
        one = self.bench.boot(image, f"{label}-{count}", number=number)
        if one.ending is not Ending.FINISHED:
            msg = f"the {label} kernel did not come to the end of the tests: {one.ending} {one.detail}"
            raise InfraError(msg)
        self.campaign.facts[f"{label} kernel"] = f"{one.duration_s:.0f} s a boot with {len(self.bench.names)} programs"
        seen[label].append(one)

    def schema(self) -> Path:
        """Build the kernel that holds the mutants, and settle those that cannot be in it."""
        left = [
            self.mutants[n]
            for n, r in self.campaign.results.items()
            if not r.own_build and r.fate not in (Fate.INVALID, Fate.EQUIVALENT)
        ]
        built = mutation.build_schema(self.builder, self.repo, self.tip, files=self.files, mutants=left, note=self.note)
        results = self.campaign.results
        for number, reason in built.invalid.items():
            results[number] = replace(results[number], fate=Fate.INVALID, reason=reason)
        for number, reason in built.alone.items():
            results[number] = replace(results[number], own_build=True, reason=reason)
        self.note(f"building the kernel that holds {len(built.kept)} mutants")
        attempt = self.builder.build(built.commit)
        if attempt.kernel is None:
            msg = f"the kernel that holds the mutants does not build: {attempt.problem or attempt.output[-300:]}"
            raise InfraError(msg)
        self.campaign.save()
        return attempt.kernel.image

    def one(self, number: int, image: Path, right: kills.Expected) -> None:
        """Try one mutant."""
        result, mutant = self.campaign.results[number], self.mutants[number]
        self.note(f"mutant {number} ({len(self.campaign.waiting())} left): {mutant.title}")
        if result.own_build:
            alone = self.alone(mutant)
            if alone is not None:
                self.judge(number, alone, None, right)
                shutil.rmtree(alone.parent)
        elif number not in self.hits:
            self.campaign.settle(number, fate=Fate.SURVIVED, reached=False, reason="no test comes to this place")
        else:
            self.judge(number, image, number, right)

    def alone(self, mutant: Mutant) -> Path | None:
        """Build a kernel with this one mutant; None when it does not compile."""
        commit = mutation.commit_alone(self.repo, self.tip, self.files, mutant)
        attempt = self.builder.build(commit)
        if attempt.problem:
            raise InfraError(attempt.problem)
        if attempt.kernel is None:
            first = next((d.text for d in attempt.diagnostics if d.kind == "error"), "make failed")
            self.campaign.settle(mutant.number, fate=Fate.INVALID, reason=f"does not compile: {first}")
            return None
        return attempt.kernel.image

    def judge(self, number: int, image: Path, active: int | None, right: kills.Expected) -> None:
        """Boot a mutant, again when something differs, and settle it."""
        first = self.bench.boot(
            image,
            f"mutant-{number}-1",
            number=active,
            enough=lambda run, program: bool(kills.differences(right, run, [program])),
        )
        evidence = _evidence(right, first)
        boots, again = 1, tuple[str, ...]()
        if evidence:
            names = kills.programs_of(evidence, first.programs)
            second = self.bench.boot(image, f"mutant-{number}-2", number=active, names=names)
            boots, again = 2, _evidence(right, second)
        killed = bool(evidence and again)
        reason = "differed in one boot of two: " + "; ".join(evidence[:3]) if evidence and not again else ""
        self.campaign.settle(
            number,
            fate=Fate.KILLED if killed else Fate.SURVIVED,
            evidence=again[:_EVIDENCE_MAX] if killed else (),
            reason=reason,
            reached=None if active is None else True,
            boots=boots,
        )
        self.note(f"mutant {number}: {self.campaign.results[number].fate} {'; '.join(again[:2])}")

    def equivalents(self) -> bool:
        """Compare the object code of survivors with the original's; return whether one is the same and not counted."""
        left = [r for r in self.campaign.results.values() if r.fate is Fate.SURVIVED and r.number not in self.checked]
        found = False
        for result in left:
            if self.campaign.over():
                break
            self.checked.add(result.number)
            if not result.file.endswith(".c"):
                continue
            self.note(f"mutant {result.number}: comparing object code")
            original, _ = mutation.objects_of(self.builder, self.tip, [result.file])
            commit = mutation.commit_alone(self.repo, self.tip, self.files, self.mutants[result.number])
            changed, failed = mutation.objects_of(self.builder, commit, [result.file])
            if original and not failed and changed == original:
                found = True
                reason = "compiles to the same object code"
                self.campaign.settle(result.number, fate=Fate.EQUIVALENT, reason=reason)
        return found


def _expected(seen: Sequence[Seen]) -> kills.Expected:
    return kills.expected([one.run for one in seen], [one.console for one in seen])


def _evidence(right: kills.Expected, seen: Seen) -> tuple[str, ...]:
    down: tuple[str, ...] = ()
    if seen.ending not in (None, Ending.FINISHED):
        down = (f"the kernel went down: {seen.ending} {seen.detail}".strip(),)
    return (*down, *kills.complaints(right, seen.console), *kills.differences(right, seen.run, seen.programs))
