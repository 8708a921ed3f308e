"""Which Kconfig symbols decide about added lines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reviewbot.parse.conditions import Flip, find_flips

ON = {"BPF": "y", "PERF": "y", "UNWIND": "y", "MODULAR": "m", "CPUS": "8"}


def flips(text: str, config: dict[str, str] = ON, added: str = "+") -> dict[str, Flip]:
    """Return the flips of a text whose added lines begin with the mark."""
    lines = text.strip("\n").split("\n")
    numbers = [n for n, line in enumerate(lines, 1) if line.startswith(added)]
    plain = "\n".join(line.removeprefix("+") for line in lines)
    return {f.symbol: f for f in find_flips({"x.h": (plain, numbers)}, config)}


STUB = """
#ifndef X_H
#define X_H
+#if defined(CONFIG_BPF) && defined(CONFIG_PERF)
+void resolve(int nr);
+#else
+static inline void resolve(int nr)
+{
+}
+#endif
#endif /* X_H */
"""


def test_a_stub_is_not_compiled_now() -> None:
    found = flips(STUB)
    assert set(found) == {"BPF", "PERF"}
    bpf = found["BPF"]
    assert (bpf.turned, bpf.gained, bpf.lost, bpf.enclosing) == ("CONFIG_BPF=n", 3, 1, False)
    assert (bpf.file, bpf.line) == ("x.h", 4)


def test_with_the_symbol_off_the_declaration_is_not_compiled() -> None:
    found = flips(STUB, {"PERF": "y"})
    assert (found["BPF"].value, found["BPF"].gained, found["BPF"].lost) == ("y", 1, 3)
    assert "PERF" not in found  # it changes nothing as long as BPF is off


def test_an_expression_in_code_names_a_symbol() -> None:
    found = flips("int f(void)\n{\n+\treturn IS_ENABLED(CONFIG_UNWIND) && IS_REACHABLE(CONFIG_MODULAR);\n}\n")
    assert {(f.symbol, f.named, f.gained, f.lost) for f in found.values()} == {
        ("UNWIND", 1, 0, 0),
        ("MODULAR", 1, 0, 0),
    }


def test_an_older_condition_comes_last() -> None:
    found = find_flips(
        {"a.c": ("#ifdef CONFIG_PERF\nint a;\n#endif\n#ifndef CONFIG_BPF\nint b;\n#endif\n", [2, 4, 5, 6])}, ON
    )
    assert [(f.symbol, f.enclosing) for f in found] == [("BPF", False), ("PERF", True)]


@pytest.mark.parametrize(
    ("condition", "gained", "lost"),
    [
        ("#ifdef CONFIG_BPF", 0, 1),
        ("#ifndef CONFIG_BPF", 1, 0),
        ("#if !defined(CONFIG_BPF)", 1, 0),
        ("#if IS_ENABLED(CONFIG_BPF) /* why */ && !defined(CONFIG_NONE)", 0, 1),
        ("#if defined CONFIG_BPF || \\\n defined(CONFIG_PERF)", 0, 0),
        ("#if defined(CONFIG_BPF) && UNKNOWN(1, (2)) > 3", 0, 1),
        ("#if !defined(CONFIG_BPF) || __GNUC__ >= 12", 0, 0),
        ("#if IS_MODULE(CONFIG_BPF)", 0, 0),
        ("#if CONFIG_CPUS > 4 && CONFIG_BPF", 0, 1),
        ("#if 0 && defined(CONFIG_BPF)", 0, 0),
        ("#if (!(defined(CONFIG_BPF)))", 1, 0),
    ],
)
def test_conditions(condition: str, gained: int, lost: int) -> None:
    found = flips(f"{condition}\n+int x;\n#endif\n").get("BPF")
    assert (found.gained, found.lost) == (gained, lost) if found else not (gained or lost)


def test_branches_exclude_each_other() -> None:
    text = "#ifdef CONFIG_BPF\nint a;\n#elif defined(CONFIG_PERF)\n+int b;\n#else\n+int c;\n#endif\n"
    found = flips(text)
    assert (found["BPF"].gained, found["BPF"].lost) == (1, 0)
    assert "PERF" not in found
    assert flips(text, {"PERF": "y"})["PERF"].gained == 1


def test_a_module_has_a_name_of_its_own() -> None:
    found = flips("#ifdef CONFIG_MODULAR_MODULE\n+int a;\n#endif\n")
    assert (found["MODULAR"].value, found["MODULAR"].lost) == ("n", 1)


def test_numbers_and_what_stands_in_comments_are_no_symbols() -> None:
    text = "+#if CONFIG_CPUS > 4 /* CONFIG_BPF */\n+int a; /* #ifdef CONFIG_PERF */\n+#endif\n"
    assert flips(text) == {}
    assert flips("+\tif (IS_ENABLED(CONFIG_CPUS))\n") == {}


def test_deep_nesting_takes_no_time() -> None:
    deep = "(" * 100_000
    assert flips(f"#if {deep}defined(CONFIG_BPF)\n+int a;\n#endif\n") == {}
    assert flips("#ifdef CONFIG_BPF\n" * 3000 + "+int a;\n")["BPF"].lost == 1


WORDS = [
    "#if",
    "#ifdef",
    "#ifndef",
    "#else",
    "#elif",
    "#endif",
    "defined",
    "(",
    ")",
    "!",
    "&&",
    "||",
    "CONFIG_BPF",
    "\\",
]


@given(st.lists(st.lists(st.sampled_from([*WORDS, "CONFIG_PERF", "IS_ENABLED", "0", "int x;", "/*"]), max_size=9)))
def test_any_directives_are_read(lines: list[list[str]]) -> None:
    text = "\n".join(" ".join(line) for line in lines)
    for flip in find_flips({"x.c": (text, range(1, len(lines) + 1))}, ON):
        assert flip.gained or flip.lost or flip.named
        assert flip.symbol in ("BPF", "PERF")
