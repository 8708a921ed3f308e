"""The lines of a series in a tree that has had it for years."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reviewbot.generate.evolved import evolved_lines


def test_lines_of_a_series_that_the_tree_has() -> None:
    diff = (
        "--- a/k/a.c\n+++ b/k/a.c\n@@ -1 +1,4 @@\n-x\n+\tlong_enough = first(a);\n+}\n"
        "+\tnever_there = 1;\n+\tsecond_one(b, c);\n"
    )
    text = (
        b"int f(void)\n{\n\tlong_enough = first(a);\n}\n\nint g(void)\n{\n\tlong_enough  =  first(a);\n\tevolved();\n"
        b"\tsecond_one(b, c);\n\tother();\n}\n\nint h(void)\n{\n}\n"
    )
    found = evolved_lines([diff], {"k/a.c": text, "k/b.c": b""})
    assert found == {"k/a.c": frozenset({3, 4, 8, 9, 10})}
    assert evolved_lines([diff.replace("k/a.c", "tools/a.c")], {"tools/a.c": text}) == {}


DIFF = """\
--- a/k/a.h
+++ b/k/a.h
@@ -1,4 +1,12 @@ struct other {
+struct frag {
+\tstruct frag *next;
+};
+
 struct record {
+\tstruct frag frag;
 \tint size;
 };
+static inline bool is_last(const struct frag *frag)
+{
+}
+#define BODY(x)\t\\
--- a/k/a.c
+++ b/k/a.c
@@ -1,4 +1,5 @@ void put(struct handle *handle)
 \tif (type & PERF_SAMPLE_RAW) {
+\t\tnever_there(handle);
 \t}
 \tif (type & PERF_SAMPLE_OTHER) {
"""
HEADER = """\
static inline bool is_last(const struct frag *frag)
{
	return frag->pad < 8;
}
#define BODY(x)	\\
{	\\
	len -= x;	\\
}
static inline void save(struct data *data, struct record *raw)
{
	int size = 0, other = 0;

	if (data->flags & PERF_SAMPLE_RAW)
		return;
	do {
		size += raw->frag.size;
		if (is_last(&raw->frag))
			break;
	} while (1);
	data->dyn += round(size);
	data->count++;
	other = 3;
	note(other);
}
"""
SOURCE = """\
void put(struct handle *handle)
{
	first(handle);
	if (type & PERF_SAMPLE_RAW) {
		struct record *raw = data->raw;

		if (raw)
			copy(handle);
		else
			skip(handle);
	}
	if (type & PERF_SAMPLE_OTHER)
		second(handle);
	if (type & PERF_SAMPLE_RAW)
		third(handle);
}
int elsewhere(int n)
{
	struct record raw = { .size = n };
	int ret;

	if (type & PERF_SAMPLE_RAW)
		ret = -1;
	ret = save(data, &raw);
	n = 0;
	return ret;
}
int unrelated(int n)
{
	if (type & PERF_SAMPLE_RAW)
		return n;
	return 0;
}
"""


def _lines(text: str, found: frozenset[int]) -> list[str]:
    return [text.split("\n")[n - 1].strip().rstrip("\t\\ ") for n in sorted(found)]


def test_code_that_moved_on_is_found() -> None:
    found = evolved_lines([DIFF], {"k/a.h": HEADER.encode(), "k/a.c": SOURCE.encode()})
    header = _lines(HEADER, found["k/a.h"])
    assert header[:4] == ["static inline bool is_last(const struct frag *frag)", "{", "return frag->pad < 8;", "}"]
    assert "len -= x;" in header, "a macro that the series defines"
    assert header[8:] == [
        "int size = 0, other = 0;",
        "if (data->flags & PERF_SAMPLE_RAW)",
        "return;",
        "size += raw->frag.size;",
        "if (is_last(&raw->frag))",
        "break;",
        "} while (1);",
        "data->dyn += round(size);",
    ]
    assert _lines(SOURCE, found["k/a.c"]) == [
        "if (type & PERF_SAMPLE_RAW) {",
        "struct record *raw = data->raw;",
        "if (raw)",
        "copy(handle);",
        "skip(handle);",
        "if (type & PERF_SAMPLE_RAW)",
        "third(handle);",
        "struct record raw = { .size = n };",
        "int ret;",
        "ret = save(data, &raw);",
        "return ret;",
    ]


@pytest.mark.parametrize("word", ["struct record", "struct frag"])
def test_a_series_without_structs_is_known_by_its_text(word: str) -> None:
    diff = DIFF.replace(word, "struct nothing")
    assert evolved_lines([diff], {"k/b.c": SOURCE.encode()}) == {}


@given(st.lists(st.sampled_from([*DIFF.split("\n"), *SOURCE.split("\n"), "{", "}", "+++ b/k/a.c", "@@ -1 +1 @@ f("])))
def test_any_text_gives_lines_of_the_file(lines: list[str]) -> None:
    text = "\n".join(lines)
    for numbers in evolved_lines([text], {"k/a.c": text.encode()}).values():
        assert numbers
        assert min(numbers) >= 1
        assert max(numbers) <= text.count("\n") + 1
