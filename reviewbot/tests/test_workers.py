"""Our own processes: answers in order, errors raised here, nothing left behind; and the shelf for texts."""

from __future__ import annotations

import multiprocessing
import os
import time
from typing import TYPE_CHECKING

import pytest

from reviewbot.errors import InfraError
from reviewbot.tools.shelf import Shelf
from reviewbot.workers import in_order

if TYPE_CHECKING:
    from collections.abc import Iterator


def uneven(number: int) -> tuple[int, str]:
    time.sleep(0.02 if number % 3 == 0 else 0)
    return number, "x" * 300_000


@pytest.mark.parametrize("processes", [0, 1, 2, 3])
def test_answers_come_in_the_order_of_the_jobs(processes: int) -> None:
    assert [number for number, _ in in_order(uneven, range(40), processes=processes)] == list(range(40))
    assert multiprocessing.active_children() == []


def test_the_work_is_done_in_other_processes() -> None:
    owners = set(in_order(lambda _: os.getpid(), range(6), processes=2))
    assert len(owners) == 2
    assert os.getpid() not in owners


def test_a_bounded_number_of_jobs_is_under_way() -> None:
    taken: list[int] = []

    def jobs() -> Iterator[int]:
        for number in range(100):
            taken.append(number)
            yield number

    answers = in_order(str, jobs(), processes=2)
    assert next(answers) == "0"
    assert len(taken) <= 6
    answers.close()  # type: ignore[attr-defined]
    assert multiprocessing.active_children() == []


def test_what_the_work_raises_is_raised_here() -> None:
    def work(number: int) -> int:
        if number == 3:
            msg = "the disk is full"
            raise InfraError(msg)
        return number

    seen: list[int] = []
    with pytest.raises(InfraError, match="the disk is full"):
        seen.extend(in_order(work, range(9), processes=2))
    assert multiprocessing.active_children() == []


def test_a_shelf_gives_back_what_was_put_away() -> None:
    with Shelf() as shelf:
        texts = ["", "one\n", "z\udcff\u2028", "one\n", "x" * 100_000]
        keys = [shelf.put(text) for text in texts]
        assert keys[0] == ""
        assert keys[1] == keys[3]
        assert [shelf.get(key) for key in keys] == texts
        assert shelf.size_bytes == sum(len(text.encode("utf-8", "surrogatepass")) for text in {*texts})
        shelf.keep(keys[1:3])
        assert [shelf.get(key) for key in keys[:4]] == texts[:4]
        assert shelf.size_bytes < 20
        with pytest.raises(KeyError):
            shelf.get(keys[4])
