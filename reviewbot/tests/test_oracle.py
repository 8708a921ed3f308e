"""selftests/lib: the oracles let what is right pass and name what is wrong, without a kernel that knows the types."""

import shutil
import subprocess
from pathlib import Path

import pytest

from reviewbot.generate.kselftest import programs, render_kselftest
from reviewbot.tests.test_kselftest import NEW, SPECS, with_new_names, write

# The program looks at its own mappings: what the kernel would say of its own main() is known.
TRY = """
#include "ktap.h"
#include "oracle.h"
#include <stdio.h>
#include <string.h>

static struct expect expect;
static struct event event;
static const struct mapping *map;

static struct build_id_offset right(__u64 address)
{
	struct build_id_offset bid = { .size = map->id_size, .offset = address - map->start + map->offset };

	memcpy(bid.build_id, map->id, map->id_size);
	return bid;
}

static void say(const char *what, struct build_id_offset bid, __u64 address)
{
	const char *problem = check_build_id(&expect, &bid, address);

	printf("%s: %s\\n", what, problem ? problem : "right");
}

int main(void)
{
	__u64 address = (__u64)main;
	struct build_id_offset bid, none = { .offset = address };

	expect.event = &event;
	maps_read(&expect.maps);
	map = maps_find(&expect.maps, address);
	say("resolved", right(address), address);
	say("resolved, address unknown", right(address), 0);
	say("unresolved", none, address);
	expect.must_resolve = true;
	say("unresolved, but sure", none, address);
	expect.must_resolve = false;
	bid = right(address);
	bid.offset++;
	say("offset", bid, address);
	bid.offset = address;
	say("address as offset", bid, address);
	say("address as offset, unknown", bid, 0);
	bid = right(address);
	bid.size = 16;
	say("size", bid, address);
	bid = right(address);
	bid.build_id[3] ^= 1;
	say("id", bid, address);
	bid = right(address);
	bid.reserved_2 = 1;
	say("reserved", bid, address);
	say("outside", right(address), 16);
	none.build_id[19] = 1;
	say("left over", none, address);
	none.build_id[19] = 0;
	none.offset++;
	say("unresolved, elsewhere", none, address);
	return 0;
}
"""

EXPECTED = {
    "resolved": "right",
    "resolved, address unknown": "right",
    "unresolved": "right",
    "unresolved, but sure": "is not resolved; expected the build ID of",
    "offset": "offset 0x",
    "address as offset": "offset 0x",
    "address as offset, unknown": "no mapped file has this build ID",
    "size": "something behind the build ID's end",
    "id": "another build ID",
    "reserved": "a reserved field is not zero",
    "outside": "in no mapping of a file",
    "left over": "a build ID with size 0",
    "unresolved, elsewhere": "size 0 and offset",
}


@pytest.mark.skipif(not shutil.which("gcc"), reason="no compiler")
def test_the_build_id_oracle_tells_right_from_wrong(tmp_path: Path) -> None:
    where = write(render_kselftest(NEW), tmp_path)
    (where / "linux").mkdir()
    header = Path("/usr/include/linux/perf_event.h").read_text(encoding="utf-8")
    (where / "linux" / "perf_event.h").write_text(with_new_names(header), encoding="utf-8")
    (where / "try.c").write_text(TRY, encoding="utf-8")
    sources = [str(p) for p in where.glob("*.c") if p.stem not in programs(NEW, SPECS)]
    flags = ["-std=gnu11", "-D_GNU_SOURCE", "-isystem", str(where), "-pthread", "-Wl,--build-id=sha1"]
    subprocess.run(["gcc", *flags, "-o", str(where / "try"), *sources], check=True)
    said = subprocess.run([str(where / "try")], capture_output=True, text=True, check=True).stdout
    answers = dict(line.split(": ", 1) for line in said.splitlines())
    assert answers.keys() == EXPECTED.keys()
    for what, answer in answers.items():
        assert EXPECTED[what] in answer.rpartition("\2")[2], what
