"""A review as a reply to the series: one short plain-text mail.

In: a Report, and who writes. Out: a mail as text, to be saved or handed to a mail program; nothing is sent here, and
whether a list wants such mails is for the caller to know. Refused silently: an author or a Message-ID that is none
(the header is left out). No line of the body can be taken for a trailer (``Tested-by:``), a command to a bot or
a patch: such lines, and everything quoted from a log, begin with ``| ``.
"""

from __future__ import annotations

import re
import textwrap
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import default
from email.utils import parseaddr
from typing import TYPE_CHECKING

from reviewbot.model import Status, VerdictKind
from reviewbot.report.answer import Item, answer
from reviewbot.report.clean import capped_lines, one_line, visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from reviewbot.model import Breach, Finding, Patch, Report, Series

SENDER = "reviewbot <reviewbot@localhost>"
_WIDTH = 72
_ITEMS_MAX = 5
_EXCERPT_LINES = 20
_ADDRESS = re.compile(r"[\w.+=~!#$%&'*/?^`{|}-]+@[\w.-]+", re.ASCII)
_MSGID = re.compile(r"[^\s<>@]+@[^\s<>@]+", re.ASCII)
# What a tool may read out of a reply: a trailer or bot command, a patch, a scissors line, the start of an mbox entry.
_MEANT_FOR_TOOLS = re.compile(
    r"\s*(?:[\w#][^\s:]*:(?:\s|$)|#syz\b|diff -|---|\+\+\+|@@|\*\*\*|-+ ?[8%]<|-- *$|>?From )"
)


def render_mail(report: Report, *, sender: str = SENDER, url: str = "") -> str:
    """Return the mail with its headers and LF line ends.

    sender is ``Name <name@example.com>``; url, where given, leads to the report.
    """
    body = "\n".join(_guarded(line) for line in _body(report, url))
    return f"{_headers(report, sender)}\n{body}\n"


def _headers(report: Report, sender: str) -> str:
    mail = EmailMessage(policy=default)
    for name, address in (("From", _address(sender)), ("To", _address(report.series.author if report.series else ""))):
        if address is not None:
            mail[name] = address
    mail["Subject"] = _subject(report.series)
    reply_to = _reply_to(report.series)
    if reply_to:
        mail["In-Reply-To"] = mail["References"] = f"<{reply_to}>"
    mail["Auto-Submitted"] = "auto-generated"
    mail["MIME-Version"] = "1.0"
    mail["Content-Type"] = 'text/plain; charset="utf-8"'
    mail["Content-Transfer-Encoding"] = "8bit"
    return "".join(_folded(name, value) for name, value in mail.items())


def _folded(name: str, value: str) -> str:
    # Only encoded words need short lines; folding would leave "Subject:" alone on its line.
    policy = default.clone(linesep="\n", max_line_length=900 if str(value).isascii() else 78)
    return str(policy.fold(name, value))


def _address(text: str) -> Address | None:
    name, address = parseaddr(one_line(text))
    if not _ADDRESS.fullmatch(address):
        return None
    return Address(display_name=one_line(name, 80), addr_spec=address)


def _first(series: Series) -> Patch | None:
    return series.cover or (series.patches[0] if series.patches else None)


def _subject(series: Series | None) -> str:
    if series is None:
        return "Result of a review"
    first = _first(series)
    subject = one_line(first.subject if first else series.title, 200)
    if subject.startswith("["):
        return f"Re: {subject}"
    others = [one_line(word, 40) for word in series.prefixes if word.upper() not in ("PATCH", "RFC")]
    words = ["RFC", "PATCH"] if "RFC" in series.prefixes else ["PATCH"]
    words += [*others, *([f"v{series.revision}"] if series.revision > 1 else [])]
    if series.total > 1 and first is not None:
        words.append(f"{first.number}/{series.total}")
    return f"Re: [{' '.join(words)}] {subject}"


def _reply_to(series: Series | None) -> str:
    if series is None:
        return ""
    first = _first(series)
    msgid = ((first.msgid if first else "") or series.msgid).strip("<>")
    return msgid if len(msgid) < 250 and _MSGID.fullmatch(msgid) else ""


