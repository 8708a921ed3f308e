"""What a failing case of our own tests says about each failure: the rule, what was expected, what was seen (pure).

In: the diagnostics of one case, as selftests/lib/ktap.c prints them: "# FAIL: text", then "# rule: name", "# expected:
text" and "# seen: text" where the test knows them, then the record, decoded and as bytes. Out: one Breach a rule, the
first against each, in the order in which they were found. Other programs' diagnostics give none.
"""

from __future__ import annotations

from reviewbot.model import Breach

_FAIL = "# FAIL: "
_PARTS = ("rule", "expected", "seen")
_CUT = "[... "


def parse_breaches(diagnostics: str) -> tuple[Breach, ...]:
    """Return the first breach of each rule; no text makes it raise."""
    found: dict[str, Breach] = {}
    for block in f"\n{diagnostics}".split(f"\n{_FAIL}")[1:]:
        breach = _breach(block.split("\n"))
        found.setdefault(breach.rule, breach)
    # Where the middle was left out, a failure can have lost the line with its rule.
    named = {breach.seen for breach in found.values() if breach.rule}
    return tuple(breach for breach in found.values() if breach.rule or breach.seen not in named)


def is_whole(diagnostics: str) -> bool:
    """Tell whether nothing was left out of the middle: every rule that was broken is named."""
    return not any(line.startswith(_CUT) for line in diagnostics.split("\n"))


def _breach(lines: list[str]) -> Breach:
    parts = dict.fromkeys(_PARTS, "")
    at = 1
    while at < len(lines):
        name, colon, text = lines[at].removeprefix("# ").partition(": ")
        if not colon or name not in _PARTS or parts[name]:
            break
        parts[name] = text
        at += 1
    record = [line for line in lines[at:] if line.startswith("# ") and not line.startswith("# # ")]
    return Breach(
        rule=parts["rule"],
        seen=parts["seen"] or lines[0],
        expected=parts["expected"],
        record="\n".join(line[2:] for line in record),
    )
