"""The summary on the terminal."""

from __future__ import annotations

import pytest

from reviewbot.report.text import render_text
from reviewbot.tests import samples

SAMPLES = samples.every()


def test_the_summary_of_a_failing_run() -> None:
    lines = render_text(samples.failing_cases()).splitlines()
    assert lines[:3] == [
        "FAIL: This series breaks 3 test cases.",
        "perf/core: Implement BUILD_ID_OFFSET sample type (v2, patch 3 of 8)",
        "on linux-source-7.2 7.2.9-1~bpo13+1 (5d6f1f0c3a9b)",
    ]
    assert "  - build_id_offset.with_time.size: decoded length 72, header.size 64, in 512 of 512 records" in lines
    assert "  fail   selftest           31 s  3 of 86 cases fail on patched" in lines


@pytest.mark.parametrize("name", SAMPLES)
def test_nothing_in_it_acts_on_a_terminal(name: str) -> None:
    text = render_text(SAMPLES[name])
    assert text.endswith("\n")
    assert all(line.isprintable() and len(line) <= 110 for line in text.split("\n"))


def test_long_lists_are_cut() -> None:
    text = render_text(samples.huge())
    assert len(text.splitlines()) < 100
    assert "  - … and 2,658 more" in text
