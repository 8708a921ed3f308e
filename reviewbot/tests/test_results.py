"""results.json: what is in it, that it is read back as it was, and that its JSON Schema describes it."""

from __future__ import annotations

import json
import os
from dataclasses import fields, replace
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reviewbot.errors import UsageError
from reviewbot.model import Report, Series, StageResult
from reviewbot.report.html import render_html
from reviewbot.report.results import parse_results, render_json, results_schema
from reviewbot.tests import samples

SCHEMA_FILE = Path(__file__).parents[1] / "report" / "results.schema.json"
SAMPLES = samples.every()


def without_patch_text(report: Report) -> Report:
    if report.series is None:
        return report
    patches = tuple(replace(p, message="", diff="") for p in report.series.patches)
    return replace(report, series=replace(report.series, patches=patches))


@pytest.mark.parametrize("name", SAMPLES)
def test_what_is_read_is_what_was_written(name: str) -> None:
    report = SAMPLES[name]
    assert parse_results(render_json(report)) == without_patch_text(report)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_saved_report_renders_the_same_page(name: str) -> None:
    assert render_html(parse_results(render_json(SAMPLES[name]))) == render_html(SAMPLES[name])


@pytest.mark.parametrize("name", SAMPLES)
def test_the_schema_describes_every_sample(name: str) -> None:
    validator = jsonschema.Draft202012Validator(results_schema())
    validator.check_schema(results_schema())
    validator.validate(json.loads(render_json(SAMPLES[name])))


def test_the_schema_refuses_what_is_wrong() -> None:
    validator = jsonschema.Draft202012Validator(results_schema())
    good = json.loads(render_json(samples.passing()))
    assert not validator.is_valid(good | {"verdict": "PASS"})
    assert not validator.is_valid(good | {"schema": "reviewbot-results-0"})
    assert not validator.is_valid({key: value for key, value in good.items() if key != "stages"})


def test_the_committed_schema_is_the_one_of_the_model() -> None:
    # REVIEWBOT_UPDATE=1 writes it again, after a change of the model that was meant. Descriptions may lag behind.
    if os.environ.get("REVIEWBOT_UPDATE"):
        SCHEMA_FILE.write_text(json.dumps(results_schema(), indent=1) + "\n", encoding="utf-8")
    assert undescribed(json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))) == undescribed(
        json.loads(json.dumps(results_schema()))
    )


def undescribed(schema: object) -> object:
    if isinstance(schema, dict):
        return {key: undescribed(value) for key, value in schema.items() if key != "description"}
    return [undescribed(value) for value in schema] if isinstance(schema, list) else schema


def test_the_keys_are_the_promised_ones() -> None:
    plain = json.loads(render_json(samples.failing_cases()))
    assert list(plain) == ["schema", "verdict", "reasons", "run", "series", "base", "apply", "stages"]
    assert plain["verdict"] == "fail"
    selftest = plain["stages"][-1]
    assert {"stage", "status", "summary", "duration_s", "findings", "cases"} <= selftest.keys()
    assert {"name", "base", "patched", "reason"} <= selftest["cases"][0].keys()
    assert {c["patched"] for c in selftest["cases"]} == {"pass", "fail", "skip"}


def test_patch_texts_stay_out() -> None:
    text = render_json(samples.passing())
    assert "sizeof(struct perf_sample_build_id_offset)" not in text
    assert "perf/core: Implement BUILD_ID_OFFSET sample type" in text


def test_unknown_fields_of_a_later_version_are_skipped() -> None:
    plain = json.loads(render_json(samples.passing()))
    plain["weather"] = "fine"
    plain["stages"][0]["mood"] = ["good"]
    assert parse_results(json.dumps(plain)) == without_patch_text(samples.passing())


def test_fields_that_an_earlier_version_did_not_write_get_their_defaults() -> None:
    plain = json.loads(render_json(samples.passing()))
    for stage in plain["stages"]:
        for key in [f.name for f in fields(StageResult) if f.name not in ("stage", "status", "summary")]:
            del stage[key]
    for key in [f.name for f in fields(Series) if f.name not in ("title", "patches")]:
        del plain["series"][key]
    render_html(parse_results(json.dumps(plain)))


@pytest.mark.parametrize(
    "text",
    ["", "[]", "null", "{}", '{"schema": "reviewbot-results-9"}', '{"schema": "reviewbot-results-1"}', "\ud800"],
)
def test_what_is_no_results_json_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"^results\.json: "):
        parse_results(text)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("verdict",), "PASS"),
        (("stages", 0, "status"), "ok"),
        (("stages", 0, "summary"), ""),
        (("stages",), {}),
        (("series", "patches"), [1]),
        (("series",), "x"),
        (("series", "cover"), 7),
        (("apply", "tip_commit"), ""),
    ],
)
def test_a_value_that_the_model_forbids_is_refused(path: tuple[str | int, ...], value: object) -> None:
    plain = json.loads(render_json(samples.passing()))
    place = plain
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(UsageError):
        parse_results(json.dumps(plain))


@settings(deadline=None)
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda x: st.lists(x, max_size=3)))
def test_any_json_value_as_series_is_read_or_refused(value: object) -> None:
    plain = json.loads(render_json(samples.passing())) | {"series": value}
    try:
        parse_results(json.dumps(plain))
    except UsageError:
        return
    assert value is None


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=()), max_size=30))
def test_any_text_survives(text: str) -> None:
    stage = StageResult(stage="build", status=samples.build().status, summary=f"x{text}", excerpt=text)
    report = replace(samples.passing(), stages=(stage,))
    encoded = render_json(report).encode("utf-8")
    expected = text.encode("utf-8", "replace").decode()
    assert parse_results(encoded.decode()).stages[0].excerpt == expected
