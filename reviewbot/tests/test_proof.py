"""generate.proof: specs that say what proves a value, a user's own specs, and bits that two trees use differently."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from reviewbot.errors import UsageError
from reviewbot.generate.decoder import decoder_context
from reviewbot.generate.expression import SpecError
from reviewbot.generate.kselftest import load_specs, programs, render_kselftest
from reviewbot.generate.rules import rules_for
from reviewbot.generate.scope import Scope, ScopedType, find_scope
from reviewbot.generate.skeleton import provisional_spec, render_spec
from reviewbot.generate.spec_set import build_specs, settle
from reviewbot.generate.spec_toml import parse_sample
from reviewbot.tests.test_kselftest import ALL, with_new_names, write
from reviewbot.tools.specs import read_specs

NEWTYPE = Path(__file__).parent / "data" / "newtype"
OWN = (NEWTYPE / "task_time.toml").read_text()
SPECS = read_specs([NEWTYPE])
GOOD = (
    '# A word.\nname = "PERF_SAMPLE_NEW"\nbit = 30\nplace = 900\n'
    'layout = [{ name = "word", type = "u64" }, { name = "rest", type = "bytes", count = "word" }]\n'
    '[facts]\nage = { file = "/proc/uptime", word = 1 }\n'
    '[[proof]]\nfield = "word"\nequals = "before.age"\n'
)


def known_header(text: str, name: str) -> str:
    """Return what the test's patch shows of a header; each hunk begins in a comment."""
    hunks = re.search(rf"^\+\+\+ b/{re.escape(name)}\n(.*?)(?=^diff |^-- )", text, re.M | re.S)
    assert hunks
    shown = [("/*" + line if line.startswith("@@") else line) for line in hunks[1].split("\n")]
    return "\n".join(line[1:] if line[0] in " +" else "/*" for line in shown if line and line[0] in " +/")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (('field = "word"', 'field = "rest"'), "no scalar"),
        (('field = "word"', 'field = "other"'), "no scalar"),
        (('equals = "before.age"\n', ""), "says nothing"),
        (('equals = "before.age"', "equals = 3"), "in quotes"),
        (('equals = "before.age"', 'equals = "0"\nrises = "yes"'), "no scalar"),
        (('equals = "before.age"', 'same = "0"'), "same"),
        (("/proc/uptime", "/etc/passwd"), "/proc or /sys"),
        (('"/proc/uptime"', '"/proc/\\"; exit(1); \\""'), "/proc or /sys"),
        (("word = 1", "word = 0"), "word's number"),
        (("word = 1", 'word = "1"'), "word's number"),
        (("word = 1", 'key = "\\n"'), "word's number"),
        (('file = "/proc/uptime", word = 1', 'clock = "getpid()"'), "has a clock"),
        (('file = "/proc/uptime", word = 1', 'clok = "CLOCK_REALTIME"'), "clok"),
    ],
)
def test_a_wrong_proof_is_refused(change: tuple[str, str], says: str) -> None:
    assert change[0] in GOOD
    with pytest.raises(SpecError, match=re.escape(says)):
        build_specs({"new.toml": GOOD.replace(*change)}, {}, "")


@pytest.mark.parametrize("text", ["before.other", "task.name", "OTHER.word", "word; exit(1)", "system.word"])
def test_a_proof_names_only_what_is_known(text: str) -> None:
    specs = build_specs({"new.toml": GOOD.replace("before.age", text)}, {}, "")
    with pytest.raises(SpecError):
        decoder_context(specs)


def test_a_proof_by_another_type_holds_where_the_sample_has_it() -> None:
    text = GOOD.replace("before.age", "IP.ip").replace('equals = "IP', 'when = "attr.freq"\nequals = "IP')
    scope = scope_of("PERF_SAMPLE_NEW", 30)
    decoder = render_kselftest(scope, load_specs({"new.toml": text + '[rule]\ntext = "x"\nfield = "IP"\n'}))["decode.c"]
    assert (
        "if ((sample->bits & (1ULL << 0)) && (attr->freq))\n\t\tprove_equal(expect, sample, RULE_SAMPLE_NEW" in decoder
    )


