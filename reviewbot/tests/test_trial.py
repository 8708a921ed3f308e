"""What becomes of a mutant after its boots; the boots are scripted, the rest is real."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from reviewbot.findings.compare import Observed, Run
from reviewbot.generate.mutants import find_mutants
from reviewbot.model import Status
from reviewbot.mutate import kills
from reviewbot.mutate.campaign import Options, open_campaign
from reviewbot.mutate.trial import Trial
from reviewbot.report.mutants import Fate, MutationReport
from reviewbot.threads import together
from reviewbot.tools.cache import Cache
from reviewbot.tools.programs import Bench, Seen
from reviewbot.tools.vng import Ending, Machine

FILES = {"k/a.c": b"int f(int n)\n{\n\tg(n, 1);\n\treturn n;\n}\n"}
MUTANTS = find_mutants(FILES, {"k/a.c": range(1, 6)}).mutants
PASS, FAIL = (Observed(status=s) for s in (Status.PASS, Status.FAIL))
GOOD: Run = {"abi/a": PASS, "raw/b": PASS, "raw/c": PASS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scripted(Bench):
    """Boots that report what the script says: by label, or by number for the unmutated kernel (0)."""

    script: dict[str, Run]
    boots: list[tuple[str, tuple[str, ...]]]

    def boot(
        self,
        image: Path,
        label: str,
        *,
        names: Sequence[str] = (),
        number: int | None = None,
        enough: Callable[[Run, str], bool] | None = None,
    ) -> Seen:
        assert number is not None
        chosen, ran, run = tuple(names) or self.names, list[str](), Run()
        self.boots.append((label, chosen))
        for name in chosen:
            cases = {k: v for k, v in (GOOD | self.script.get(label, {})).items() if k.startswith(name)}
            run |= cases
            ran.append(name)
            if enough and enough(cases, name):
                return Seen(run=run, programs=tuple(ran), ending=None, detail="", console="", duration_s=1)
        return Seen(run=run, programs=chosen, ending=Ending.FINISHED, detail="", console="", duration_s=1)


def _trial(tmp_path: Path, script: dict[str, Run], *, jobs: int = 1) -> Trial:
    report = MutationReport(series="s", tree="t", key="k", seed=1, sample=0, results=())
    bench = Scripted(
        machine=Machine(cache=Cache(tmp_path), root=tmp_path),
        names=("abi", "raw"),
        directory=tmp_path,
        role="patched",
        job=tmp_path,
        logs=tmp_path,
        script=script,
        boots=[],
    )
    return Trial(
        campaign=open_campaign(tmp_path, report, Options(seed=1, jobs=jobs), MUTANTS),
        bench=bench,
        builder=cast("object", None),  # type: ignore[arg-type]
        repo=tmp_path,
        tip="",
        files=FILES,
        mutants={m.number: m for m in MUTANTS},
        memory=tmp_path / "memory.json",
        note=lambda _: None,
        hits=frozenset(range(1, len(MUTANTS) + 1)),
        image=tmp_path / "bzImage",
    )


def _boots(trial: Trial) -> list[tuple[str, tuple[str, ...]]]:
    assert isinstance(trial.bench, Scripted)
    return trial.bench.boots


RIGHT = kills.expected([GOOD, GOOD], [])


def test_a_difference_in_two_boots_kills(tmp_path: Path) -> None:
    trial = _trial(tmp_path, {"mutant-1-1": {"raw/b": FAIL}, "mutant-1-2": {"raw/b": FAIL}})
    trial.one(1, tmp_path, RIGHT)
    result = trial.campaign.results[1]
    assert (result.fate, result.evidence, result.boots) == (Fate.KILLED, ("raw/b (fail)",), 2)
    assert _boots(trial) == [("mutant-1-1", ("abi", "raw")), ("control-1", ("raw",)), ("mutant-1-2", ("raw",))]
    trial.one(2, tmp_path, RIGHT)
    assert trial.campaign.results[2].fate is Fate.SURVIVED
    assert _boots(trial)[-1] == ("mutant-2-1", ("raw", "abi")), "what caught one in this function runs first"


def test_a_difference_in_one_boot_does_not_kill(tmp_path: Path) -> None:
    trial = _trial(tmp_path, {"mutant-1-1": {"abi/a": FAIL}})
    trial.one(1, tmp_path, RIGHT)
    assert trial.campaign.results[1].fate is Fate.SURVIVED
    assert "one boot of two" in trial.campaign.results[1].reason


def test_what_the_right_kernel_does_too_when_alone_does_not_kill(tmp_path: Path) -> None:
    fails: Run = {"raw/b": FAIL}
    trial = _trial(tmp_path, {"mutant-1-1": fails, "control-1": fails, "mutant-1-2": fails, "mutant-2-1": fails})
    trial.one(1, tmp_path, RIGHT)
    assert trial.campaign.results[1].fate is Fate.SURVIVED
    trial.one(2, tmp_path, RIGHT)
    labels = [label for label, _ in _boots(trial)]
    assert labels.count("control-1") == 1, "the right kernel is asked once for the same programs"


def test_where_no_test_comes_nothing_is_booted(tmp_path: Path) -> None:
    trial = _trial(tmp_path, {})
    trial.hits = frozenset()
    trial.one(1, tmp_path, RIGHT)
    assert (trial.campaign.results[1].fate, trial.campaign.results[1].reached) == (Fate.SURVIVED, False)
    assert not _boots(trial)


@pytest.mark.parametrize("jobs", [1, 3])
def test_each_mutant_is_tried_once_by_any_number_of_guests(tmp_path: Path, jobs: int) -> None:
    trial = _trial(tmp_path, {}, jobs=jobs)
    trial.campaign.settle(MUTANTS[0].number, own_build=True)

    def work() -> None:
        trial.work(tmp_path, RIGHT)

    together(jobs, work)
    assert sorted(label for label, _ in _boots(trial)) == sorted(f"mutant-{m.number}-1" for m in MUTANTS[1:])
    assert trial.campaign.waiting() == [MUTANTS[0].number]
