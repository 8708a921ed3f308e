"""Many mutants in one program: compiled with the machine's compiler, each is chosen at run time by its number."""

import subprocess
from pathlib import Path

import pytest

from reviewbot.generate.mutants import Mutant, apply_mutant, find_mutants
from reviewbot.generate.schemata import DECLARATION, blamed, definition, reached, rewrite

SAMPLE = b"""\
struct pair { int a; int b; };

static int total(struct pair *p, int n)
{
	int sum = 0;
	struct pair extra = { .a = n, .b = 2 };

	for (int i = 0; i < n; i++) {
		if (p[i].a > 3 && p[i].b)
			sum += p[i].a & 6;
		else
			sum--;
		switch (p[i].b) {
		case 1:
			sum += 100;
			break;
		default:
			sum += 1000;
		}
	}
	if (!p)
		return -1;
	do {
		sum += extra.a * 10;
	} while (sum < 20);
	return sum | (n ? 1 : extra.b);
}

int printf(const char *format, ...);

int main(int argc, char **argv)
{
	struct pair p[5] = { { 1, 1 }, { 4, 0 }, { 7, 1 }, { 5, 2 }, { 9, 3 } };

	(void)argc;
	start(argv);
	printf("%d\\n", total(p, 4));
	return 0;
}
"""
START = """
static int chosen, seen[1000];
int reviewbot_at(int number) { seen[number] = 1; return chosen == number; }
int atoi(const char *s);
static void start(char **argv) { chosen = argv[1] ? atoi(argv[1]) : 0; }
"""
ADDED = range(3, 27)


def _compile(tmp_path: Path, name: str, text: bytes) -> Path:
    source, program = tmp_path / f"{name}.c", tmp_path / name
    source.write_bytes(text)
    subprocess.run(["gcc", "-w", "-o", program, source], check=True, timeout=60)
    return program


def _output(program: Path, *arguments: str) -> str:
    done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=5, check=False)
    return f"{done.returncode}: {done.stdout}"


@pytest.fixture(scope="module")
def mutants() -> tuple[Mutant, ...]:
    return find_mutants({"a.c": SAMPLE}, {"a.c": ADDED}).mutants


def test_the_schema_behaves_as_the_original_and_as_each_mutant(tmp_path: Path, mutants: tuple[Mutant, ...]) -> None:
    start = START.replace("\n", " ").encode()
    schema = rewrite(SAMPLE, mutants)
    program = _compile(tmp_path, "schema", start + schema.text)
    plain = _output(_compile(tmp_path, "plain", start + SAMPLE))
    assert _output(program, "0") == plain
    # Not those that loop for ever or read beyond the array: any output is right for them.
    defined = [m for m in mutants if m.operator != "negate" and "i <" not in m.before and m.before != "p[i].b"]
    picked = defined[::2]
    assert len(picked) > 15
    changed = 0
    for mutant in picked:
        alone = _output(_compile(tmp_path, "alone", start + apply_mutant(SAMPLE, mutant)))
        assert _output(program, str(mutant.number)) == alone, mutant.title
        changed += alone != plain
    assert changed > len(picked) / 2


MACRO = b"""\
#define BODY(add, copy, ...)	\\
{	\\
	int done = 0;	\\
	do {	\\
		done += copy(__VA_ARGS__);	\\
		if (add &&	\\
			done < 20)	\\
			done <<= 1;	\\
		n -= 3;	\\
	} while (n > 0 && done < 50);	\\
	return done;	\\
}
static int plus(int a, int b) { return a + b; }
static int one(int n)
BODY(1, plus, n, 2)

static int two(int n)
{
	int first = n;
	BODY(0, plus, n, first - 1)
}
int printf(const char *format, ...);
int main(int argc, char **argv)
{
	(void)argc;
	start(argv);
	printf("%d %d\\n", one(13), two(11));
	return 0;
}
"""


def test_a_macro_of_several_lines_holds_mutants(tmp_path: Path) -> None:
    start = START.encode()
    found = find_mutants({"a.h": MACRO}, {"a.h": (*range(1, 12), *range(17, 21))}).mutants
    fit = [m for m in found if m.operator not in {"arguments swapped", "drop statement", "drop return"}]
    assert {m.function for m in fit} == {"BODY", "two"}
    program = _compile(tmp_path, "schema", start + rewrite(MACRO, fit).text)
    assert _output(program, "0") == _output(_compile(tmp_path, "plain", start + MACRO))
    for mutant in fit:
        alone = _compile(tmp_path, "alone", start + apply_mutant(MACRO, mutant))
        assert _output(program, str(mutant.number)) == _output(alone), mutant.title


def test_nothing_to_mutate_leaves_the_text(mutants: tuple[Mutant, ...]) -> None:
    assert rewrite(SAMPLE, ()).text == DECLARATION.encode() + SAMPLE
    assert len(mutants) > 40


def test_a_complaint_names_the_mutants_of_its_line(mutants: tuple[Mutant, ...]) -> None:
    schema = rewrite(SAMPLE, mutants)
    lines = schema.text.split(b"\n")
    assert len(lines) == len(schema.owners)
    for mutant in mutants:
        if mutant.after and "\n" not in mutant.after:
            own = [n for n, owners in enumerate(schema.owners, 1) if owners == (mutant.number,)]
            assert any(mutant.after.encode() in lines[n - 1] for n in own), mutant.title
            assert blamed(schema, own) == {mutant.number}
    assert blamed(schema, [1, 0, 10**6]) == frozenset()


def test_the_hits_name_what_was_reached() -> None:
    assert reached("0000\n") == frozenset()
    assert reached("a2\n") == {1, 5, 7}
    assert reached("not a number") == frozenset()
    assert reached("") == frozenset()


def test_the_definition_writes_hits_that_can_be_read(tmp_path: Path) -> None:
    # The kernel's own code with stand-ins for what surrounds it.
    text = definition(9)
    body = "\n".join(line for line in text.split("\n") if not line.startswith(("#include", "core_param", "__module_")))
    program = (
        "#define noinstr\n#define NULL 0\nstruct kernel_param { int x; };\n"
        "struct kernel_param_ops { int (*get)(char *, const struct kernel_param *); };\n"
        + body
        + "\nint puts(const char *);\nint main(void) { char b[4096] = { 0 }; reviewbot_mutant = 9;\n"
        "if (reviewbot_at(1) || reviewbot_at(6) || !reviewbot_at(9)) return 1;\n"
        "reviewbot_hits_ops.get(b, NULL); puts(b); return 0; }\n"
    )
    assert _output(_compile(tmp_path, "hits", program.encode())).startswith("0: ")
    done = subprocess.run([tmp_path / "hits"], capture_output=True, text=True, timeout=5, check=True)
    assert reached(done.stdout) == {1, 6, 9}
    with pytest.raises(ValueError, match="do not fit"):
        definition(20000)
