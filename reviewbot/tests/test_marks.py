"""What a person marks as equivalent, and what becomes of the score by it."""

from pathlib import Path

import pytest

from reviewbot.errors import UsageError
from reviewbot.generate.marks import Mark, match_marks, parse_marks
from reviewbot.generate.mutants import find_mutants
from reviewbot.mutate.campaign import Campaign, Options, open_campaign, source_context
from reviewbot.report.mutants import Fate, MutationReport, around, parse_json, render_html, render_json, render_text

SOURCE = b"int f(int n)\n{\n\tg(n,\n\t  1);\n\th(n);\n\th(n);\n\treturn n;\n}\n"
FILES = {"k/a.c": SOURCE}
MUTANTS = find_mutants(FILES, {"k/a.c": range(1, 9)}).mutants
MARK = """
[[mutant]]
file = "k/a.c"
function = "f"
before = "g(n, 1);"
after = ""
kind = "equivalent"
reason = "g() does <nothing>."
"""


def _number(before: str) -> int:
    return next(m.number for m in MUTANTS if " ".join(m.before.split()) == before and not m.after)


def _campaign(out: Path, text: str, sample: int = 0) -> Campaign:
    report = MutationReport(
        series="s", tree="t", key="k", seed=1, sample=sample, results=(), context=source_context(FILES, MUTANTS)
    )
    return open_campaign(out, report, Options(seed=1, sample=sample), MUTANTS, parse_marks(text))


def test_a_mark_finds_its_mutant_by_text() -> None:
    marks = parse_marks(MARK + MARK.replace("g(n, 1);", "gone();"))
    found, stale = match_marks(marks, MUTANTS)
    assert found == {_number("g(n, 1);"): marks[0]}
    assert stale == (marks[1],)


def test_a_mark_of_several_mutants_says_which() -> None:
    twice = MARK.replace("g(n, 1);", "h(n);")
    with pytest.raises(ValueError, match="fits 2 mutants"):
        match_marks(parse_marks(twice), MUTANTS)
    second, _ = match_marks(parse_marks(twice + "nth = 2\n"), MUTANTS)
    assert [m.line for m in MUTANTS if m.number in second] == [6]
    assert match_marks(parse_marks(twice + "nth = 3\n"), MUTANTS)[1]
    with pytest.raises(UsageError, match=r"equivalent.toml: .*nth says which"):
        _campaign(Path(), twice)


@pytest.mark.parametrize(
    "text",
    [
        "[[mutant",
        "other = 1",
        "mutant = 3",
        "[[mutant]]\nfile = 'a'",
        MARK.replace('"equivalent"', '"lucky"'),
        MARK.replace('"g() does <nothing>."', '" "'),
        MARK.replace('"g() does <nothing>."', "3"),
        MARK + "nth = -1\n",
        MARK + "line = 3\n",
    ],
)
def test_what_is_no_mark_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        parse_marks(text)


def _run(out: Path, text: str, *, killed: bool) -> MutationReport:
    campaign = _campaign(out, text)
    for number in campaign.waiting():
        marked = number == _number("g(n, 1);")
        dead = killed if marked else number != _number("h(n);")
        campaign.settle(
            number, fate=Fate.KILLED if dead else Fate.SURVIVED, evidence=("abi/a (fail: x)",) if dead else ()
        )
    return campaign.save()


def test_a_marked_survivor_is_apart_and_both_scores_are_said(tmp_path: Path) -> None:
    report = _run(tmp_path, MARK, killed=False)
    all_of_them = len(MUTANTS)
    assert (report.tried, report.valid) == (all_of_them, all_of_them - 1)
    assert [r.line for r in report.marked] == [3]
    assert [r.line for r in report.survivors] == [5]
    text, page = render_text(report), render_html(report)
    assert f"caught {all_of_them - 2} of {all_of_them - 1} wrong" in text
    assert f"{all_of_them - 2} of {all_of_them} (" in text
    assert "g() does <nothing>." in text
    assert "g() does &lt;nothing&gt;." in page
    assert "Marks that are wrong" not in text + page
    assert parse_json(render_json(report)) == report


def test_a_mark_on_a_killed_mutant_is_an_error_of_the_report(tmp_path: Path) -> None:
    report = _run(tmp_path, MARK, killed=True)
    assert [r.line for r in report.wrong_marks] == [3]
    assert report.valid == len(MUTANTS)
    for text in (render_text(report), render_html(report)):
        assert "Marks that are wrong" in text


def test_an_unreachable_one_counts_as_survived(tmp_path: Path) -> None:
    report = _run(tmp_path, MARK.replace('"equivalent"', '"unreachable"'), killed=False)
    assert report.valid == len(MUTANTS)
    assert len(report.survivors) == 2
    assert "unreachable: g() does" in render_text(report)


def test_another_one_is_drawn_for_a_marked_one(tmp_path: Path) -> None:
    plain = _campaign(tmp_path, "", sample=len(MUTANTS) - 1)
    first = next(m for m in MUTANTS if m.number == plain.order[0])
    mark = Mark(
        file=first.file, function="f", before=first.before, after=first.after, kind="equivalent", reason="r", nth=1
    )
    options = Options(seed=1, sample=len(MUTANTS) - 1)
    marked = open_campaign(tmp_path, plain.report, options, MUTANTS, [mark])
    assert len(plain.chosen()) == len(MUTANTS) - 1
    assert len(marked.chosen()) == len(MUTANTS), "it is tried, and does not fill a place of the sample"
    marked.settle(first.number, fate=Fate.KILLED, evidence=("a",))
    assert len(marked.chosen()) == len(MUTANTS) - 1


def test_the_lines_around_a_mutant(tmp_path: Path) -> None:
    report = _run(tmp_path, "", killed=True)
    result = next(r for r in report.results if r.number == _number("g(n, 1);"))
    shown = around(report, result)
    assert [n for n, _, changed in shown if changed] == [3, 4]
    assert shown[0] == (1, "int f(int n)", False)
    assert shown[-1][0] == 8
