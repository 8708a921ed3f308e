"""junit.xml: a Report for a CI system that reads JUnit.

Out: one suite a stage, with the stage itself, its failing findings and its cases as test cases, and a suite
``verdict``, whose one case is a failure for FAIL and an error for INCONCLUSIVE: such a system must not show green
what was not tested. What does not count against the series (pre-existing, flaky, of a prerequisite) is skipped, and
says why. Characters that XML 1.0 cannot hold are written out.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from reviewbot.model import Status, VerdictKind
from reviewbot.report import view
from reviewbot.report.answer import headline
from reviewbot.report.clean import capped_lines, one_line, visible, written_out

if TYPE_CHECKING:
    from junitparser.junitparser import FinalResult

    from reviewbot.model import Case, Report, StageResult

_NOT_XML = re.compile("[\ufffe\uffff]")


def render_junit(report: Report) -> str:
    """Return the text of junit.xml."""
    xml = JUnitXml(name="reviewbot")
    verdict = TestSuite("verdict")
    verdict.add_testcase(_test("verdict", "reviewbot", 0.0, _verdict_result(report)))
    xml.add_testsuite(verdict)
    for stage in report.stages:
        xml.add_testsuite(_suite(stage))
    xml.update_statistics()
    return bytes(xml.tostring()).decode("utf-8")


def _suite(stage: StageResult) -> TestSuite:
    suite = TestSuite(_line(stage.stage))
    suite.add_testcase(_test(stage.stage, "stage", stage.duration_s, _stage_result(stage)))
    for finding in stage.findings:
        # The cases of a finding stand for themselves below.
        if finding.counts and finding.severity is Status.FAIL and not finding.cases:
            name = ": ".join(word for word in (view.place(finding), finding.title) if word)
            suite.add_testcase(_test(name, f"{stage.stage}.finding", 0.0, _failure(finding.title, finding.excerpt)))
    for case in stage.cases:
        suite.add_testcase(_test(case.name, stage.stage, 0.0, _case_result(case)))
    return suite


def _test(name: str, classname: str, time_s: float, result: FinalResult | None) -> TestCase:
    test = TestCase(_line(name), _line(classname), time_s)
    if result is not None:
        test.result = [result]
    return test


def _verdict_result(report: Report) -> FinalResult | None:
    text = "\n".join(report.reasons)
    if report.verdict is VerdictKind.FAIL:
        return _failure(headline(report), text)
    if report.verdict is VerdictKind.INCONCLUSIVE:
        return _error(headline(report), text)
    return None


def _stage_result(stage: StageResult) -> FinalResult | None:
    if stage.status is Status.FAIL:
        told = any(finding.excerpt == stage.excerpt for finding in stage.findings)
        return _failure(stage.summary, "" if told else stage.excerpt)
    if stage.status is Status.ERROR:
        return _error(stage.summary, stage.excerpt)
    return Skipped(_line(stage.summary)) if stage.status is Status.SKIP else None


def _case_result(case: Case) -> FinalResult | None:
    if case.counts:
        return _failure(case.reason, case.excerpt)
    if case.patched is Status.ERROR:
        return _error(case.reason, case.excerpt)
    if case.patched is Status.PASS:
        return None
    words = [view.attribution(case), view.repeats(case), case.reason]
    return Skipped(_line(", ".join(word for word in words if word) or case.patched.value))


def _failure(message: str, text: str) -> FinalResult:
    result = Failure(_line(message))
    result.text = _xml(visible(capped_lines(text)))
    return result


def _error(message: str, text: str) -> FinalResult:
    result = Error(_line(message))
    result.text = _xml(visible(capped_lines(text)))
    return result


def _line(text: str) -> str:
    return _xml(one_line(text))


def _xml(text: str) -> str:
    return _NOT_XML.sub(lambda match: written_out(match[0]), text)
