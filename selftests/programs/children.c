// SPDX-License-Identifier: GPL-2.0
/*
 * What an event says of the children that inherit it: the counts of each when it
 * ends, and its namespaces when it begins.
 */
#include "decode.h"
#include "event.h"
#include "ktap.h"
#include "oracle.h"
#include "scope.h"
#include "work.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN	3
#define FAULTS		8

static struct event event;
static pid_t child[CHILDREN];
static unsigned int seen[CHILDREN];

/* The child that a record is of, or CHILDREN. */
static unsigned int child_of(__u32 pid, __u32 tid)
{
	unsigned int i;

	for (i = 0; i < CHILDREN; i++)
		if (pid == (__u32)child[i] && tid == (__u32)child[i])
			break;
	return i;
}

static void run_children(struct expect *expect)
{
	expect_begin(expect, &event, SOURCE_COUNT);
	event_enable(&event);
	for (unsigned int i = 0; i < CHILDREN; i++) {
		child[i] = fork();
		if (!child[i]) {
			for (unsigned int j = 0; j < FAULTS; j++)
				work_fault();
			_exit(0);
		}
		waitpid(child[i], NULL, 0);
	}
	event_disable(&event);
	expect_end(expect);
}

/* No child has more than one; how many have one, where it is promised: all. */
static unsigned int check_seen(const char *name, bool promised)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < CHILDREN; i++) {
		if (seen[i] > 1 || (promised && !seen[i]))
			ktap_fail(RULE_RECORD_CONTENT "%u %s of child %u; expected 1", seen[i],
				  name, i);
		count += seen[i];
	}
	return count;
}

static void on_read(struct expect *expect, const struct record *record)
{
	__u64 format = expect->event->attr.read_format;
	unsigned int i;

	if (record->header->type != PERF_RECORD_READ)
		return;
	i = child_of(record->read.pid, record->read.tid);
	if (i == CHILDREN) {
		record_fail(record, RULE_RECORD_CONTENT "of no child");
		return;
	}
	seen[i]++;
	if (record->read.value < FAULTS)
		record_fail(record, RULE_RECORD_CONTENT
			    "the count is %llu; expected at least the %u page faults of the child",
			    record->read.value, FAULTS);
	if ((format & PERF_FORMAT_ID) && record->read.id != expect->event->id)
		record_fail(record, RULE_RECORD_CONTENT "the ID is another event's");
	if ((format & PERF_FORMAT_TOTAL_TIME_ENABLED) &&
	    record->read.time_enabled > expect->time_to - expect->time_from)
		record_fail(record, RULE_RECORD_CONTENT
			    "enabled for longer than the whole test");
}

struct read_case {
	const char *name;
	__u64 format, bits;
};

static const struct read_case read_cases[] = {
	{ "value", 0, 0 },
	{ "id", PERF_FORMAT_ID, 0 },
	{ "times", PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING, 0 },
	{ "all.sample_id", PERF_FORMAT_ID | PERF_FORMAT_TOTAL_TIME_ENABLED |
	  PERF_FORMAT_TOTAL_TIME_RUNNING, PERF_SAMPLE_TID | PERF_SAMPLE_ID },
};

/* attr.inherit_stat: each child's counts come in a record of its own. */
static void counts(const void *arg)
{
	const struct read_case *test = arg;
	struct perf_event_attr attr;
	struct expect expect;
	int error;

	attr_init(&attr, SOURCE_FAULTS, test->bits);
	attr.sample_period = 0;		/* counts, and makes no sample */
	attr.read_format = test->format;
	attr.sample_id_all = !!test->bits;
	attr.inherit = 1;
	attr.inherit_stat = 1;
	error = event_open_on(&event, &attr, 0, 0, -1, EVENT_PAGES);
	if (error)
		ktap_stop(RULE_OPEN_ACCEPTED "perf_event_open(): %s", strerror(-error));
	run_children(&expect);
	check_ring(&expect, on_read);
	/* The manual promises no record at a task's end: what comes is right. */
	ktap_diag("%u READ of %u children", check_seen("READ", false), CHILDREN);
}

#if HAVE_NAMESPACES
static const char * const kinds[] = {
	"net", "uts", "ipc", "pid", "user", "mnt", "cgroup",
};

static void on_namespaces(struct expect *expect, const struct record *record)
{
	unsigned int i;

	(void)expect;
	if (record->header->type != PERF_RECORD_NAMESPACES)
		return;
	i = child_of(record->namespaces.pid, record->namespaces.tid);
	if (i == CHILDREN)
		return;
	seen[i]++;
	for (unsigned int j = 0; j < ARRAY_SIZE(kinds) &&
	     j < record->namespaces.nr_namespaces; j++) {
		char path[64];
		struct stat state;

		snprintf(path, sizeof(path), "/proc/self/ns/%s", kinds[j]);
		if (!stat(path, &state) &&
		    record->namespaces.links[j].inode != state.st_ino)
			record_fail(record, RULE_RECORD_CONTENT
				    "inode %llu of the %s namespace; expected %llu, as %s has",
				    record->namespaces.links[j].inode, kinds[j],
				    (__u64)state.st_ino, path);
	}
}

/* A child has the namespaces of its parent. */
static void namespaces(const void *arg)
{
	struct perf_event_attr attr;
	struct expect expect;
	int error;

	(void)arg;
	attr_init(&attr, SOURCE_CLOCK, 0);
	attr.config = PERF_COUNT_SW_DUMMY;
	attr.sample_period = 0;
	attr.namespaces = 1;
	error = event_open_on(&event, &attr, 0, 0, -1, EVENT_PAGES);
	if (error)
		ktap_stop(RULE_OPEN_ACCEPTED "perf_event_open(): %s", strerror(-error));
	run_children(&expect);
	check_ring(&expect, on_namespaces);
	check_seen("NAMESPACES", true);
}
#endif

int main(int argc, char **argv)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(read_cases); i++)
		ktap_add(counts, &read_cases[i], "read.%s", read_cases[i].name);
#if HAVE_NAMESPACES
	ktap_add(namespaces, NULL, "namespaces");
#endif
	return ktap_main(argc, argv);
}
