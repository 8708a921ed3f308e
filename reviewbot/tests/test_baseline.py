"""The measure of the right kernel: kept and read again; the order of the programs; threads."""

import threading
from pathlib import Path

import pytest

from reviewbot.findings.compare import Observed
from reviewbot.model import Status
from reviewbot.mutate import kills
from reviewbot.mutate.baseline import NAME, Baseline, load, save
from reviewbot.mutate.ranking import ranked
from reviewbot.threads import together

RUN = {"abi/a": Observed(status=Status.PASS), "abi/b": Observed(status=Status.FAIL)}


def test_a_baseline_is_read_again_for_the_same_key(tmp_path: Path) -> None:
    right = kills.expected([RUN, RUN | {"abi/a": Observed(status=Status.FAIL)}], ["console"])
    kept = Baseline(key="k", right=right, hits=frozenset({3}), took_s={"abi": 0.5}, boot_s=30.0, boots=4)
    save(tmp_path, kept)
    assert load(tmp_path, "k") == kept
    assert load(tmp_path, "other") is None


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"key": "k"}'])
def test_a_broken_baseline_is_measured_again(tmp_path: Path, text: str) -> None:
    assert load(tmp_path, "k") is None
    (tmp_path / NAME).write_text(text)
    assert load(tmp_path, "k") is None


def test_quick_programs_and_those_that_caught_come_first() -> None:
    names, took = ("slow", "quick", "other"), {"slow": 7.0, "quick": 0.1, "other": 1.0}
    assert ranked(names, took, [], "f") == ("quick", "other", "slow")
    elsewhere = [("g", ["other"])] * 3
    assert ranked(names, took, elsewhere, "f") == ("other", "quick", "slow")
    assert ranked(names, took, [*elsewhere, *[("f", ["slow", "gone"])] * 9], "f")[0] == "slow"
    assert ranked(names, {}, [], "f") == names


@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_work_is_shared_and_its_error_raised(jobs: int) -> None:
    lock, left, done = threading.Lock(), list(range(50)), list[int]()

    def work() -> None:
        while True:
            with lock:
                if not left:
                    return
                done.append(left.pop())

    together(jobs, work)
    assert sorted(done) == list(range(50))
    ran: list[int] = []

    def broken() -> None:
        ran.append(1)
        raise ValueError

    with pytest.raises(ValueError, match=r"^$"):
        together(jobs, broken)
    assert len(ran) == jobs
