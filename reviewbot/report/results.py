"""results.json: a Report as JSON text, and back.

Out: one object with the keys ``schema``, ``verdict``, ``reasons``, ``run``, ``series``, ``base``, ``apply``,
``stages``, in this order. The texts of the patches stay out of it (message and diff of a Patch are read back as
empty): they are large, they are in the input, and a report is about them, not a copy of them.

In: such text of any version with the same schema name; fields that are unknown are skipped, fields that are missing
get their defaults. Refused, with UsageError: text that is not JSON, another schema, a value that the model forbids.
"""

from __future__ import annotations

import json
from typing import Any, cast

import msgspec

from reviewbot.errors import UsageError
from reviewbot.model import SCHEMA, Report

_KEYS = ("schema", "verdict", "reasons", "run", "series", "base", "apply", "stages")
_LEFT_OUT = ("message", "diff")


def render_json(report: Report) -> str:
    """Return the text of results.json, indented, with a line feed at its end."""
    plain = cast("dict[str, Any]", _valid_text(msgspec.to_builtins(report)))
    for patch in _patches(plain):
        for key in _LEFT_OUT:
            patch.pop(key, None)
    return json.dumps({key: plain[key] for key in _KEYS}, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def parse_results(text: str) -> Report:
    """Return the Report of a results.json; raises UsageError when it is none, or one of another schema."""
    try:
        plain = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        msg = f"results.json: not JSON: {error}"
        raise UsageError(msg) from error
    schema = plain.get("schema") if isinstance(plain, dict) else None
    if schema != SCHEMA:
        msg = f"results.json: schema is {schema!r}, not {SCHEMA!r}"
        raise UsageError(msg)
    try:
        for patch in _patches(plain):
            for key in _LEFT_OUT:
                patch.setdefault(key, "")
        return msgspec.convert(plain, Report)
    except (msgspec.ValidationError, AttributeError, TypeError) as error:
        msg = f"results.json: {error}"
        raise UsageError(msg) from error


def results_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of what render_json writes."""
    schema = msgspec.json.schema(Report)
    definitions = schema["$defs"]
    for definition in definitions.values():
        definition["description"] = " ".join(definition["description"].split())
    for key in _LEFT_OUT:
        del definitions["Patch"]["properties"][key]
    definitions["Patch"]["required"] = [k for k in definitions["Patch"]["required"] if k not in _LEFT_OUT]
    definitions["Report"]["properties"]["schema"] = {"const": SCHEMA}
    definitions["Report"]["required"] = list(_KEYS)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "reviewbot results.json", **schema}


def _patches(plain: dict[str, Any]) -> list[dict[str, Any]]:
    series = plain.get("series") or {}
    cover = series.get("cover")
    return [*(series.get("patches") or ()), *([cover] if cover else [])]


def _valid_text(value: object) -> object:
    # UTF-8 has no lone surrogates; what a careless decoder left of a byte must not stop the report.
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode() if not value.isascii() else value
    if isinstance(value, dict):
        return {key: _valid_text(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_valid_text(item) for item in value]
    return value
