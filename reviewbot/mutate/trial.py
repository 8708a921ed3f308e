"""The boots of a mutation run: the right kernel, the one that holds the mutants, and each wrong one.

In: a campaign, a bench to boot on and a builder. Out: each mutant of the sample settled in the campaign: killed when
what the tests report differs twice, or when the kernel complains or goes down twice; equivalent when its object code is
the original's. The second boot runs the programs that differed, and nothing else; where the right kernel differs too
when it runs them alone, that is no catch.
"""

from __future__ import annotations

import shutil
import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from reviewbot.errors import InfraError
from reviewbot.mutate import baseline, kills
from reviewbot.mutate.ranking import ranked
from reviewbot.report.mutants import Fate
from reviewbot.threads import together
from reviewbot.tools import mutation
from reviewbot.tools.vng import Ending

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from reviewbot.generate.mutants import Mutant
    from reviewbot.mutate.campaign import Campaign
    from reviewbot.tools.kernel import Builder, Kernel
    from reviewbot.tools.programs import Bench, Seen

_EVIDENCE_MAX = 12


@dataclass(slots=True, kw_only=True)
class Trial:
    """The boots of one run; files are the patched ones, mutants are by number. memory holds what schema() found."""

    campaign: Campaign
    bench: Bench
    builder: Builder
    repo: Path
    tip: str
    files: dict[str, bytes]
    mutants: dict[int, Mutant]
    memory: Path
    note: Callable[[str], None]
    checked: set[int] = field(default_factory=set)
    claimed: set[int] = field(default_factory=set)
    hits: frozenset[int] = frozenset()
    image: Path | None = None
    controls: dict[tuple[str, ...], tuple[str, ...]] = field(default_factory=dict)
    control_lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, kernel: Kernel) -> None:
        """Try the sample, until it is done or the time is over."""
        image = self.image = self.schema()
        if self.campaign.over():
            return
        right = self.right(kernel.image, image)
        while not self.campaign.over():
            waiting = self.campaign.waiting()
            if not waiting and not self.equivalents():
                return
            if waiting and self.campaign.results[waiting[0]].own_build:
                self.built_alone(waiting[0], right)
            elif waiting:
                self.claimed.clear()
                together(self.campaign.options.jobs, lambda: self.work(image, right))

    def work(self, image: Path, right: kills.Expected) -> None:
        """Try what is waiting and needs no build of its own, one after another."""
        while (number := self.claim()) is not None:
            self.one(number, image, right)

    def claim(self) -> int | None:
        """Return the number of a mutant that nobody tries yet; None when there is none, or no time."""
        with self.campaign.lock:
            results = self.campaign.results
            free = [n for n in self.campaign.waiting() if n not in self.claimed and not results[n].own_build]
            if not free or self.campaign.over():
                return None
            self.claimed.add(free[0])
            return free[0]

    def right(self, patched: Path, image: Path) -> kills.Expected:
        """Return what the right kernel does: measured, or kept from an earlier run on the same kernels and tests."""
        campaign = self.campaign
        key = f"{campaign.report.key} {image.parent.name} {self.bench.machine.cpus} CPUs"
        measured = baseline.load(campaign.out, key) if campaign.options.resume else None
        if measured is None:
            measured = baseline.measure(self.bench, patched, image, key=key, jobs=campaign.options.jobs, note=self.note)
            baseline.save(campaign.out, measured)
        self.bench, self.hits = self.bench.patient(measured.took_s, measured.boot_s), measured.hits
        self.facts(measured)
        return measured.right

    def facts(self, measured: baseline.Baseline) -> None:
        """Say what the right kernel does, and mark the mutants whose places no test comes to."""
        right, results, facts = measured.right, self.campaign.results, self.campaign.facts
        inside = [n for n, r in results.items() if not r.own_build and r.fate not in (Fate.INVALID, Fate.EQUIVALENT)]
        results |= {n: replace(results[n], reached=n in self.hits) for n in inside}
        reach = sum(1 for n in inside if n in self.hits)
        count = len(self.bench.names)
        facts["unmutated kernel"] = (
            f"{measured.boots} boots, {count} programs in several orders, {measured.boot_s:.0f} s"
        )
        facts["cases"] = f"{len(right.names)} compared, of which {len(right.bad)} fail on the unmutated kernel"
        facts["not compared (flaky)"] = ", ".join(sorted(right.unstable)) or "nothing"
        facts["reached"] = f"{reach} of {len(inside)} mutants stand where the tests come by"

    def schema(self) -> Path:
        """Build the kernel that holds the mutants, and settle those that cannot be in it."""
        left = [
            self.mutants[n]
            for n, r in self.campaign.results.items()
            if not r.own_build and r.fate not in (Fate.INVALID, Fate.EQUIVALENT)
        ]
        built = mutation.recalled(self.memory, self.repo, left)
        if built is None or self.builder.cached(built.commit) is None:
            built = mutation.build_schema(
                self.builder, self.repo, self.tip, files=self.files, mutants=left, note=self.note
            )
            mutation.remember(self.memory, built, left)
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
        self.campaign.facts["one kernel"] = f"holds {len(built.kept)} mutants, one of them active in each boot"
        self.campaign.save()
        return attempt.kernel.image

    def one(self, number: int, image: Path, right: kills.Expected) -> None:
        """Try one mutant of the kernel that holds them."""
        self.note(f"mutant {number} ({len(self.campaign.waiting())} left): {self.mutants[number].title}")
        if number not in self.hits:
            self.campaign.settle(number, fate=Fate.SURVIVED, reached=False, reason="no test comes to this place")
        else:
            self.judge(number, image, number, right)

    def built_alone(self, number: int, right: kills.Expected) -> None:
        """Try one mutant that needs a kernel of its own."""
        mutant = self.mutants[number]
        self.note(f"mutant {number} ({len(self.campaign.waiting())} left), a build of its own: {mutant.title}")
        commit = mutation.commit_alone(self.repo, self.tip, self.files, mutant)
        attempt = self.builder.build(commit)
        if attempt.problem:
            raise InfraError(attempt.problem)
        if attempt.kernel is None:
            first = next((d.text for d in attempt.diagnostics if d.kind == "error"), "make failed")
            self.campaign.settle(number, fate=Fate.INVALID, reason=f"does not compile: {first}")
            return
        self.judge(number, attempt.kernel.image, None, right)
        shutil.rmtree(attempt.kernel.image.parent)

    def judge(self, number: int, image: Path, active: int | None, right: kills.Expected) -> None:
        """Boot a mutant, again when something differs, and settle it."""
        first = self.bench.boot(
            image,
            f"mutant-{number}-1",
            number=active,
            names=self.order(number),
            enough=lambda run, program: bool(kills.differences(right, run, [program])),
        )
        evidence = _evidence(right, first)
        boots, again = 1, tuple[str, ...]()
        if evidence:
            names = kills.programs_of(evidence, first.programs)
            alone = kills.without(right, self.control(names, right))
            second = self.bench.boot(
                image,
                f"mutant-{number}-2",
                number=active,
                names=names,
                enough=lambda run, program: bool(kills.differences(alone, run, [program])),
            )
            boots, again = 2, _evidence(alone, second)
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

    def order(self, number: int) -> tuple[str, ...]:
        """Return the programs in the order in which they should run on a mutant."""
        with self.campaign.lock:
            caught = [r for r in self.campaign.results.values() if r.fate is Fate.KILLED]
        catches = [(r.function, [kills.case_of(text).split("/")[0] for text in r.evidence]) for r in caught]
        return ranked(self.bench.names, self.bench.took_s, catches, self.mutants[number].function)

    def control(self, names: tuple[str, ...], right: kills.Expected) -> tuple[str, ...]:
        """Return the cases that differ on the right kernel when only these programs run on it."""
        with self.control_lock:
            if names not in self.controls and len(names) < len(self.bench.names) and self.image is not None:
                label = f"control-{len(self.controls) + 1}"
                seen = self.bench.boot(self.image, label, number=0, names=names)
                self.controls[names] = tuple(map(kills.case_of, kills.differences(right, seen.run, names)))
            return self.controls.get(names, ())

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


def _evidence(right: kills.Expected, seen: Seen) -> tuple[str, ...]:
    down: tuple[str, ...] = ()
    if seen.ending not in (None, Ending.FINISHED):
        down = (f"the kernel went down: {seen.ending} {seen.detail}".strip(),)
    return (*down, *kills.complaints(right, seen.console), *kills.differences(right, seen.run, seen.programs))
