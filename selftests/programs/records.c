// SPDX-License-Identifier: GPL-2.0
/*
 * Records that are not samples, with sample_id behind them, of events that ask
 * for the types in scope too: each decodes to its size, and says what was done.
 */
#include "bpf.h"
#include "decode.h"
#include "elf_file.h"
#include "event.h"
#include "ktap.h"
#include "oracle.h"
#include "scope.h"

#include <linux/perf_event.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define ID_BITS		(PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | \
			 PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | \
			 PERF_SAMPLE_IDENTIFIER)
#define NAME		"records-test"

static struct event event;
static unsigned int seen[64], exits;
static pid_t child;
static __u64 mapped, mapped_size;
static struct mapping made;

static void check_id(struct expect *expect, const struct record *record)
{
	const struct sample_id *id = &record->id;
	__u64 bits = expect->event->attr.sample_type;

	check_record_id(expect, record);
	if ((bits & PERF_SAMPLE_CPU) && (id->cpu.cpu || id->cpu.res))
		record_fail(record, RULE_RECORD_SAMPLE_ID "sample_id has another CPU than 0");
	if ((bits & PERF_SAMPLE_TID) && id->tid.pid != expect->pid &&
	    id->tid.pid != (__u32)child)
		record_fail(record, RULE_RECORD_SAMPLE_ID "sample_id has another task");
}

static bool asks_build_id(const struct perf_event_attr *attr)
{
#if HAVE_BUILD_ID
	return attr->build_id;
#else
	(void)attr;
	return false;
#endif
}

static void check_mmap2(struct expect *expect, const struct record *record)
{
	bool build_id = record->header->misc & PERF_RECORD_MISC_MMAP_BUILD_ID;

	if (record->mmap2.addr != mapped)
		return;
	seen[63]++;
	/* The file was just written: its pages are in memory. */
	if (build_id != asks_build_id(&expect->event->attr) &&
	    (build_id || least_resolved(1)))
		record_fail(record, "%s",
			    build_id ? RULE_RECORD_BUILD_ID
			    "a build ID; expected none: it was not asked for" :
			    RULE_RECORD_BUILD_ID
			    "no build ID; expected that of the file");
	if (record->mmap2.pid != expect->pid || record->mmap2.tid != expect->tid)
		record_fail(record, RULE_RECORD_CONTENT "another task");
	if (record->mmap2.len != mapped_size || record->mmap2.pgoff != made.offset)
		record_fail(record, RULE_RECORD_CONTENT
			    "another length or offset than /proc/self/maps has");
	if (strncmp(record->mmap2.filename, "/memfd:made", 11))
		record_fail(record, RULE_RECORD_CONTENT "another file name");
	if (!build_id) {
		if (record->mmap2.ino != made.inode)
			record_fail(record, RULE_RECORD_CONTENT
				    "another inode than /proc/self/maps has");
		return;
	}
	if (record->mmap2.build_id_size != made.id_size ||
	    memcmp(record->mmap2.build_id, made.id, made.id_size))
		record_fail(record, RULE_RECORD_CONTENT "another build ID than the file has");
	if (record->mmap2.reserved_1 || record->mmap2.reserved_2)
		record_fail(record, RULE_RECORD_CONTENT "a reserved field is not zero");
}

static void on_record(struct expect *expect, const struct record *record)
{
	__u32 type = record->header->type;

	if (type < 63)
		seen[type]++;
	if (record->has_id)
		check_id(expect, record);
	if (type == PERF_RECORD_MMAP2)
		check_mmap2(expect, record);
	if (type == PERF_RECORD_COMM && (strcmp(record->comm.comm, NAME) ||
					 record->comm.tid != expect->tid))
		record_fail(record, RULE_RECORD_CONTENT "another name or task");
	if (type == PERF_RECORD_FORK && (record->fork.pid != (__u32)child ||
					 record->fork.ppid != expect->pid))
		record_fail(record, RULE_RECORD_CONTENT "another child or parent");
}

/* Other tasks of the CPU have theirs, too. */
static void on_wide(struct expect *expect, const struct record *record)
{
	if (record->header->type < 63)
		seen[record->header->type]++;
	if (record->header->type != PERF_RECORD_EXIT || record->exit.pid != (__u32)child)
		return;
	exits++;
	if (record->exit.tid != (__u32)child || record->exit.ppid != expect->pid ||
	    record->exit.ptid != expect->tid)
		record_fail(record, RULE_RECORD_CONTENT "another thread or parent");
}

/* Do what the records are about. */
static void act(void)
{
	struct elf_file file = { .id_size = 20 };
	const struct mapping *map;
	struct maps maps;

	elf_file_make(&file);
	mapped = (__u64)elf_file_code(&file, 2);
	mapped_size = 4096;
	maps_read(&maps);
	map = maps_find(&maps, mapped);
	if (map)
		made = *map;
	maps_free(&maps);
	munmap(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096);
	prctl(PR_SET_NAME, NAME);
	child = fork();
	if (!child)
		_exit(0);
	waitpid(child, NULL, 0);
	sched_yield();
	usleep(1000);
}

struct records_case {
	const char *name;
	__u64 bits;
	bool id_all, build_id;
};

