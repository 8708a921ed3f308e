"""parse/kconfig.py, kconfig_expr.py and kconfig_tree.py."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reviewbot.errors import UsageError
from reviewbot.parse.kconfig import Missing, Wanted, missing, parse_config, parse_fragment
from reviewbot.parse.kconfig_expr import unmet_terms
from reviewbot.parse.kconfig_tree import read_tree, why_not, why_on

FRAGMENT = """\
# What the boot needs. This line explains nothing below, a blank line follows.

# The console that qemu gives us,
# and nothing else.
CONFIG_SERIAL_8250=y
# Keeps version strings equal.
CONFIG_LOCALVERSION="-rb"
# Slows every boot down.
# CONFIG_DEBUG_INFO is not set
"""


def test_fragment_with_reasons() -> None:
    assert parse_fragment(FRAGMENT) == (
        Wanted(symbol="SERIAL_8250", value="y", reason="The console that qemu gives us, and nothing else."),
        Wanted(symbol="LOCALVERSION", value='"-rb"', reason="Keeps version strings equal."),
        Wanted(symbol="DEBUG_INFO", value="n", reason="Slows every boot down."),
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("CONFIG_A=y\n", "boot:1: CONFIG_A has no reason"),
        ("# a\nCONFIG_A=y\nCONFIG_B=y\n", "boot:3: CONFIG_B has no reason"),
        ("# a heading\n\nCONFIG_A=y\n", "boot:3: CONFIG_A has no reason"),
        ("#\nCONFIG_A=y\n", "boot:2: CONFIG_A has no reason"),
        ("# a\nCONFIG_A=y\n# b\nCONFIG_A=n\n", "boot:4: CONFIG_A stands twice"),
        ("# a\nA=y\n", "boot:2: neither a comment nor a symbol: A=y"),
    ],
)
def test_a_bad_fragment_names_the_line(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=f"^{says}$"):
        parse_fragment(text, name="boot")


def test_missing_reads_back_what_was_wanted() -> None:
    config = parse_config('# CONFIG_OFF is not set\nCONFIG_A=y\nCONFIG_B=m\n\n# Menu\nCONFIG_S="x y"\n')
    assert config == {"OFF": "n", "A": "y", "B": "m", "S": '"x y"'}

    def want(symbol: str, value: str) -> Wanted:
        return Wanted(symbol=symbol, value=value, reason="r")

    met = [want("A", "y"), want("OFF", "n"), want("ABSENT", "n"), want("S", '"x y"')]
    assert missing(met, config) == ()
    unmet = [want("B", "y"), want("OFF", "y"), want("ABSENT", "y"), want("A", "n")]
    assert missing(unmet, config) == tuple(
        Missing(wanted=w, actual=actual) for w, actual in zip(unmet, ["m", "n", "n", "y"], strict=True)
    )


@pytest.mark.parametrize(
    ("expression", "terms"),
    [
        ("A", ()),
        ("A && B", ("B (not set)",)),
        ("B || A", ()),
        ("B || C", ("B (not set) or C (not set)",)),
        ("(B || A) && !M", ()),
        ("!A", ("!A (is y)",)),
        ("!(A && M)", ()),
        ("!(A || B)", ("!(A || B)",)),
        ("M = y", ("M=y (is m)",)),
        ("M != n && B", ("B (not set)",)),
        ('S = "x"', ()),
        ("N > 3 && N <= 0x10", ()),
        ("N > 99", ("N>99 (is 7)",)),
        ("$(cc-option,-mfoo $(shell,x)) && B", ("B (not set)",)),
        ('"$(ARCH)" = "x86"', ()),
        ("B if C", ()),
        ("B if A", ("!A (is y) or B (not set)",)),
        ("A &&", ("A && (not understood)",)),
        ("A ; B", ("A ; B (not understood)",)),
        ("(A", ("(A (not understood)",)),
        ("A B", ("A B (not understood)",)),
    ],
)
def test_expressions(expression: str, terms: tuple[str, ...]) -> None:
    assert unmet_terms(expression, {"A": "y", "M": "m", "S": '"x"', "N": "7"}) == terms


@given(st.text(alphabet='AB&|!()= "$<>', max_size=60))
def test_any_expression_is_answered(expression: str) -> None:
    unmet_terms(expression, {"A": "y"})


def test_deep_nesting_is_refused() -> None:
    (term,) = unmet_terms("(" * 5000 + "A" + ")" * 5000, {})
    assert term.endswith("(not understood)")


FILES = {
    "Kconfig": """\
