"""index.html: what a reader finds in it, that foreign text stays text, and how a browser shows it."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reviewbot.model import Blame, Case, Finding, Origin, Status
from reviewbot.report.html import log_href, render_html, show
from reviewbot.tests import samples

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

SAMPLES = samples.every()
PAGES = {name: render_html(report) for name, report in SAMPLES.items()}


def plain(page: str) -> str:
    """Return the page's text without elements, white space as single spaces."""
    return " ".join(re.sub(r"<[^>]*>", " ", page.partition("<main>")[2]).split())


@pytest.mark.parametrize(
    ("name", "headline"),
    [
        ("passing", "Nothing that this series breaks was found."),
        ("incomplete_warn", "Nothing is known to break; a reader should look at something."),
        ("failing_cases", "This series breaks 3 test cases."),
        ("case_findings", "This series breaks 2 rules in 3 test cases."),
        ("build_error", "This series breaks the build."),
        ("panic", "This series breaks the boot."),
        ("does_not_apply", "The series does not apply, so nothing was tested."),
        ("already_merged", "The series is already in this tree."),
        ("infra_error", "No answer: what was asked for could not be tested."),
        ("unfinished", "No answer: the run was stopped by Ctrl-C."),
    ],
)
def test_the_verdict_comes_first_as_a_sentence(name: str, headline: str) -> None:
    assert f"<h1>{headline}</h1>" in PAGES[name]


def test_a_failing_case_has_its_excerpt_and_its_command() -> None:
    text = plain(PAGES["failing_cases"])
    assert "build_id_offset.with_time.size" in text
    assert "# header.size 64, decoded 72" in text
    assert "reviewbot selftest generate series.txt --tree demo -o selftest" in text
    assert "2 of 2 runs" in text


def test_a_finding_of_cases_shows_rule_record_lines_and_cases() -> None:
    page = PAGES["case_findings"]
    text = plain(page)
    shown = page.partition('id="stage-7-finding-0"')[2].partition("</article>")[0]
    assert "72, to which sample_type 0x2000007 decodes" in shown
    assert "A record has as many bytes as header.size says." in shown
    assert "perf_event_open(2), MMAP layout" in shown
    assert '<a href="./selftest/reproduce/layout-size.c">' in shown
    assert "<details" in shown.partition("0000  09 00")[0]
    assert shown.count('<th scope="row">') == 2
    assert 'class="around"><span class="no">2104</span>if (sample_type' in shown
    assert '<span class="no">2105</span>\tsize += sizeof' in shown
    assert "stands nowhere in this tree" in text
    assert 'id="stage-7-case-' not in page


@pytest.mark.parametrize(("severity", "word"), [(Status.PASS, "note"), (Status.WARN, "warn"), (Status.FAIL, "fail")])
def test_a_finding_is_called_by_its_weight(severity: Status, word: str) -> None:
    told = Finding(title="the copy in tools/ is older", severity=severity, origin=Origin.INTRODUCED)
    stage = samples.build(status=Status.WARN, findings=(told,))
    page = render_html(replace(samples.passing(), stages=(stage,)))
    shown = page.partition('id="stage-0-finding-0"')[2].partition("</h4>")[0]
    assert f'<span class="chip {word}">' in shown
    assert plain(f"<main>{shown}</h4>").endswith(f"{word} the copy in tools/ is older")
    assert f'<symbol id="i-{word}"' in page


def test_prerequisites_and_missing_patches_are_shown_apart() -> None:
    page = PAGES["passing"]
    assert page.count("<td>prerequisite</td>") == 2
    assert page.count("<td>series</td>") == 1
    assert "patches 1, 2, 4-8 of 8; they were not given and are not tested" in plain(PAGES["failing_cases"])