def _body(report: Report, url: str) -> Iterable[str]:
    found = answer(report)
    yield from _wrapped(f"Result {report.verdict.value.upper()}: {found.headline}")
    yield from _tested_on(report)
    if report.verdict is VerdictKind.INCONCLUSIVE:
        yield from _part("Why", [Item(text=line, status=Status.ERROR) for line in report.reasons])
    yield from _part("What it breaks", found.breaks)
    yield from _first_excerpt(report)
    yield from _part("What a reader should judge", found.doubts)
    yield from _part("What holds", found.holds)
    yield from _part("What could not be told", found.untold)
    yield from ("", "See it yourself", *_quoted(one_line(report.run.command, 900)))
    if url:
        yield from ("", f"The full report is at {one_line(url, 900)}")
    yield from ("", "This mail was written by a program, reviewbot.")


def _tested_on(report: Report) -> Iterable[str]:
    if report.base is None:
        return
    base = f"The base is {report.base.describe} ({report.base.commit[:12]}), chosen by {report.base.chosen_by}."
    prerequisites = len([p for p in report.apply.patches if p.role.value == "prerequisite"]) if report.apply else 0
    with_them = (
        f" Applied with {prerequisites} prerequisite{'s' if prerequisites > 1 else ''}." if prerequisites else ""
    )
    yield from ("", *_wrapped(base + with_them))


def _part(title: str, items: Sequence[Item]) -> Iterable[str]:
    if not items:
        return
    yield from ("", title)
    for item in items[:_ITEMS_MAX]:
        yield from _wrapped(item.text, first="- ", rest="  ")
    if len(items) > _ITEMS_MAX:
        yield f"- … and {len(items) - _ITEMS_MAX:,} more"


def _first_excerpt(report: Report) -> Iterable[str]:
    # The first failure whose log was kept, where the mail is read.
    failing = [s for s in report.stages if s.status is Status.FAIL]
    if found := next((f for s in failing for f in s.findings if f.counts and f.breach), None):
        yield from _explained(found, found.breach)
        return
    findings = [(f.excerpt, f.reproduce) for s in failing for f in s.findings if f.counts]
    cases = [(c.excerpt, "") for s in failing for c in s.cases if c.counts]
    for excerpt, reproduce in [*findings, *cases, *((s.excerpt, "") for s in failing)]:
        if excerpt:
            yield ""
            yield from _quoted(visible(capped_lines(excerpt, _EXCERPT_LINES, 200)))
            if reproduce:
                yield from ("", "Reproduce it with", *_quoted(one_line(reproduce, 900)))
            return


def _explained(finding: Finding, breach: Breach | None) -> Iterable[str]:
    # The first finding of the tests in full: the rule, what the kernel did, and the lines that did it.
    if breach is None:
        return
    yield from ("", "The first one in full")
    yield from _wrapped(
        f"Rule {breach.rule} says that {breach.text[:1].lower()}{breach.text[1:]}." if breach.text else ""
    )
    for source in breach.sources:
        yield from _wrapped(source, first="- ", rest="  ")
    yield from (
        "",
        *_quoted(f"expected  {one_line(breach.expected or breach.text)}\nseen      {one_line(breach.seen)}"),
    )
    for line in finding.lines:
        yield from _quoted(visible(f"{line.file}:{line.line}: {line.text.strip()}")[:200])
    if breach.record:
        yield from _quoted(visible(capped_lines(breach.record, _EXCERPT_LINES, 200)))
    if finding.reproducer:
        yield from ("", *_wrapped(f"{finding.reproducer} in the report's directory runs this case alone."))


def _quoted(text: str) -> list[str]:
    return [f"| {line}".rstrip() for line in text.split("\n")]


def _wrapped(text: str, first: str = "", rest: str = "") -> list[str]:
    # A word that a tool would read as the start of a trailer stays on the line of the word before it.
    glued = re.sub(r" (?=[\w#][^\s:]*:(?:\s|$))", "\0", one_line(text))
    lines = textwrap.wrap(
        glued,
        _WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace("\0", " ") for line in lines]


def _guarded(line: str) -> str:
    return f"| {line}" if _MEANT_FOR_TOOLS.match(line) else line
