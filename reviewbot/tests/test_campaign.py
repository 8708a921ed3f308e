"""The state of a mutation run: what is drawn, saved and gone on with; and its report."""

import json
from pathlib import Path

import pytest

from reviewbot.errors import UsageError
from reviewbot.generate.mutants import find_mutants
from reviewbot.mutate.campaign import Campaign, Options, open_campaign, source_lines
from reviewbot.report.mutants import (
    Fate,
    MutationReport,
    parse_json,
    render_html,
    render_json,
    render_list,
    render_text,
)

SOURCE = b'int f(int n)\n{\n\tg(n + 1);\n\tif (n < 5)\n\t\th("<script>", n & 3);\n\tx = min(n, 4);\n\treturn n;\n}\n'
MUTANTS = find_mutants({"k/<b>.c": SOURCE}, {"k/<b>.c": range(1, 9)}).mutants


def _report(key: str = "one") -> MutationReport:
    return MutationReport(series="a <b>series</b>", tree="t", key=key, seed=1, sample=0, results=())


def _open(
    out: Path, *, key: str = "one", seed: int = 1, sample: int = 0, resume: bool = False, only: tuple[str, ...] = ()
) -> Campaign:
    options = Options(seed=seed, sample=sample, resume=resume, only=only)
    return open_campaign(out, _report(key), options, MUTANTS)


def test_a_seed_draws_the_same_sample(tmp_path: Path) -> None:
    assert _open(tmp_path).order == _open(tmp_path).order
    assert _open(tmp_path).order != _open(tmp_path, seed=2).order
    assert len(_open(tmp_path, sample=3).waiting()) == 3
    equivalent = {m.number for m in MUTANTS if m.equivalent}
    assert equivalent
    assert set(_open(tmp_path).waiting()) == {m.number for m in MUTANTS} - equivalent


def test_what_is_not_valid_is_replaced_in_the_sample(tmp_path: Path) -> None:
    campaign = _open(tmp_path, sample=3)
    first = campaign.chosen()
    campaign.settle(first[0], fate=Fate.INVALID, reason="does not compile")
    campaign.settle(first[1], fate=Fate.KILLED, evidence=("abi/a (fail)",))
    assert len(campaign.chosen()) == 3
    assert first[0] not in campaign.chosen()
    assert campaign.waiting() == [n for n in campaign.chosen() if n != first[1]]


def test_a_build_of_its_own_comes_last(tmp_path: Path) -> None:
    campaign = _open(tmp_path)
    number = campaign.waiting()[0]
    campaign.settle(number, own_build=True)
    assert campaign.waiting()[-1] == number


def test_a_run_goes_on_where_it_was(tmp_path: Path) -> None:
    campaign = _open(tmp_path)
    number = campaign.waiting()[0]
    campaign.facts["cases"] = "12"
    campaign.settle(number, fate=Fate.KILLED, evidence=("abi/a (fail)",), boots=2)
    again = _open(tmp_path, resume=True)
    assert again.results[number] == campaign.results[number]
    assert again.facts == {"cases": "12"}
    assert number not in again.waiting()
    assert number in _open(tmp_path).waiting(), "without --resume a run begins again"


def test_named_mutants_are_tried_again_and_the_others_kept(tmp_path: Path) -> None:
    campaign = _open(tmp_path)
    one, two, *_ = campaign.waiting()
    campaign.settle(one, fate=Fate.SURVIVED)
    campaign.settle(two, fate=Fate.KILLED, evidence=("abi/a (fail)",))
    again = _open(tmp_path, resume=True, only=(campaign.results[one].ident,))
    assert again.waiting() == [one]
    assert again.results[two].fate is Fate.KILLED
    assert sorted(_open(tmp_path, only=(str(one), campaign.results[two].ident)).waiting()) == sorted([one, two])
    with pytest.raises(UsageError, match="--only 0,x: no such mutant"):
        _open(tmp_path, only=("x", str(one), "0"))


def test_the_list_is_in_the_order_of_the_draw(tmp_path: Path) -> None:
    campaign = _open(tmp_path)
    lines = render_list(campaign.current(), campaign.order).splitlines()
    assert [line.split()[0] for line in lines[:-1]] == [campaign.results[n].ident for n in campaign.order]
    assert sum("[equivalent: " in line for line in lines) == sum(bool(m.equivalent) for m in MUTANTS)
    assert lines[-1].startswith(f"{len(MUTANTS)} candidates: ")
    assert not list(tmp_path.iterdir()), "nothing is written"


@pytest.mark.parametrize("text", [None, "", "{}", "[1]", "\udc80", '{"schema": "reviewbot-mutants-1", "key": 1}'])
def test_a_broken_state_is_refused(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "mutants.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(UsageError, match="--resume"):
        _open(tmp_path, resume=True)


def test_other_sources_or_tests_are_refused(tmp_path: Path) -> None:
    _open(tmp_path).save()
    with pytest.raises(UsageError, match="other sources or other tests"):
        _open(tmp_path, key="two", resume=True)


def test_the_budget_ends_a_run(tmp_path: Path) -> None:
    campaign = open_campaign(tmp_path, _report(), Options(budget_s=0.001), MUTANTS)
    campaign.started -= 1
    assert campaign.over()
    assert not _open(tmp_path).over()
    assert not campaign.save().finished


def _settled(tmp_path: Path) -> MutationReport:
    campaign = _open(tmp_path)
    waiting = campaign.waiting()
    campaign.settle(waiting[0], fate=Fate.SURVIVED, reason="no test comes to this place", reached=False)
    for number in waiting[1:]:
        campaign.settle(number, fate=Fate.KILLED, evidence=("abi/a (fail: <i>)",))
    campaign.report = MutationReport(
        series="a <b>series</b>",
        tree="t",
        key="one",
        seed=1,
        sample=0,
        results=(),
        lines=source_lines({"k/<b>.c": SOURCE}, MUTANTS),
        unread=("k/<b>.c:4",),
    )
    return campaign.save()


def test_the_report_names_survivors_with_their_lines(tmp_path: Path) -> None:
    report = _settled(tmp_path)
    (survivor,) = report.of(Fate.SURVIVED)
    text = render_text(report)
    assert "No test verifies these lines:" in text
    assert f"k/<b>.c:{survivor.line} f" in text
    assert SOURCE.decode().split("\n")[survivor.line - 1].strip() in text
    assert f"caught {report.valid - 1} of {report.valid} wrong kernels" in text
    assert report.finished


def test_the_page_escapes_what_it_shows(tmp_path: Path) -> None:
    page = render_html(_settled(tmp_path))
    assert "<script>" not in page
    assert "<b>" not in page
    assert "&lt;script&gt;" in page
    assert (tmp_path / "mutants.html").read_text(encoding="utf-8") == page


def test_bytes_that_are_no_text_are_written(tmp_path: Path) -> None:
    mutants = find_mutants({"a.c": b'int f(void)\n{\n\tg("\xff", 1);\n}\n'}, {"a.c": range(1, 9)}).mutants
    report = open_campaign(tmp_path, _report(), Options(), mutants).save()
    assert json.loads(render_json(report))["schema"] == "reviewbot-mutants-1"
    assert parse_json(render_json(report)).results


def test_nothing_tried_is_no_score() -> None:
    assert _report().score == 0.0
    assert "No wrong kernel was tried" in render_text(_report())
