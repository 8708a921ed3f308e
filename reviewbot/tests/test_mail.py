"""The reply: its headers, its length, and that no tool reads anything out of it."""

from __future__ import annotations

import re
from dataclasses import replace
from email import message_from_string
from email.policy import default
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reviewbot.report.mail import render_mail
from reviewbot.tests import samples

if TYPE_CHECKING:
    from email.message import EmailMessage

    from reviewbot.model import Report

SAMPLES = samples.every()
SENDER = "Review Bot <bot@example.com>"


def read(text: str) -> EmailMessage:
    return message_from_string(text, policy=default)


def body(report: Report) -> list[str]:
    return render_mail(report, sender=SENDER).partition("\n\n")[2].splitlines()


def test_the_headers_answer_the_patch() -> None:
    mail = read(render_mail(samples.failing_cases(), sender=SENDER))
    assert mail["From"] == SENDER
    assert mail["To"] == "Name <name@example.com>"
    assert mail["Subject"] == "Re: [PATCH v2 3/8] perf/core: Implement BUILD_ID_OFFSET sample type"
    assert mail["In-Reply-To"] == mail["References"] == "<20261130091244.1-4-name@example.com>"
    assert mail.get_content_type() == "text/plain"
    assert mail.defects == []


def test_a_subject_keeps_its_tree_and_its_brackets() -> None:
    report = samples.passing()
    assert report.series is not None
    tree = replace(report, series=replace(report.series, prefixes=("PATCH", "net-next")))
    assert read(render_mail(tree, sender=SENDER))["Subject"].startswith("Re: [PATCH net-next v2] perf/core: ")
    patch = replace(report.series.patches[0], subject="[PATCH 1/1] x: y")
    whole = replace(report, series=replace(report.series, patches=(patch,)))
    assert read(render_mail(whole, sender=SENDER))["Subject"] == "Re: [PATCH 1/1] x: y"


def test_the_first_failure_is_inside_with_its_command() -> None:
    lines = body(samples.build_error())
    assert lines[0] == "Result FAIL: This series breaks the build."
    assert "| kernel/events/core.c: In function 'perf_output_build_id_offset':" in lines
    assert "| make -C SRC O=BUILD kernel/events/core.o" in lines
    assert "The full report is at https://example.com/r" in render_mail(
        samples.build_error(), sender=SENDER, url="https://example.com/r"
    )


def test_the_first_finding_of_cases_is_explained() -> None:
    text = render_mail(SAMPLES["case_findings"])
    assert "- kernel/events/core.c:2105: header.size 64; expected 72" in text
    assert "Rule header.size says that a record has as many bytes" in text
    assert "| expected  72, to which sample_type 0x2000007 decodes\n| seen      header.size 64\n" in text
    assert "| kernel/events/core.c:2105: size += sizeof(struct perf_sample_build_id_offset);" in text
    assert "selftest/reproduce/layout-size.c in the report's directory" in text


def test_a_series_that_does_not_apply_is_told_where() -> None:
    lines = body(samples.does_not_apply())
    assert "- kernel/events/core.c: hunk 9 at line 16021: nothing alike is in the" in lines


@pytest.mark.parametrize("name", [*SAMPLES, "huge"])
def test_it_is_short(name: str) -> None:
    lines = body(SAMPLES.get(name) or samples.huge())
    assert len(lines) < 120
    assert all(len(line) < 998 for line in lines)


_TRAILER = re.compile(r"^\s*\w\S*:(\s|$)")


@pytest.mark.parametrize("name", SAMPLES)
def test_no_line_is_a_trailer_or_a_patch(name: str) -> None:
    lines = body(SAMPLES[name])
    assert [line for line in lines if _TRAILER.match(line)] == []
    assert [line for line in lines if line.startswith(("diff ", "--- ", "+++ ", "@@", "From ", "#syz", "---"))] == []


_words = st.sampled_from(
    [
        "Tested-by:",
        "Fixes:",
        "pw-bot:",
        "accept",
        "#syz",
        "diff --git",
        "---",
        "From x",
        "-- >8 --",
        "a" * 70,
        "\n",
        "\r",
    ]
)


@settings(deadline=None)
@given(st.lists(_words | st.text(max_size=8), max_size=12).map(" ".join))
def test_no_text_can_speak_to_a_tool(text: str) -> None:
    report = samples.failing_cases()
    assert report.series is not None
    assert report.base is not None
    stages = tuple(
        replace(
            s,
            summary=f"x {text}",
            cases=tuple(replace(c, name=text, reason=text, excerpt=text) for c in s.cases[:3]),
            findings=tuple(replace(f, title=text, file="", reproduce=text) for f in s.findings),
        )
        for s in report.stages
    )
    series = replace(report.series, title=text, author=text, msgid=text, prefixes=(text,))
    patch = replace(series.patches[0], subject=text, msgid=text, author=text)
    hostile = replace(
        report,
        stages=stages,
        series=replace(series, patches=(patch,)),
        base=replace(report.base, describe=text, chosen_by=text),
        run=replace(report.run, command=text),
    )
    rendered = render_mail(hostile, sender=SENDER)
    head, _, rest = rendered.partition("\n\n")
    names = [line.partition(":")[0] for line in head.split("\n") if not line.startswith((" ", "\t"))]
    assert set(names) <= {
        "From",
        "To",
        "Subject",
        "In-Reply-To",
        "References",
        "Auto-Submitted",
        "MIME-Version",
        "Content-Type",
        "Content-Transfer-Encoding",
    }
    assert len(names) == len(set(names))
    for line in re.split(r"[\n\r\x0b\x0c\x85\u2028\u2029]", rest):
        assert not _TRAILER.match(line)
        assert not line.startswith(("diff ", "---", "+++ ", "@@", "From ", "#syz"))
        assert "\x1b" not in line


def test_a_hostile_author_gets_no_header() -> None:
    mail = render_mail(samples.hostile(), sender=SENDER)
    assert "\nTo:" not in mail.partition("\n\n")[0]
    assert "In-Reply-To" not in mail


def test_a_name_beyond_ascii_is_encoded_and_read_back() -> None:
    report = samples.passing()
    assert report.series is not None
    named = replace(report, series=replace(report.series, author="Zoë Ångström <zoe@example.com>"))
    text = render_mail(named, sender=SENDER)
    assert text.partition("\n\n")[0].isascii()
    assert read(text)["To"].addresses[0].display_name == "Zoë Ångström"
