"""Candidate mutants: each operator fires on a small C sample, and what must be left alone is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reviewbot.generate.csource import functions, parse_body
from reviewbot.generate.mutants import NOT_KERNEL, Found, Mutant, apply_mutant, find_mutants
from reviewbot.parse.added import added_lines


def _find(body: str, *, lines: range | None = None, head: str = "static int f(struct a *p, int n)") -> Found:
    text = f"{head}\n{{\n{body}\n}}\n"
    return find_mutants({"k/a.c": text.encode()}, {"k/a.c": lines or range(1, text.count("\n") + 1)})


def _changes(body: str) -> set[tuple[str, str, str]]:
    return {(m.operator, m.before, m.after) for m in _find(body).mutants}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("\tg(p);", ("drop statement", "g(p);", "")),
        ("\tkfree(p);", ("missing release", "kfree(p);", "")),
        ("\tmutex_unlock(&p->m);", ("missing release", "mutex_unlock(&p->m);", "")),
        ("\tif (p)\n\t\tg();", ("negate", "p", "!(p)")),
        ("\tif (p)\n\t\tg();", ("check dropped", "p", "1")),
        ("\tif (!p)\n\t\tg();", ("negate", "!p", "!!p")),
        ("\tif (p && n)\n\t\tg();", ("condition dropped", "p && n", "p")),
        ("\tif (p && n)\n\t\tg();", ("condition dropped", "p && n", "n")),
        ("\tif (p || n)\n\t\tg();", ("wrong operator", "p || n", "(p) && (n)")),
        ("\twhile (n < 5)\n\t\tn++;", ("off by one", "n < 5", "n <= 5")),
        ("\twhile (n < 5)\n\t\tn++;", ("negate", "n < 5", "n >= 5")),
        ("\tx = n + 2;", ("off by one", "2", "1")),
        ("\tlong a[2] = { 0, n };", ("field not set", "n", "0")),
        ("\tx = 0x10UL;", ("off by one", "0x10UL", "15UL")),
        ("\tx = n + 2;", ("wrong operator", "n + 2", "n - 2")),
        ("\tx = n * sizeof(*p);", ("wrong size", "n * sizeof(*p)", "n")),
        ("\tx = sizeof(*p);", ("wrong size", "sizeof(*p)", "sizeof(p)")),
        ("\tx = sizeof(struct s);", ("wrong size", "sizeof(struct s)", "sizeof(struct s) - 8")),
        ("\tx = n & A_MASK;", ("missing mask", "n & A_MASK", "n")),
        ("\tx = A_ONE | A_TWO;", ("flag dropped", "A_ONE | A_TWO", "A_ONE")),
        ("\tx = A_ONE | A_TWO;", ("wrong constant", "A_ONE", "A_TWO")),
        ("\tx = BUF_MAX;", ("off by one", "BUF_MAX", "BUF_MAX - 1")),
        ("\tg(p, n);", ("arguments swapped", "g(p, n)", "g(n, p)")),
        ("\tx = min_t(u64, n, 7);", ("limit dropped", "min_t(u64, n, 7)", "n")),
        ("\tx += n;", ("wrong operator", "x += n", "x -= n")),
        ("\tx |= n;", ("wrong operator", "x |= n", "x = n")),
        ("\tg(p, true);", ("wrong constant", "true", "false")),
        ("\tint x = p->n;", ("initial value", "p->n", "0")),
        ("\tbool x = n & A_MASK;", ("negate", "n & A_MASK", "!(n & A_MASK)")),
        ("\tstruct s x = { .a = n };", ("field not set", "n", "0")),
        ("\tif (n)\n\t\treturn 0;\n\tg();", ("drop return", "return 0;", "")),
        ("\treturn -EINVAL;", ("wrong errno", "-EINVAL", "-EPERM")),
        ("\treturn g(n);", ("return value", "g(n)", "0")),
        ("\tfor (;;) {\n\t\tbreak;\n\t}", ("drop break", "break;", "")),
        ("\tswitch (n) {\n\tcase 1:\n\t\tg(p);\n\t}", ("drop statement", "g(p);", "")),
        ("#ifdef CONFIG_X\n\tg(p);\n#endif", ("drop statement", "g(p);", "")),
    ],
)
def test_an_operator_fires(body: str, expected: tuple[str, str, str]) -> None:
    assert expected in _changes(body)


@pytest.mark.parametrize(
    "body",
    [
        "\t/* if (n < 5) g(p); */",
        "\tstatic_assert(sizeof(*p) == 8);",
        "\tBUILD_BUG_ON(A_ONE != 3);",
        "\tWARN_ON_ONCE(n < 5);",
        "\tlockdep_assert_held(&p->lock);",
        '\tpr_info("%d of 5\\n", n + 2);',
        "\tint x;",
        "\tu8 y[16];",
    ],
)
def test_what_does_nothing_is_left_alone(body: str) -> None:
    assert _find(body).mutants == ()


def test_strings_labels_and_constant_places_are_left_alone() -> None:
    body = '\tg("a < 5", offsetof(struct s, b));\n\tswitch (n) {\n\tcase A_ONE:\n\t\tbreak;\n\t}\n\treturn;'
    texts = {m.before for m in _find(body).mutants}
    assert not texts & {"5", "A_ONE", '"a < 5"', "offsetof(struct s, b)"}
    assert not any(m.operator == "drop return" for m in _find(body).mutants), "the end of a function returns anyway"


def test_a_static_initial_value_needs_a_build_of_its_own() -> None:
    own = {m.before: m.own_build for m in _find("\tstatic int x = 5;\n\tint y = 6;").mutants}
    assert own == {"5": True, "6": False}


def test_only_added_lines_count() -> None:
    found = _find("\tg(p);\n\th(p);\n\tx = 1 +\n\t\tn;", lines=range(4, 5))
    assert [(m.line, m.before) for m in found.mutants] == [(4, "h(p);")]
    # A condition of which one line was added: what stands on the other line alone is not the series'.
    texts = {m.before for m in _find("\tif (p &&\n\t    n < 3)\n\t\tg();", lines=range(4, 5)).mutants}
    assert "n < 3" in texts
    assert "p" not in texts


def test_a_provably_equivalent_mutant_says_why() -> None:
    reasons = {m.after: m.equivalent for m in _find("\tx = min_t(u64, n, 7);\n\tp = kcalloc(n, 8, g);").mutants}
    assert reasons["min_t(u64, 7, n)"]
    assert reasons["kcalloc(8, n, g)"]
    assert not reasons["kcalloc(n, g, 8)"]


def test_identifiers_are_stable_and_distinct() -> None:
    first = _find("\tg(p);\n\tg(p);\n\tif (n < 5)\n\t\tg(p);").mutants
    assert len({m.ident for m in first}) == len(first)
    assert [m.number for m in first] == list(range(1, len(first) + 1))
    moved = find_mutants(
        {
            "k/a.c": b"/* new */\n\nint x;\n\n"
            b"static int f(struct a *p, int n)\n{\n\tg(p);\n\tg(p);\n\tif (n < 5)\n\t\tg(p);\n}\n"
        },
        {"k/a.c": range(1, 20)},
    ).mutants
    assert [m.ident for m in moved] == [m.ident for m in first]


def test_functions_are_found_by_layout() -> None:
    text = (
        b"static struct a b = {\n\t.c = 1,\n};\n\n"
        b"SYSCALL_DEFINE2(perf_event_open, int, a,\n\t\tint, b)\n{\n\treturn 0;\n}\n"
        b"static inline int one(void) { return 1; }\n\n"
        b"struct b *\ntwo(int a) {\n\treturn a;\n}\n"
    )
    found = functions(text)
    assert [(f.name, f.first, f.last) for f in found] == [
        ("perf_event_open", 5, 9),
        ("one", 10, 10),
        ("two", 12, 15),
    ]
    assert all(text[f.start : f.start + 1] == b"{" and text[f.end - 1 : f.end] == b"}" for f in found)


def test_a_macro_of_several_lines_has_candidates() -> None:
    text = b"#define COPY(a, n)\t\\\ndo {\t\\\n\tif (n > \\\n\t    3)\t\\\n\t\tg(a);\t\\\n} while (0)\n#define ONE 1\n"
    found = find_mutants({"a.h": text}, {"a.h": range(1, 9)}).mutants
    changes = {(m.operator, m.before): m for m in found}
    assert {m.function for m in found} == {"COPY"}
    assert all(m.macro and not m.own_build for m in found)
    dropped = apply_mutant(text, changes["drop statement", "g(a);"])
    assert dropped.endswith(b"\t\t;\t\\\n} while (0)\n#define ONE 1\n")
    checked = apply_mutant(text, next(m for m in found if m.operator == "check dropped"))
    assert b"if ((1 \\\n))" in checked
    assert checked.count(b"\n") == text.count(b"\n")


def test_what_the_parser_cannot_read_is_said() -> None:
    found = _find("\tg(p);\n\tx = = 3;\n\th(p);")
    assert {"g(p);", "h(p);"} <= {m.before for m in found.mutants}
    assert "k/a.c:4" in found.unread


def test_a_macro_that_ends_a_function_is_read() -> None:
    found = _find("\tint orig = n;\n\tBODY(false, p, orig - n)")
    assert found.unread == ()
    changes = {(m.operator, m.before) for m in found.mutants}
    assert {("wrong constant", "false"), ("wrong operator", "orig - n")} <= changes
    operators = {operator for operator, _ in changes}
    assert not operators & {"drop statement", "arguments swapped"}, "the macro makes the return too"
    macro = b"#define BODY(n)\t\\\n{\t\\\n\tif (n)\t\\\n\t\treturn 1;\t\\\n\treturn n;\t\\\n}\n"
    drops = [m for m in find_mutants({"a.h": macro}, {"a.h": range(1, 7)}).mutants if m.operator == "drop return"]
    assert [m.before for m in drops] == ["return 1;"]


def test_a_loop_macro_does_not_hide_its_body() -> None:
    assert ("drop statement", "g(p);", "") in _changes("\tlist_for_each_entry(a, b, c) {\n\t\tg(p);\n\t}")


def test_applying_a_mutant_keeps_the_line_numbers() -> None:
    text = b"int f(int n)\n{\n\tg(n,\n\t  2);\n\treturn n;\n}\n"
    for mutant in find_mutants({"a.c": text}, {"a.c": range(1, 8)}).mutants:
        changed = apply_mutant(text, mutant)
        assert changed != text
        assert changed.count(b"\n") == text.count(b"\n")


def test_added_lines_of_a_diff() -> None:
    diff = (
        "diff --git a/k/a.c b/k/a.c\n--- a/k/a.c\n+++ b/k/a.c\n@@ -1,0 +2,2 @@ f\n+x\n+++ b/evil.c\n"
        "@@ -9 +11 @@\n-o\n+n\n"
        "--- a/include/uapi/linux/b.h\n+++ b/include/uapi/linux/b.h\n@@ -1,0 +2 @@\n+y\n"
        "--- a/doc.rst\n+++ b/doc.rst\n@@ -1,0 +2 @@\n+y\n--- a/gone.c\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n"
    )
    assert added_lines(diff, leave_out=NOT_KERNEL) == {"k/a.c": (2, 3, 11)}


@given(st.binary(max_size=300))
def test_any_bytes_are_read(text: bytes) -> None:
    source = b"int f(int a)\n{\n" + text + b"\n}\n"
    for mutant in find_mutants({"a.c": source}, {"a.c": range(1, 400)}).mutants:
        assert isinstance(mutant, Mutant)
        assert source[mutant.start : mutant.end] == mutant.before.encode("utf-8", "surrogateescape")


def test_deep_nesting_does_not_exhaust_the_stack() -> None:
    assert _find("\tx = " + "(" * 5000 + "n + 1" + ")" * 5000 + ";").mutants
    assert _find("\tif (n) {" * 2000 + "g(p);" + "}" * 2000).unread


def test_parse_body_maps_offsets_to_the_file() -> None:
    text = b"int a;\n\nint f(void)\n{\n\tg();\n}\n"
    (function,) = functions(text)
    node, shift = parse_body(text, function)
    assert text[node.start_byte + shift : node.end_byte + shift] == b"{\n\tg();\n}"
