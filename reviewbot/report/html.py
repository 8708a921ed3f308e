"""index.html: a Report as one self-contained page.

In: a Report, all of whose text is foreign. Out: HTML that loads nothing, runs nothing (its policy allows the one style
sheet that it carries, by hash) and is read without a script. Text is escaped once, by the template; characters that
cannot be seen are written out and marked; lists and logs are cut, and say how much was left out.
"""

from __future__ import annotations

import base64
import hashlib
import re
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import jinja2
from markupsafe import Markup, escape

from reviewbot.report import clean, view
from reviewbot.report.answer import answer

if TYPE_CHECKING:
    from reviewbot.model import Report

_TEMPLATES = Path(__file__).with_name("templates")
CASES_MAX = 1000  # rows of all case tables of a stage
LIST_MAX = 200  # items of any other list
TEXT_MAX = 600  # characters of a text that should be a line
COMMAND_MAX = 5000  # characters of a command
ANSWER_MAX = 6  # items of one part of the answer


def render_html(report: Report) -> str:
    """Return the page for a report."""
    return render_page("report.html.j2", report=report, answer=answer(report))


def render_page(template: str, **values: object) -> str:
    """Return a page from one of our templates, with the style sheet and its hash; every value is escaped there."""
    css = (_TEMPLATES / "report.css").read_text(encoding="utf-8")
    policy = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    page = _environment().get_template(template)
    return str(page.render(**values, css=Markup(css), style_hash=policy))  # noqa: S704 (our own file)


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.globals |= {
        "view": view,
        "CASES_MAX": CASES_MAX,
        "LOOK_MAX": view.LOOK_MAX,
        "LIST_MAX": LIST_MAX,
        "COMMAND_MAX": COMMAND_MAX,
        "ANSWER_MAX": ANSWER_MAX,
    }
    environment.filters |= {
        "show": show,
        "excerpt": _excerpt,
        "diff": _diff,
        "name": _name,
        "duration": clean.duration,
        "size": clean.size,
        "visible": lambda text: clean.one_line(text, 120),
        "count": clean.count,
        "commas": lambda number: f"{number:,}",
        "when": _when,
        "href": log_href,
        "split_item": _split_item,
    }
    return environment


def show(text: str, limit: int = TEXT_MAX) -> Markup:
    """Return text escaped, each hidden character written out inside a marked element; cut behind limit characters."""
    parts = []
    end = 0
    text = clean.cut(text.replace("\r\n", "\n"), limit)
    for match in clean.HIDDEN.finditer(text):
        kind = "bidi" if clean.has_bidi(match[0]) else "ctl"
        parts.append(escape(text[end : match.start()]))
        parts.append(Markup('<span class="{}">{}</span>').format(kind, clean.written_out(match[0])))
        end = match.end()
    return Markup("").join([*parts, escape(text[end:])])


def _excerpt(text: str) -> Markup:
    lines = clean.capped_lines(text)
    return show(lines, len(lines))


def log_href(path: str) -> str:
    """Return the relative address of a log, or an empty string for a path that leaves the run directory."""
    parts = path.split("/")
    if not path or path.startswith("/") or ".." in parts or "\\" in path:
        return ""
    return "./" + quote(path.encode("utf-8", "replace"), safe="/")


def _diff(text: str) -> Markup:
    # A unified diff, one element a line, so that added and removed lines can be told by colour besides their sign.
    kinds = {"+": "add", "-": "del", "@": "hunk"}
    lines = clean.capped_lines(text).split("\n")
    line = Markup('<span class="{}">{}</span>')
    heads = ("--- ", "+++ ")
    return Markup("\n").join(
        line.format("hunk" if text.startswith(heads) else kinds.get(text[:1], "same"), show(text)) for text in lines
    )


def _name(text: str) -> Markup:
    # A name without spaces may break behind its separators.
    return Markup("<wbr>").join(show(part) for part in re.split(r"(?<=[._/:-])(?=\w)", text))


def _when(started: str) -> str:
    try:
        moment = datetime.fromisoformat(started)
    except ValueError:
        return started
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC)
    return moment.strftime("%-d %B %Y, %H:%M UTC")


def _split_item(text: str) -> tuple[str, str]:
    # "stage: what" or "file:12: what": the name of the thing is set apart from what is said about it.
    match = re.match(r"(\S+?): (.*)", text, re.DOTALL)
    return (match[1], match[2]) if match else ("", text)