def test_what_the_series_fixes_is_said_to_hold() -> None:
    gone = Finding(title="unused variable 'x'", severity=Status.WARN, origin=Origin.FIXED, blame=Blame.BASE)
    mended = Case(name="x", base=Status.FAIL, patched=Status.PASS, reason="", origin=Origin.FIXED)
    stages = (samples.build(findings=(gone,)), replace(samples.selftest(), cases=(mended,)))
    page = render_html(replace(samples.passing(), stages=stages))
    holds = page.partition("What holds")[2].partition("</section>")[0]
    assert "fixes 1 finding of base" in holds
    assert "fixes 1 case that base fails" in holds
    assert "Not from this series" not in page


def test_what_a_stage_did_not_do_is_said() -> None:
    untold = PAGES["passing"].partition("What could not be told")[2].partition("</section>")[0]
    assert "payload not verified (no spec): PERF_SAMPLE_AUX" in untold
    assert "2 cases skipped: needs a hardware counter" in untold


def test_failed_hunks_are_shown_with_the_nearest_place() -> None:
    text = plain(PAGES["does_not_apply"])
    assert "The nearest place is line 5,390, 94 % alike" in text
    assert "The file has nothing that resembles what the patch expects at line 16,021" in text


def test_a_failing_stage_is_open_and_a_passing_one_is_closed() -> None:
    page = PAGES["failing_cases"]
    assert re.search(r'<details class="stage fail" id="stage-\d+" open>', page)
    assert not re.search(r'<details class="stage pass"[^>]* open>', page)


def test_a_stage_with_cases_is_open_and_its_quiet_groups_are_closed() -> None:
    assert re.search(r'<details class="stage pass" id="stage-6" open>', PAGES["passing"])
    assert '<details class="group" open>' not in PAGES["passing"]
    assert '<details class="group" open>' in PAGES["failing_cases"]


def test_an_excerpt_is_shown_once() -> None:
    assert PAGES["panic"].count("Kernel panic - not syncing") == 1
    assert PAGES["does_not_apply"].count("--- what the patch expects") == 1


@pytest.mark.parametrize("name", PAGES)
def test_hostile_text_stays_text(name: str) -> None:
    page = PAGES[name]
    assert "<script" not in page
    assert "<img" not in page
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert "javascript:" not in re.sub(r">[^<]*<", "><", page)


def test_hidden_characters_are_written_out_and_bidi_is_announced() -> None:
    page = PAGES["hostile"]
    assert '<span class="ctl">\\x1b</span>[31mred' in page
    assert '<span class="bidi">\\u202e</span>gnp.exe' in page
    assert "characters that change its direction" in page
    assert "characters that change its direction" not in PAGES["failing_cases"]


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=())))
def test_any_text_is_shown_as_text(text: str) -> None:
    shown = str(show(text))
    assert not re.search(r"<(?!/?span\b)", shown)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", shown)
    shown.encode("utf-8")


def test_a_huge_report_is_cut_and_says_so() -> None:
    page = render_html(samples.huge())
    assert len(page) < 2_000_000
    assert "… and 2,646 more cases like these" in plain(page)
    assert "… and 3,000 more cases" in plain(page)
    assert "lines left out here" in page
    assert "… and 4,600 more characters" in page
    assert "… and 100 more characters" in page


@pytest.mark.parametrize(
    ("started", "shown"),
    [
        ("2026-11-30T21:14:07Z", "30 November 2026, 21:14 UTC"),
        ("2026-12-01T00:14:07+03:00", "30 November 2026, 21:14 UTC"),
        ("yesterday", "yesterday"),
    ],
)
def test_the_time_is_in_utc(started: str, shown: str) -> None:
    report = samples.passing()
    assert shown in render_html(replace(report, run=replace(report.run, started=started)))


@pytest.mark.parametrize(
    ("path", "href"),
    [
        ("logs/build.log", "./logs/build.log"),
        ("logs/a b#c?.log", "./logs/a%20b%23c%3F.log"),
        ("javascript:alert(1)", "./javascript%3Aalert%281%29"),
        ("../x", ""),
        ("a/../../x", ""),
        ("/etc/passwd", ""),
        ("", ""),
        ("a\\b", ""),
    ],
)
def test_log_links_stay_in_the_run_directory(path: str, href: str) -> None:
    assert log_href(path) == href


