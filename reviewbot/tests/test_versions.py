"""Two revisions compared, and the JSON that intake prints."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from reviewbot.model import BaseInfo, Finding, Origin, Patch, Series, Status, VerdictKind
from reviewbot.parse.versions import addressed, compare_versions, troubles
from reviewbot.report.intake import render_intake
from reviewbot.stages.intake import intake
from reviewbot.stages.versions import diff_versions
from reviewbot.tests import samples
from reviewbot.tests.mailtree import make_repo

DATA = Path(__file__).parent / "data" / "mail"
FILE = "lib/a.c"


def patch(subject: str, line: int, new: str, *, context: str = "", message: str = "") -> Patch:
    diff = (
        f"diff --git a/{FILE} b/{FILE}\n--- a/{FILE}\n+++ b/{FILE}\n@@ -{line - 1},3 +{line - 1},3 @@ {context}\n"
        f" line {line - 1}{context}\n-line {line}\n+{new}\n line {line + 1}\n"
    )
    return Patch(subject=subject, message=message, diff=diff, files=(FILE,))


ONE, TWO, THREE = patch("one", 5, "one"), patch("two", 15, "two"), patch("three", 25, "three, and something else")


def series(*patches: Patch, revision: int = 1) -> Series:
    return Series(title="t", patches=patches, total=len(patches), revision=revision)


def kinds(*new: Patch) -> list[tuple[str, int, int]]:
    return [(c.kind, c.old, c.new) for c in compare_versions(series(ONE, TWO, THREE), series(*new))]


def test_patches_are_followed_through_reordering_and_rewording() -> None:
    assert kinds(THREE, ONE, TWO) == [("same", 3, 1), ("same", 1, 2), ("same", 2, 3)]
    assert kinds(replace(ONE, subject="uno"), TWO, THREE)[0] == ("reworded", 1, 1)
    assert kinds(patch("one", 5, "one again"), TWO, THREE)[0] == ("changed", 1, 1)
    assert kinds(patch("one", 5, "one", context=" moved"), TWO, THREE)[0] == ("rebased", 1, 1)


def test_new_dropped_and_renamed_patches() -> None:
    fresh = patch("four", 35, "four")
    assert kinds(ONE, fresh, THREE) == [("same", 1, 1), ("new", 0, 2), ("same", 3, 3), ("dropped", 2, 0)]
    renamed = replace(THREE, subject="drei", diff=THREE.diff.replace("line 24", "line 24 new"))
    assert kinds(ONE, TWO, renamed)[2] == ("rebased", 3, 3)


def test_the_difference_is_shown_without_line_numbers() -> None:
    (change,) = compare_versions(series(ONE), series(patch("one", 5, "one again"), revision=2))
    assert "-+one\n++one again" in change.difference
    assert "@@ -4,3" not in change.difference


def test_range_diff_where_both_apply(tmp_path: Path) -> None:
    repo = tmp_path / "r.git"
    head = make_repo(repo, {FILE: "".join(f"line {n}\n" for n in range(1, 41)).encode()})
    base = BaseInfo(tree="small", commit=head, describe="1", chosen_by="test")
    old, new = series(ONE, TWO), series(ONE, patch("two", 15, "two again"), revision=2)
    got = diff_versions(old, new, repo=repo, bases=(base, base), scratch=tmp_path / "s")
    assert got.value is not None
    assert got.result.summary == "v1 to v2: 1 changed, 1 same"
    assert "++two again" in got.value.range_diff
    broken = series(replace(ONE, diff=ONE.diff.replace("line 4", "nowhere")), revision=2)
    got = diff_versions(old, broken, repo=repo, bases=(base, base), scratch=tmp_path / "s")
    assert ("range-diff", "left out: v2 does not apply to 1") in got.result.facts


def finding(title: str, line: int = 1) -> Finding:
    return Finding(title=title, severity=Status.WARN, origin=Origin.INTRODUCED, file=FILE, line=line)


def test_addressed_findings_are_counted_as_a_multiset() -> None:
    got = addressed([finding("a"), finding("a", 2), finding("b")], [finding("a", 9), finding("c")])
    assert [f.title for f in got.gone] == ["a", "b"]
    assert [f.title for f in got.still] == ["a"]
    assert [f.title for f in got.fresh] == ["c"]


def test_the_comparison_says_which_findings_are_addressed() -> None:
    one, two = finding("a leak"), finding("b leak")
    checks = [replace(samples.build(), findings=found) for found in ((one, two), (two,))]
    old, new = (replace(samples.failing_cases(), stages=(c, samples.selftest())) for c in checks)
    facts = diff_versions(series(ONE), series(TWO), reports=(old, new)).result.facts
    assert ("addressed", f"a leak ({FILE})") in facts
    assert ("still there", f"b leak ({FILE})") in facts
    facts = diff_versions(series(TWO), series(ONE), reports=(new, old)).result.facts
    assert ("new finding", f"a leak ({FILE})") in facts
    silent = replace(new, verdict=VerdictKind.INCONCLUSIVE)
    facts = diff_versions(series(ONE), series(TWO), reports=(old, silent)).result.facts
    assert ("not seen again, in a run without an answer (inconclusive)", f"a leak ({FILE})") in facts


def test_a_failing_case_is_held_against_the_series_by_its_name() -> None:
    report = samples.failing_cases()
    wanted = [f"{c.name} fails" for stage in report.stages for c in stage.cases if c.counts]
    assert wanted
    assert [f.title for f in troubles(report)][-len(wanted) :] == wanted


def test_intake_as_json() -> None:
    outcome = intake(str(DATA / "b01-thread-v1-v2-partial-v3.mbox"))
    got = json.loads(render_intake(outcome))
    assert got["schema"] == "reviewbot-intake-1"
    assert (got["series"]["revision"], len(got["series"]["patches"])) == (3, 2)
    assert "diff" not in got["series"]["patches"][0]
    assert {"reason": "reply with a diff of its own", "mail": "math: lcm: it is called least common multiple"} in got[
        "left_out"
    ]
    assert "diff" in json.loads(render_intake(outcome, diffs=True))["series"]["patches"][0]


def test_no_control_character_reaches_the_terminal() -> None:
    text = render_intake(intake(str(DATA / "e08-ansi-html-bidi.mbox")), diffs=True)
    assert text.isascii()
    assert all(c.isprintable() or c == "\n" for c in text)
    assert json.loads(text)["series"]["title"].startswith("\x1b[2J")


def test_what_is_no_series_is_null() -> None:
    mail = b"From: A <a@example.com>\nSubject: [GIT PULL] x for 7.3\nMessage-ID: <p@x>\n\nplease pull\n"
    got = json.loads(render_intake(intake("-", stdin=mail)))
    assert (got["series"], got["status"], got["left_out"][0]["reason"]) == (None, "skip", "pull request")