static void records(const void *arg)
{
	const struct records_case *test = arg;
	struct perf_event_attr attr;
	struct expect expect;
	int error;

	need_bits(test->bits);
	attr_init(&attr, SOURCE_CLOCK, test->bits);
	attr.config = PERF_COUNT_SW_DUMMY;
	attr.sample_period = 0;
	attr.sample_id_all = test->id_all;
	attr.mmap = 1;
	attr.mmap2 = 1;
	attr.comm = 1;
	attr.task = 1;
	attr.context_switch = 1;
#if HAVE_BUILD_ID
	attr.build_id = test->build_id;
#else
	if (test->build_id)
		ktap_skip("this tree has no attr.build_id");
#endif
	error = event_open(&event, &attr);
	if (error)
		ktap_stop(RULE_OPEN_ACCEPTED "perf_event_open(): %s", strerror(-error));
	expect_begin(&expect, &event, SOURCE_COUNT);
	event_enable(&event);
	act();
	event_disable(&event);
	expect_end(&expect);
	check_ring(&expect, on_record);
	if (!seen[63])
		ktap_fail(RULE_RECORD_CONTENT "no MMAP2 of the mapping that was made");
	if (seen[PERF_RECORD_COMM] != 1)
		ktap_fail(RULE_RECORD_CONTENT
			  "%u COMM; expected 1: the task was named once", seen[PERF_RECORD_COMM]);
	if (seen[PERF_RECORD_FORK] != 1)
		ktap_fail(RULE_RECORD_CONTENT
			  "%u FORK; expected 1: the task forked once", seen[PERF_RECORD_FORK]);
	if (!seen[PERF_RECORD_SWITCH])
		ktap_fail(RULE_RECORD_CONTENT "no SWITCH, the task slept");
}

/* A record that a CPU-wide event gets for the one bit that it sets. */
struct wide_case {
	const char *name;
	void (*ask)(struct perf_event_attr *attr);
	__u32 type;
	bool bpf;
};

static void ask_mmap(struct perf_event_attr *attr)
{
	attr->mmap = 1;
}

static void ask_mmap_data(struct perf_event_attr *attr)
{
	attr->mmap_data = 1;
}

static void ask_comm(struct perf_event_attr *attr)
{
	attr->comm = 1;
}

static void ask_task(struct perf_event_attr *attr)
{
	attr->task = 1;
}

static void ask_switch(struct perf_event_attr *attr)
{
	attr->context_switch = 1;
}

#if HAVE_KSYMBOL
static void ask_bpf_event(struct perf_event_attr *attr)
{
	attr->bpf_event = 1;
}
#endif

static void load_program(void)
{
	struct bpf_program program = { .count = 0 };
	int fd;

	bpf_emit(&program, BPF_MOVE_IMM(BPF_REG_0, 0));
	bpf_emit(&program, BPF_RETURN());
	fd = bpf_load(BPF_PROG_TYPE_SOCKET_FILTER, &program);
	if (fd < 0)
		ktap_skip("bpf(2): %s", strerror(-fd));
	close(fd);
}

/* Whatever the one bit is, an event of a CPU gets the records that it asks for. */
static void wide(const void *arg)
{
	const struct wide_case *test = arg;
	struct perf_event_attr attr;
	struct expect expect;
	int error;

	attr_init(&attr, SOURCE_CLOCK, 0);
	attr.config = PERF_COUNT_SW_DUMMY;
	attr.sample_period = 0;
	test->ask(&attr);
	error = event_open_on(&event, &attr, -1, 0, -1, EVENT_PAGES);
	if (error)
		ktap_stop(RULE_OPEN_ACCEPTED "perf_event_open(): %s", strerror(-error));
	expect_begin(&expect, &event, SOURCE_COUNT);
	event_enable(&event);
	if (test->bpf)
		load_program();
	else
		act();
	event_disable(&event);
	expect_end(&expect);
	check_ring(&expect, on_wide);
	if (!seen[test->type])
		ktap_fail(RULE_RECORD_CONTENT
			  "no record of type %u; expected one of what this task did", test->type);
	if (attr.task && exits != 1)
		ktap_fail(RULE_RECORD_CONTENT "%u EXIT of the child; expected 1: it ended once",
			  exits);
}

static const struct wide_case wide_cases[] = {
	{ "mmap", ask_mmap, PERF_RECORD_MMAP },
	{ "mmap_data", ask_mmap_data, PERF_RECORD_MMAP },
	{ "comm", ask_comm, PERF_RECORD_COMM },
	{ "task", ask_task, PERF_RECORD_FORK },
	{ "context_switch", ask_switch, PERF_RECORD_SWITCH_CPU_WIDE },
#if HAVE_KSYMBOL
	{ "bpf_event", ask_bpf_event, PERF_RECORD_BPF_EVENT, true },
#endif
};

int main(int argc, char **argv)
{
	static struct records_case cases[SCOPE_TYPES + 1][3];

	for (unsigned int i = 0; i <= SCOPE_TYPES; i++) {
		const char *name = i < SCOPE_TYPES ? scope_types[i].name : "none";
		__u64 bit = i < SCOPE_TYPES ? scope_types[i].bit : 0;
		const struct sample_type *type = bit ? sample_type(bit) : NULL;

		if (type && type->needs[0])
			continue;
		cases[i][0] = (struct records_case){ name, bit };
		cases[i][1] = (struct records_case){ name, bit | ID_BITS, true };
		cases[i][2] = (struct records_case){ name, bit | PERF_SAMPLE_ID, true, true };
		ktap_add(records, &cases[i][0], "plain.%s", name);
		ktap_add(records, &cases[i][1], "sample_id.%s", name);
		ktap_add(records, &cases[i][2], "build_id.%s", name);
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(wide_cases); i++)
		ktap_add(wide, &wide_cases[i], "cpu_wide.%s", wide_cases[i].name);
	return ktap_main(argc, argv);
}
