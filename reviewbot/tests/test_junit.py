"""junit.xml: what counts is red, what does not is not, and any text is valid XML."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from junitparser import Error, Failure, JUnitXml, Skipped, TestCase

from reviewbot.model import Blame, Case, Origin, Status
from reviewbot.report.junit import render_junit
from reviewbot.tests import samples

SAMPLES = samples.every()


def cases_of(text: str) -> dict[str, dict[str, TestCase]]:
    return {suite.name: {case.name: case for case in suite} for suite in JUnitXml.fromstring(text.encode())}


@pytest.mark.parametrize(
    ("name", "result"),
    [
        ("passing", None),
        ("incomplete_warn", None),
        ("failing_cases", Failure),
        ("does_not_apply", Error),
        ("unfinished", Error),
        ("infra_error", Error),
    ],
)
def test_the_verdict_is_a_case_of_its_own(name: str, result: type | None) -> None:
    found = cases_of(render_junit(SAMPLES[name]))["verdict"]["verdict"].result
    assert [type(r) for r in found] == ([result] if result else [])


def test_failing_cases_are_failures_with_their_excerpt() -> None:
    xml = render_junit(samples.failing_cases())
    selftest = cases_of(xml)["selftest"]
    failed = {name for name, case in selftest.items() if any(isinstance(r, Failure) for r in case.result)}
    assert failed == {"selftest", *samples.FAILING}
    result = selftest["build_id_offset.with_time.size"].result[0]
    assert result.message == "decoded length 72, header.size 64, in 512 of 512 records"
    assert "# header.size 64, decoded 72" in result.text
    assert JUnitXml.fromstring(xml.encode()).failures == 5


@pytest.mark.parametrize(
    ("origin", "blame", "message"),
    [
        (Origin.PRE_EXISTING, Blame.SERIES, "pre-existing, why"),
        (Origin.FLAKY, Blame.SERIES, "flaky, 1 of 3 runs, why"),
        (Origin.INTRODUCED, Blame.PREREQUISITE, "from a prerequisite, why"),
    ],
)
def test_what_does_not_count_is_skipped_and_says_why(origin: Origin, blame: Blame, message: str) -> None:
    runs, failures = (3, 1) if origin is Origin.FLAKY else (1, 1)
    case = Case(
        name="x",
        base=Status.FAIL,
        patched=Status.FAIL,
        reason="why",
        origin=origin,
        blame=blame,
        runs=runs,
        failures=failures,
    )
    report = replace(samples.passing(), stages=(replace(samples.selftest(), cases=(case,)),))
    result = cases_of(render_junit(report))["selftest"]["x"].result[0]
    assert isinstance(result, Skipped)
    assert result.message == message


def test_an_error_finding_of_the_build_is_a_failure() -> None:
    build = cases_of(render_junit(samples.build_error()))["build"]
    name = "kernel/events/core.c:8341: implicit declaration of function 'stack_map_get_build_id_offset'"
    assert isinstance(build[name].result[0], Failure)
    assert "kernel/events/core.c:8330: unused variable 'mm'" not in build


@pytest.mark.parametrize("name", SAMPLES)
def test_every_sample_is_valid(name: str) -> None:
    assert cases_of(render_junit(SAMPLES[name]))


@settings(deadline=None)
@example("\ufffe\uffff\x00\ud800")
@given(st.text(st.characters(exclude_categories=()), min_size=1, max_size=30))
def test_any_text_is_valid_xml(text: str) -> None:
    stage = replace(
        samples.selftest(samples.FAILING), stage=f"x{text}", summary=f"x{text}", excerpt=text, cases=samples.cases()[:1]
    )
    case = replace(stage.cases[0], name=text, reason=text, excerpt=text, patched=Status.FAIL, origin=Origin.INTRODUCED)
    report = replace(samples.passing(), stages=(replace(stage, cases=(case,)),))
    xml = render_junit(report)
    xml.encode("utf-8")
    assert len(JUnitXml.fromstring(xml.encode())) == 2
