// SPDX-License-Identifier: GPL-2.0
/*
 * Records of cgroups that are made.
 */
#include "decode.h"
#include "event.h"
#include "ktap.h"
#include "oracle.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define ID_BITS		(PERF_SAMPLE_ID | PERF_SAMPLE_TIME)
#define GROUP		"/records-test"


static struct event event;
static __u64 group_id;
static unsigned int made;

static void on_cgroup(struct expect *expect, const struct record *record)
{
	if (record->header->type != PERF_RECORD_CGROUP)
		return;
	check_record_id(expect, record);
	if (strcmp(record->cgroup.path, GROUP))
		return;
	made++;
	if (record->cgroup.id != group_id)
		record_fail(record, RULE_RECORD_CONTENT
			    "id %llu; expected %llu, the inode of its directory",
			    record->cgroup.id, group_id);
}

static bool knows_cgroups(void)
{
	FILE *file = fopen("/proc/cgroups", "r");
	char line[256];
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file))
		found = !strncmp(line, "perf_event\t", 11);
	if (file)
		fclose(file);
	return found;
}

static void make_group(const char *root)
{
	char path[64];
	struct stat state;

	snprintf(path, sizeof(path), "%s" GROUP, root);
	if (mkdir(path, 0700) || stat(path, &state))
		ktap_stop(RULE_TEST_SETUP "%s: %m", path);
	group_id = state.st_ino;
	rmdir(path);
}

static void make_and_check(struct expect *expect)
{
	char root[] = "/tmp/cgroup-XXXXXX";

	if (!knows_cgroups())
		ktap_skip("this kernel has no CONFIG_CGROUP_PERF");
	/* Of cgroup2 a controller has no part before another one is switched on beside it. */
	if (!mkdtemp(root) || mount("cgroup", root, "cgroup", 0, "perf_event"))
		ktap_skip("a hierarchy of perf_event: %m");
	make_group(root);
	umount(root);
	rmdir(root);
	event_disable(&event);
	expect_end(expect);
	check_ring(expect, on_cgroup);
	if (made != 1)
		ktap_fail(RULE_RECORD_CONTENT "%u CGROUP of %s; expected 1: it was made once",
			  made, GROUP);
}

struct cgroup_case {
	const char *name;
	__u64 bits;
	bool task;
};

/* An event of CPU 0 that asks for nothing else, or for what other events of a CPU get, too. */
static void cgroups(const void *arg)
{
	const struct cgroup_case *test = arg;
	struct perf_event_attr attr;
	struct expect expect;
	int error;

	attr_init(&attr, SOURCE_CLOCK, test->bits);
	attr.config = PERF_COUNT_SW_DUMMY;
	attr.sample_period = 0;
	attr.sample_id_all = !!test->bits;
	attr.task = test->task;
#if HAVE_CGROUP
	attr.cgroup = 1;
#else
	ktap_skip("this tree has no attr.cgroup");
#endif
	error = event_open_on(&event, &attr, -1, 0, -1, EVENT_PAGES);
	if (error)
		ktap_stop(RULE_OPEN_ACCEPTED "perf_event_open(): %s", strerror(-error));
	expect_begin(&expect, &event, SOURCE_COUNT);
	event_enable(&event);
	make_and_check(&expect);
}

static const struct cgroup_case cases[] = {
	{ "alone.plain", 0, false },
	{ "alone.sample_id", ID_BITS, false },
	{ "with_task.plain", 0, true },
	{ "with_task.sample_id", ID_BITS, true },
};

int main(int argc, char **argv)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++)
		ktap_add(cgroups, &cases[i], "made.%s", cases[i].name);
	return ktap_main(argc, argv);
}
