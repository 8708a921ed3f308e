"""What the renderers share: the answer, the groups of cases, the words for revisions and origins."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reviewbot.model import BETTER_BASE, Blame, Case, Finding, Origin, Report, Status
from reviewbot.report import view
from reviewbot.report.answer import Item, answer, headline
from reviewbot.tests import samples


def case(name: str, patched: Status = Status.PASS, origin: Origin | None = None) -> Case:
    return Case(name=name, base=Status.PASS, patched=patched, reason="why", origin=origin)


def texts(items: tuple[Item, ...]) -> list[str]:
    return [item.text for item in items]


def test_groups_put_what_fails_first_and_keep_every_case() -> None:
    cases = (
        case("a.one"),
        case("b.one", Status.FAIL, Origin.PRE_EXISTING),
        case("c.one", Status.FAIL, Origin.INTRODUCED),
        replace(case("c.two", Status.SKIP), base=Status.SKIP),
        case("c/three"),
        case("alone"),
        case("c:four", Status.ERROR),
    )
    groups = view.groups(cases)
    assert [g.name for g in groups] == ["c", "b", "a", ""]
    assert [c.name for c in groups[0].look] == ["c.one", "c:four"]
    assert [c.name for c in groups[0].rest] == ["c.two", "c/three"]
    assert groups[0].tally == ((Status.FAIL, 1), (Status.ERROR, 1), (Status.SKIP, 1), (Status.PASS, 1))
    assert groups[0].rest_tally == ((Status.SKIP, 1), (Status.PASS, 1))


@settings(deadline=None)
@given(st.lists(st.tuples(st.text(max_size=6), st.sampled_from(Status)), max_size=20))
def test_no_case_gets_lost_in_groups(pairs: list[tuple[str, Status]]) -> None:
    cases = [case(name, status) for name, status in pairs]
    shown = [c for group in view.groups(cases) for c in (*group.look, *group.rest)]
    assert sorted(map(id, shown)) == sorted(map(id, cases))


def test_a_large_group_is_divided_by_the_second_part() -> None:
    cases = [case(f"layout/{kind}.{n}") for kind in ("page_faults", "sys_enter") for n in range(40)]
    assert [g.name for g in view.groups([*cases, case("abi/accepted.IP")])] == [
        "layout/page_faults",
        "layout/sys_enter",
        "abi",
    ]


def test_a_case_that_only_base_runs_is_for_a_reader_unless_it_is_about_base() -> None:
    lost = replace(case("x.y", Status.SKIP), reason="not supported")
    stage = replace(samples.selftest(), cases=(lost,))
    found = answer(replace(samples.passing(), stages=(stage,)))
    assert texts(found.doubts) == ["x.y: passes on base, is skipped on patched, not supported"]
    assert "not supported" not in " ".join(texts(found.untold))
    stage = replace(stage, cases=(replace(lost, blame=Blame.BASE),))
    assert answer(replace(samples.passing(), stages=(stage,))).doubts == ()


def broken(*stages: str) -> Report:
    made = [replace(samples.build(), stage=name, status=Status.FAIL) for name in stages]
    return replace(samples.build_error(), stages=tuple(made))


@pytest.mark.parametrize(
    ("stages", "words"),
    [
        (("build",), "the build"),
        (("build", "boot"), "the build and the boot"),
        (("check", "build", "boot"), "the check, the build and the boot"),
    ],
)
def test_the_headline_names_what_breaks(stages: tuple[str, ...], words: str) -> None:
    assert headline(broken(*stages)) == f"This series breaks {words}."


def test_revision_and_part() -> None:
    report = samples.passing()
    assert report.series is not None
    assert view.series_name(report) == "v2, 1 patch"
    assert view.series_name(samples.failing_cases()) == "v2, patch 3 of 8"
    two = replace(report.series, patches=report.series.patches * 2, total=3, missing=(2,), revision=1)
    assert view.series_name(replace(report, series=two)) == "v1, 2 of 3 patches"
    assert view.series_name(replace(report, series=None)) == ""


@pytest.mark.parametrize(
    ("origin", "blame", "words"),
    [
        (Origin.INTRODUCED, Blame.SERIES, "introduced"),
        (Origin.INTRODUCED, Blame.PREREQUISITE, "from a prerequisite"),
        (Origin.INTRODUCED, Blame.BASE, "from base"),
        (Origin.INTRODUCED, Blame.UNKNOWN, "origin unknown"),
        (Origin.PRE_EXISTING, Blame.BASE, "pre-existing"),
        (Origin.FLAKY, Blame.SERIES, "flaky"),
    ],
)
def test_whose_a_finding_is(origin: Origin, blame: Blame, words: str) -> None:
    finding = Finding(title="x", severity=Status.WARN, origin=origin, blame=blame)
    assert view.attribution(finding) == words
    stage = replace(samples.build(), status=Status.WARN, findings=(finding,))
    ours = origin in (Origin.INTRODUCED, Origin.FLAKY) and blame in (Blame.SERIES, Blame.UNKNOWN)
    assert view.counted(stage) == ((finding,) if ours else ())
    assert view.uncounted(stage) == (() if ours else (finding,))


def test_a_flaky_case_is_for_a_reader_with_its_rate() -> None:
    flaky = replace(case("x.y", Status.FAIL, Origin.FLAKY), runs=5, failures=2)
    report = samples.report(
        (samples.build(), samples.boot(), replace(samples.selftest(), cases=(flaky,))), samples.applied()
    )
    found = answer(report)
    assert texts(found.doubts) == ["x.y: flaky, 2 of 5 runs, why"]
    assert found.breaks == ()
    assert found.elsewhere == ()


def test_stages_that_did_not_run_for_one_reason_make_one_line() -> None:
    found = answer(samples.build_error())
    assert found.untold[0].text == "boot, selftest did not run: there is no patched kernel"
    assert found.untold[0].anchor == "stage-5"


def test_every_anchor_of_an_answer_is_on_the_page() -> None:
    from reviewbot.report.html import render_html

    for report in [*samples.every().values(), samples.huge()]:
        page = render_html(report)
        found = answer(report)
        for item in (*found.breaks, *found.doubts, *found.holds, *found.untold):
            assert not item.anchor or f'id="{item.anchor}"' in page


def test_a_better_base_in_another_tree_is_said_where_it_cannot_be_missed() -> None:
    report = samples.does_not_apply()
    assert report.base is not None
    line = f"{BETTER_BASE}mainline: it has the base-commit; use --tree mainline"
    told = replace(report, base=replace(report.base, candidates=(line, "HEAD: 0 of 2 pre-image blobs")))
    assert texts(answer(told).untold) == [*texts(answer(report).untold), f"A{line[1:]}"]