def scope_of(name: str, bit: int) -> Scope:
    types = (ScopedType(name=name, value=1 << bit, new=True, why="new"),)
    old = tuple(t for t in ALL if not t[0].endswith("BUILD_ID_OFFSET"))
    return Scope(types=types, all_types=(*old, (name, 1 << bit)))


def test_a_fact_has_one_meaning() -> None:
    other = GOOD.replace("_NEW", "_OTHER").replace("30", "31").replace("900", "901").replace("word = 1", "word = 2", 1)
    with pytest.raises(SpecError, match="age is used twice"):
        build_specs({"a.toml": GOOD, "b.toml": other}, {}, "")


def test_a_wrong_value_breaks_a_rule_that_is_described() -> None:
    assert rules_for(SPECS)["sample.task-time"].text.startswith("TASK_TIME holds")
    with pytest.raises(SpecError, match="describe it in a table"):
        rules_for(load_specs({"new.toml": GOOD}))
    with pytest.raises(SpecError, match="has a source"):
        rules_for(load_specs({"new.toml": GOOD + '[rule]\ntext = "x"\n'}))


def test_an_own_spec_replaces_the_packaged_one() -> None:
    text = (
        '# Mine.\nname = "PERF_SAMPLE_TIME"\nbit = 2\nplace = 40\nsample_id = 20\n'
        'layout = [{ name = "time", type = "u64" }]\n'
    )
    spec = load_specs({"time.toml": text}).sample("PERF_SAMPLE_TIME")
    assert spec
    assert (spec.summary, spec.proofs) == ("Mine.", ())
    record = '# Mine.\nname = "PERF_RECORD_LOST"\nvalue = 2\nlayout = []\n'
    assert [r.summary for r in load_specs({"lost.toml": record}).records if r.value == 2] == ["Mine."]


def test_the_header_decides_which_type_a_bit_is() -> None:
    header = {n: v for n, v in ALL if not n.endswith("BUILD_ID_OFFSET")} | {"PERF_SAMPLE_TASK_TIME": 1 << 25}
    specs = settle(SPECS, header)
    bits = {s.name: s.bit for s in specs.samples}
    assert bits["PERF_SAMPLE_TASK_TIME"] == 25
    assert bits["PERF_SAMPLE_BUILD_ID_OFFSET"] > 26
    assert len(set(bits.values())) == len(bits)
    moved = settle(SPECS, header | {"PERF_SAMPLE_TASK_TIME": 1 << 40})
    assert {s.bit for s in moved.samples if s.name == "PERF_SAMPLE_TASK_TIME"} == {40}