# In a browser.


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("chromium is not installed")
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        yield started
        started.close()


class Watched:
    """A page, and what it asked of the network and wrote to the console."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.requests: list[str] = []
        self.console: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", lambda message: self.console.append(message.text))
        page.on("pageerror", lambda error: self.console.append(str(error)))
        page.on("dialog", lambda dialog: self.console.append(dialog.message))


def opened(browser: Browser, tmp_path: Path, html: str, width: int, scheme: str = "light") -> Watched:
    file = tmp_path / "index.html"
    file.write_text(html, encoding="utf-8")
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
    watched = Watched(page)
    page.goto(file.as_uri())
    page.evaluate("for (const d of document.querySelectorAll('details')) d.open = true")
    return watched


@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_loaded_nothing_complains_and_nothing_overflows(browser: Browser, tmp_path: Path, name: str) -> None:
    watched = opened(browser, tmp_path, PAGES[name], 1300)
    for width in (1300, 900, 400):
        watched.page.set_viewport_size({"width": width, "height": 900})
        assert watched.page.evaluate("document.documentElement.scrollWidth") <= width
    assert [url for url in watched.requests if not url.startswith(("file:", "data:"))] == []
    assert watched.console == []
    assert watched.page.locator("script, img, iframe, object, form").count() == 0
    watched.page.close()


def test_the_policy_of_the_page_stops_what_escaping_missed(browser: Browser, tmp_path: Path) -> None:
    watched = opened(browser, tmp_path, PAGES["failing_cases"], 1300)
    watched.page.evaluate("""() => {
      const make = (name, values) => document.body.appendChild(Object.assign(document.createElement(name), values));
      make('script', {textContent: 'document.title = "ran"'});
      make('img', {src: 'https://example.com/x.png'});
      make('style', {textContent: 'body { display: none }'});
    }""")
    assert watched.page.title() != "ran"
    assert watched.page.locator("h1").is_visible()
    assert len([line for line in watched.console if "Content Security Policy" in line]) == 3
    watched.page.close()


_CONTRAST = """() => {
  const parse = c => c.match(/[\\d.]+/g).map(Number);
  const lum = ([r, g, b]) => [r, g, b].map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const background = e => {
    for (; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor);
      if (c.length === 3 || c[3] === 1) return c;
    }
    return [255, 255, 255];
  };
  const bad = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || !e.checkVisibility()) continue;
    const [a, b] = [lum(parse(getComputedStyle(e).color)), lum(background(e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) bad.push(`${ratio.toFixed(2)} ${e.className} ${walker.currentNode.textContent.slice(0, 40)}`);
  }
  return bad;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["failing_cases", "incomplete_warn", "does_not_apply", "passing", "hostile"])
def test_text_can_be_read_in_light_and_in_dark(browser: Browser, tmp_path: Path, name: str, scheme: str) -> None:
    watched = opened(browser, tmp_path, PAGES[name], 1300, scheme)
    assert watched.page.evaluate(_CONTRAST) == []
    watched.page.close()


def test_the_outline_has_no_gaps(browser: Browser, tmp_path: Path) -> None:
    watched = opened(browser, tmp_path, PAGES["failing_cases"], 1300)
    levels = watched.page.evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].map(h => Number(h.tagName[1]))")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    watched.page.close()


def test_an_excerpt_that_is_too_long_scrolls_inside_its_box(browser: Browser, tmp_path: Path) -> None:
    report = samples.panic()
    stages = tuple(replace(s, excerpt="y" * 390 + s.excerpt) for s in report.stages)
    watched = opened(browser, tmp_path, render_html(replace(report, stages=stages)), 400)
    assert watched.page.evaluate("document.documentElement.scrollWidth") <= 400
    assert watched.page.evaluate("[...document.querySelectorAll('pre')].some(p => p.scrollWidth > p.clientWidth)")
    watched.page.close()
