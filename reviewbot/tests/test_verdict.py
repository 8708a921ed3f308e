"""The rules of verdict.judge, each with a run that fires it and one that does not, and what must hold for any run."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reviewbot.model import (
    ApplyResult,
    ApplyState,
    Blame,
    Case,
    Finding,
    Origin,
    StageResult,
    Status,
    VerdictKind,
)
from reviewbot.tests import samples
from reviewbot.verdict import EXIT_STATUS, REQUIRED, judge

_RANK = {VerdictKind.PASS: 0, VerdictKind.WARN: 1, VerdictKind.INCONCLUSIVE: 2, VerdictKind.FAIL: 3}
_UNAPPLIED = [s for s in ApplyState if s not in (ApplyState.APPLIED, ApplyState.APPLIED_WITH_FUZZ)]


def stage(name: str = "build", status: Status = Status.PASS, *, required: bool = True, **more: object) -> StageResult:
    made = StageResult(stage=name, status=status, summary=f"{name} says {status}", required=required)
    return replace(made, **more)  # type: ignore[arg-type]


def finding(origin: Origin = Origin.INTRODUCED, blame: Blame = Blame.SERIES, severity: Status = Status.FAIL) -> Finding:
    return Finding(title="bad thing", severity=severity, origin=origin, blame=blame, file="a.c", line=7)


def case(base: Status, patched: Status, origin: Origin | None = None, blame: Blame = Blame.SERIES) -> Case:
    return Case(name="group.case", base=base, patched=patched, reason="why", origin=origin, blame=blame)


def whole(*extra: StageResult, without: str = "") -> list[StageResult]:
    return [*(stage(name) for name in REQUIRED if name != without), *extra]


def kind(stages: list[StageResult], apply: ApplyResult | None = None, **more: object) -> VerdictKind:
    return judge(stages, apply or samples.applied(), **more).kind  # type: ignore[arg-type]


def test_a_whole_run_passes() -> None:
    verdict = judge(whole(), samples.applied())
    assert verdict.kind is VerdictKind.PASS
    assert verdict.reasons[0] == "build: build says pass"


@pytest.mark.parametrize("name", REQUIRED)
def test_a_required_stage_that_is_absent_is_inconclusive(name: str) -> None:
    verdict = judge(whole(without=name), samples.applied())
    assert verdict.kind is VerdictKind.INCONCLUSIVE
    assert name in verdict.reasons[0]


@pytest.mark.parametrize("status", [Status.SKIP, Status.ERROR])
def test_a_required_stage_that_did_not_run_is_inconclusive(status: Status) -> None:
    verdict = judge(whole(stage("boot", status), without="boot"), samples.applied())
    assert verdict.kind is VerdictKind.INCONCLUSIVE
    assert verdict.reasons[0].startswith("boot ")


def test_what_did_not_finish_comes_before_what_was_skipped_because_of_it() -> None:
    boot, selftest = (replace(stage(name, Status.SKIP), summary="no kernel") for name in ("boot", "selftest"))
    verdict = judge([stage("apply"), boot, selftest, stage("build", Status.ERROR)], samples.applied())
    assert verdict.reasons[:2] == ("build did not finish: build says error", "boot, selftest did not run: no kernel")


def test_an_optional_stage_may_be_skipped_and_is_mentioned() -> None:
    verdict = judge(whole(stage("coverage", Status.SKIP, required=False)), samples.applied())
    assert verdict.kind is VerdictKind.PASS
    assert "coverage did not run: coverage says skip" in verdict.reasons


def test_an_optional_stage_that_did_not_finish_is_a_warning() -> None:
    assert kind(whole(stage("coverage", Status.ERROR, required=False))) is VerdictKind.WARN


@pytest.mark.parametrize("status", [Status.SKIP, Status.ERROR])
def test_failure_outranks_what_did_not_run(status: Status) -> None:
    stages = [stage("apply"), stage("build", Status.FAIL), stage("boot", status), stage("selftest", Status.SKIP)]
    verdict = judge(stages, samples.applied())
    assert verdict.kind is VerdictKind.FAIL
    assert verdict.reasons[0] == "build: build says fail"


@pytest.mark.parametrize("state", _UNAPPLIED)
def test_a_series_that_was_not_applied_is_inconclusive_and_says_so_first(state: ApplyState) -> None:
    apply = ApplyResult(state=state, summary="because")
    verdict = judge([stage("check", Status.FAIL), *whole()], apply)
    assert verdict.kind is VerdictKind.INCONCLUSIVE
    assert verdict.reasons[0].endswith(": because")
    assert verdict.reasons[0].startswith(("The series ", "The patch "))


def test_hunks_without_a_place_are_named() -> None:
    reasons = samples.does_not_apply().reasons
    assert reasons[1] == "kernel/events/core.c: hunk 4 at line 5341: 1 of 5 lines of context differs"


def test_a_summary_does_not_repeat_the_state() -> None:
    apply = ApplyResult(state=ApplyState.DOES_NOT_APPLY, summary="does not apply: 1 hunk")
    assert judge([], apply).reasons[0] == "The series does not apply: 1 hunk"


def test_before_apply_the_reason_is_the_stage_that_ended_the_run() -> None:
    verdict = judge([stage("intake", Status.ERROR)], None)
    assert verdict.kind is VerdictKind.INCONCLUSIVE
    assert verdict.reasons == (
        "The run ended before the series was applied",
        "intake did not finish: intake says error",
    )


def test_an_unfinished_run_is_inconclusive() -> None:
    verdict = judge(whole(), samples.applied(), finished=False, stopped_by="Ctrl-C")
    assert verdict.kind is VerdictKind.INCONCLUSIVE
    assert verdict.reasons[0] == "The run is unfinished: stopped by Ctrl-C"


def test_preparing_alone_tests_nothing() -> None:
    stages = [stage(name) for name in ("intake", "base", "apply", "configure")]
    assert kind(stages, required=()) is VerdictKind.INCONCLUSIVE
    assert kind([*stages, stage("check")], required=()) is VerdictKind.PASS


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (finding(), VerdictKind.FAIL),
        (finding(severity=Status.WARN), VerdictKind.WARN),
        (finding(severity=Status.PASS), VerdictKind.PASS),
        (finding(blame=Blame.UNKNOWN), VerdictKind.WARN),
        (finding(Origin.FLAKY), VerdictKind.WARN),
        (finding(Origin.PRE_EXISTING), VerdictKind.PASS),
        (finding(Origin.FIXED), VerdictKind.PASS),
        (finding(blame=Blame.PREREQUISITE), VerdictKind.PASS),
        (finding(blame=Blame.BASE), VerdictKind.PASS),
        (finding(Origin.FLAKY, Blame.PREREQUISITE), VerdictKind.PASS),
    ],
)
def test_findings_count_by_origin_and_blame(found: Finding, expected: VerdictKind) -> None:
    status = Status.WARN if found.counts and found.severity is Status.FAIL else Status.PASS
    assert kind(whole(stage("check", status, findings=(found,)))) is expected


@pytest.mark.parametrize(
    ("tested", "expected"),
    [
        (case(Status.PASS, Status.FAIL, Origin.INTRODUCED), VerdictKind.FAIL),
        (case(Status.SKIP, Status.FAIL, Origin.INTRODUCED), VerdictKind.FAIL),
        (case(Status.PASS, Status.FAIL, Origin.FLAKY), VerdictKind.WARN),
        (case(Status.PASS, Status.FAIL), VerdictKind.WARN),
        (case(Status.PASS, Status.FAIL, Origin.INTRODUCED, Blame.UNKNOWN), VerdictKind.WARN),
        (case(Status.FAIL, Status.FAIL, Origin.PRE_EXISTING), VerdictKind.PASS),
        (case(Status.FAIL, Status.PASS, Origin.FIXED), VerdictKind.PASS),
        (case(Status.PASS, Status.FAIL, Origin.INTRODUCED, Blame.PREREQUISITE), VerdictKind.PASS),
        (case(Status.PASS, Status.SKIP), VerdictKind.WARN),
        (case(Status.PASS, Status.SKIP, blame=Blame.BASE), VerdictKind.PASS),
        (case(Status.SKIP, Status.SKIP), VerdictKind.PASS),
        (case(Status.PASS, Status.ERROR), VerdictKind.INCONCLUSIVE),
        (case(Status.ERROR, Status.ERROR), VerdictKind.WARN),
        (case(Status.ERROR, Status.ERROR, Origin.PRE_EXISTING), VerdictKind.PASS),
        (case(Status.SKIP, Status.PASS), VerdictKind.PASS),
    ],
)
def test_cases_count_by_both_kernels(tested: Case, expected: VerdictKind) -> None:
    passed = case(Status.PASS, Status.PASS)
    assert kind(whole(stage("kunit", cases=(passed, tested)))) is expected


def test_cases_of_which_none_ran_are_no_pass() -> None:
    stages = whole(stage("selftest", cases=(case(Status.SKIP, Status.SKIP),)), without="selftest")
    verdict = judge(stages, samples.applied())
    assert verdict.kind is VerdictKind.INCONCLUSIVE
    assert verdict.reasons[0] == "selftest: none of its 1 cases ran on patched"


def test_a_failing_case_is_named_with_both_kernels() -> None:
    tested = case(Status.PASS, Status.FAIL, Origin.INTRODUCED)
    verdict = judge(whole(stage("kunit", Status.FAIL, cases=(tested,))), samples.applied())
    assert verdict.reasons == ("kunit: group.case fails on patched, passes on base: why",)


def test_fuzz_is_for_a_reader() -> None:
    assert kind(whole(), samples.applied(ApplyState.APPLIED_WITH_FUZZ)) is VerdictKind.WARN


def test_missing_patches_are_said_and_do_not_change_the_verdict() -> None:
    verdict = judge(whole(), samples.applied(), series=samples.series())
    assert verdict.kind is VerdictKind.PASS
    assert verdict.reasons[-1] == "The series is incomplete: 1 of 8 patches given; not seen: 1, 2, 4-8"


def test_reasons_are_capped_and_say_how_many_are_left() -> None:
    many = tuple(replace(case(Status.PASS, Status.FAIL, Origin.INTRODUCED), name=f"case_{n}") for n in range(1490))
    reasons = judge(whole(stage("kunit", Status.FAIL, cases=many)), samples.applied()).reasons
    assert len(reasons) == 12
    assert reasons[-1] == "… and 1,480 more cases"


def test_exit_status_of_every_kind() -> None:
    assert {kind: EXIT_STATUS[kind] for kind in VerdictKind} == {
        VerdictKind.PASS: 0,
        VerdictKind.WARN: 0,
        VerdictKind.FAIL: 1,
        VerdictKind.INCONCLUSIVE: 3,
    }


# What must hold for any run.

_texts = st.text(max_size=12)
_findings = st.builds(
    Finding,
    title=_texts,
    severity=st.sampled_from(Status),
    origin=st.sampled_from(Origin),
    blame=st.sampled_from(Blame),
    file=_texts,
)
_cases = st.builds(
    Case,
    name=_texts,
    base=st.sampled_from(Status),
    patched=st.sampled_from(Status),
    reason=_texts,
    origin=st.none() | st.sampled_from(Origin),
    blame=st.sampled_from(Blame),
)


@st.composite
def _stages(draw: st.DrawFn, statuses: tuple[Status, ...] = tuple(Status)) -> StageResult:
    findings = tuple(draw(st.lists(_findings, max_size=3)))
    chosen = draw(st.sampled_from(statuses))
    if chosen is Status.PASS and any(f.counts and f.severity is Status.FAIL for f in findings):
        findings = ()
    return StageResult(
        stage=draw(st.sampled_from([*REQUIRED, "intake", "check", "coverage"])),
        status=chosen,
        summary=draw(st.text(min_size=1, max_size=20)),
        findings=findings,
        cases=tuple(draw(st.lists(_cases, max_size=3))),
        required=draw(st.booleans()),
    )


_runs = st.lists(_stages(), max_size=8)
_applies = st.none() | st.sampled_from(
    [samples.applied(), samples.applied(ApplyState.APPLIED_WITH_FUZZ)]
    + [ApplyResult(state=state, summary="x") for state in _UNAPPLIED]
)


@settings(deadline=None)
@given(_runs, _applies, _stages((Status.SKIP, Status.ERROR)))
def test_more_that_did_not_run_never_makes_a_verdict_pass(
    stages: list[StageResult], apply: ApplyResult | None, extra: StageResult
) -> None:
    before = judge(stages, apply).kind
    after = judge([*stages, extra], apply).kind
    assert after is not VerdictKind.PASS or before is VerdictKind.PASS or not extra.required


@settings(deadline=None)
@given(_runs, _stages((Status.SKIP, Status.ERROR)), st.integers(0, 8))
def test_a_stage_that_turns_into_skip_or_error_never_improves_a_verdict_that_nothing_fails(
    stages: list[StageResult], extra: StageResult, at: int
) -> None:
    before = judge(whole(*stages), samples.applied()).kind
    required = replace(extra, required=True)
    after = judge(whole(*stages, required), samples.applied()).kind
    assert _RANK[after] >= max(_RANK[before], _RANK[VerdictKind.INCONCLUSIVE])


@settings(deadline=None)
@given(_runs, _applies)
def test_pass_needs_every_required_stage_to_have_passed(stages: list[StageResult], apply: ApplyResult | None) -> None:
    if judge(stages, apply).kind is not VerdictKind.PASS:
        return
    assert apply is not None
    assert apply.state is ApplyState.APPLIED
    assert set(REQUIRED) <= {s.stage for s in stages}
    assert all(s.status is Status.PASS or (s.status is Status.SKIP and not s.required) for s in stages)
    assert not any(f.counts and f.severity in (Status.FAIL, Status.WARN) for s in stages for f in s.findings)
    assert not any(c.counts for s in stages for c in s.cases)


@settings(deadline=None)
@given(_runs, st.sampled_from(_UNAPPLIED))
def test_without_a_patched_tree_nothing_fails_and_nothing_passes(stages: list[StageResult], state: ApplyState) -> None:
    assert judge(stages, ApplyResult(state=state, summary="x")).kind is VerdictKind.INCONCLUSIVE


@settings(deadline=None)
@given(_runs)
def test_a_failing_stage_always_fails_an_applied_run(stages: list[StageResult]) -> None:
    assert kind([*stages, stage("boot", Status.FAIL)]) is VerdictKind.FAIL


@settings(deadline=None)
@given(_runs, st.sampled_from([Blame.PREREQUISITE, Blame.BASE]))
def test_what_others_did_never_counts(stages: list[StageResult], blame: Blame) -> None:
    calm = [
        replace(
            s,
            status=Status.PASS,
            findings=tuple(replace(f, blame=blame) for f in s.findings),
            cases=tuple(replace(c, blame=blame) for c in s.cases if c.patched not in (Status.ERROR, Status.SKIP)),
        )
        for s in stages
    ]
    assert kind(whole(*calm)) is VerdictKind.PASS


@settings(deadline=None)
@given(_runs, _applies, st.booleans(), st.text(max_size=8))
def test_reasons_are_single_lines(
    stages: list[StageResult], apply: ApplyResult | None, finished: bool, stopped_by: str
) -> None:
    verdict = judge(stages, apply, finished=finished, stopped_by=stopped_by, series=samples.series())
    assert verdict.reasons
    assert all(len(line.splitlines()) == 1 and line.strip() for line in verdict.reasons)
    assert len(set(verdict.reasons)) == len(verdict.reasons)
    assert finished or verdict.kind in (VerdictKind.FAIL, VerdictKind.INCONCLUSIVE)