def test_directories_of_specs_are_read_whole_or_refused(tmp_path: Path) -> None:
    assert SPECS.sample("PERF_SAMPLE_TASK_TIME")
    with pytest.raises(UsageError, match="holds no"):
        read_specs([tmp_path])
    (tmp_path / "a.toml").write_text("name = 1")
    with pytest.raises(UsageError, match=r"a\.toml: the first line"):
        read_specs([tmp_path])
    (tmp_path / "a.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="--specs"):
        read_specs([tmp_path])
    (tmp_path / "a.toml").write_text(OWN)
    with pytest.raises(UsageError, match="name used twice"):
        read_specs([NEWTYPE, tmp_path])


def test_the_skeleton_of_the_new_type_has_the_layout_of_its_spec() -> None:
    """What the report shows where there is no spec, once its place is filled in, is the spec without its proofs."""
    header = known_header((NEWTYPE / "right.patch").read_text(), "include/uapi/linux/perf_event.h")
    skeleton = parse_sample(render_spec(provisional_spec(header, "PERF_SAMPLE_TASK_TIME", 1 << 25)))
    spec = SPECS.sample("PERF_SAMPLE_TASK_TIME")
    assert spec
    assert (skeleton.name, skeleton.bit, skeleton.layout) == (spec.name, spec.bit, spec.layout)
    assert skeleton.place > max(s.place for s in load_specs().samples)


def test_without_its_spec_the_type_is_decoded_from_the_comment_and_not_verified() -> None:
    header = "enum perf_event_sample_format { PERF_SAMPLE_IP = 1 << 0, PERF_SAMPLE_TASK_TIME = 1 << 25, };\n"
    header += known_header((NEWTYPE / "right.patch").read_text(), "include/uapi/linux/perf_event.h")
    scope = find_scope("enum perf_event_sample_format { PERF_SAMPLE_IP = 1 << 0, };", header, "", load_specs())
    assert scope.unverified == ("PERF_SAMPLE_TASK_TIME",)
    decoder = render_kselftest(scope)["decode.c"]
    assert "&s->task_time.runtime, sizeof(s->task_time.runtime)" in decoder
    assert "prove_task_time" not in decoder
    assert decoder.count(".bit = (1ULL << 25)") == 1


TRY = """
#include "ktap.h"
#include "oracle.h"
#include "work.h"
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct expect expect;
static struct event event;
static __u64 record[8] = { [1] = 1 };

static void check(__u64 start_time, __u64 runtime)
{
	struct sample sample = { .header = (void *)record, .bits = 1ULL << 25 };

	sample.task_time.start_time = start_time;
	sample.task_time.runtime = runtime;
	check_sample(&expect, &sample);
}

static __u64 start, run;

/* A sample behind a right one, in a process of its own. */
static void say(const char *what, __u64 start_time, __u64 runtime)
{
	printf("%s\\n", what);
	fflush(stdout);
	if (!fork()) {
		check(start, run);
		check(start_time, runtime);
		fflush(stdout);
		_exit(0);
	}
	wait(NULL);
}

int main(void)
{
	expect_begin(&expect, &event, SOURCE_FAULTS);
	work(SOURCE_CLOCK, 1);
	expect_end(&expect);
	start = expect.before[2] * 10000000 + 77;
	run = (expect.before[1] + expect.after[1]) / 2;
	say("right", start, run);
	say("swapped", run, start);
	say("earlier", start, run - 1);
	say("not yet", start, expect.after[1] + 1);
	say("left over", 0, run);
	say("tick before", start - 10000000, run);
	expect.before[1] = FACT_UNKNOWN;
	say("unknown", start, run);
	return 0;
}
"""


@pytest.mark.skipif(not shutil.which("gcc"), reason="no compiler")
def test_what_the_spec_says_is_proved_in_a_program(tmp_path: Path) -> None:
    scope = scope_of("PERF_SAMPLE_TASK_TIME", 25)
    where = write(render_kselftest(scope, SPECS), tmp_path)
    (where / "linux").mkdir()
    header = Path("/usr/include/linux/perf_event.h").read_text(encoding="utf-8")
    header = re.sub(r"^#define PERF_SAMPLE_\w*BUILD_ID.*\n", "", with_new_names(header), flags=re.M)
    (where / "linux" / "perf_event.h").write_text(header, encoding="utf-8")
    (where / "try.c").write_text(TRY, encoding="utf-8")
    sources = [str(p) for p in where.glob("*.c") if p.stem not in programs(scope, SPECS)]
    flags = ["-std=gnu11", "-D_GNU_SOURCE", "-isystem", str(where), "-pthread"]
    subprocess.run(["gcc", *flags, "-o", str(where / "try"), *sources], check=True)
    said = subprocess.run([str(where / "try")], capture_output=True, text=True, check=True).stdout
    parts = re.split(r"^(\w[\w ]*)\n", said, flags=re.M)[1:]
    answers = {
        what: re.findall(r"^# FAIL: (.*)", text, re.M) for what, text in zip(parts[::2], parts[1::2], strict=True)
    }
    wrong = {
        what: [(a.split()[0], re.findall("least|most|before$|read$", a)[-1]) for a in answers[what]] for what in answers
    }
    assert wrong == {
        "right": [],
        "swapped": [("TASK_TIME.start_time", "least"), ("TASK_TIME.runtime", "most")],
        "earlier": [("TASK_TIME.runtime", "before")],
        "not yet": [("TASK_TIME.runtime", "most")],
        "left over": [("TASK_TIME.start_time", "least")],
        "tick before": [("TASK_TIME.start_time", "least")],
        "unknown": [("before.thread_cputime", "read"), ("before.thread_cputime", "read")],
    }