mainmenu "Test"
source "arch/$(SRCARCH)/Kconfig"
source "lib/Kconfig"
source "Kconfig"
""",
    "arch/x86/Kconfig": """\
config X86
    def_bool y
    select HIDDEN if \\
        SLOW
""",
    "lib/Kconfig": """\
menuconfig DEBUG
    bool "Debug"
    help
      Text with a line that is no statement:

        depends on NOTHING

      config FAKE

if DEBUG

menu "Checkers"
    depends on MMU

config KASAN
    bool "KASAN" if !EASY
    depends on SLUB && !KCSAN # one at a time
    select STACKDEPOT

endmenu

config HIDDEN
    bool
endif # DEBUG

config TWICE
    bool "one"
    depends on NEVER
config TWICE
    bool "two"
    depends on DEBUG
""",
}


def test_tree() -> None:
    tree = read_tree(FILES.get)
    assert set(tree.definitions) == {"X86", "DEBUG", "KASAN", "HIDDEN", "TWICE"}
    assert why_not("KASAN", tree, {"DEBUG": "y", "KCSAN": "y"}) == (
        "depends on MMU (not set)",
        "depends on SLUB (not set)",
        "depends on !KCSAN (is y)",
    )
    assert why_not("KASAN", tree, {"DEBUG": "y", "MMU": "y", "SLUB": "y"}) == ()
    assert why_not("KASAN", tree, {"MMU": "y", "SLUB": "y", "EASY": "y"}) == (
        "depends on DEBUG (not set)",
        "depends on !EASY (is y)",
    )
    assert why_not("HIDDEN", tree, {"DEBUG": "y"}) == ("HIDDEN has no prompt; it is selected by X86",)
    assert why_not("TWICE", tree, {"DEBUG": "y"}) == ()
    assert why_not("FAKE", tree, {}) == ("no Kconfig file of this tree defines FAKE",)


@given(st.lists(st.sampled_from([*"".join(FILES.values()).splitlines(), "endmenu", "choice", "  help", 'source "x"'])))
def test_any_order_of_lines_is_read(lines: list[str]) -> None:
    read_tree(lambda path: "\n".join(lines) if path in ("Kconfig", "x") else None)


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    parse_config(text)
    with contextlib.suppress(UsageError):
        assert parse_fragment(text) == parse_fragment(f"{text}\n")


def test_what_holds_a_symbol_on() -> None:
    text = (
        'config A\n\tbool "a"\nconfig HIDDEN\n\tbool\n'
        "config X86\n\tdef_bool y\n\tselect B\n\tselect C if A\n\timply A\n"
        'config B\n\tbool "b"\nconfig C\n\tbool "c"\n'
    )
    tree = read_tree({"Kconfig": text}.get)
    assert why_on("A", tree, {"X86": "y", "A": "y"}) == ""
    assert why_on("B", tree, {"X86": "y"}) == "selected by X86"
    assert why_on("B", tree, {}) == ""
    assert why_on("C", tree, {"X86": "y", "A": "y"}) == "selected by X86"
    assert why_on("C", tree, {"X86": "y"}) == ""
    assert why_on("HIDDEN", tree, {"HIDDEN": "y"}) == "it has no prompt"
    assert why_on("NONE", tree, {"NONE": "y"}) == "no Kconfig file of this tree defines it"
