// SPDX-License-Identifier: GPL-2.0
/*
 * What an unprivileged user may open at each perf_event_paranoid level, and
 * that no kernel address appears in what it gets.
 */
#include "decode.h"
#include "event.h"
#include "ktap.h"
#include "oracle.h"
#include "scope.h"
#include "user.h"
#include "work.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <unistd.h>

#define SAMPLES		8

static struct event event;

struct permission_case {
	const char *name;
	__u64 bits;
	bool exclude_kernel, exclude_callchain_kernel;
	bool chain;		/* may hold kernel entries, unless excluded */
};

static const struct permission_case permission_cases[] = {
	{ "ip", PERF_SAMPLE_IP },
	{ "ip.exclude_kernel", PERF_SAMPLE_IP, true },
	{ "callchain", PERF_SAMPLE_CALLCHAIN, .chain = true },
	{ "callchain.exclude_both", PERF_SAMPLE_CALLCHAIN, true, true, true },
	{ "callchain.exclude_kernel", PERF_SAMPLE_CALLCHAIN, true, .chain = true },
	{ "build_id", PERF_SAMPLE_BUILD_ID_OFFSET },
	{ "build_id.exclude_kernel", PERF_SAMPLE_BUILD_ID_OFFSET, true },
	{ "build_id_chain", PERF_SAMPLE_CALLCHAIN_BUILD_ID_OFFSET, .chain = true },
	{ "build_id_chain.exclude_kernel", PERF_SAMPLE_CALLCHAIN_BUILD_ID_OFFSET,
	  true, .chain = true },
	{ "build_id_chain.exclude_callchain_kernel",
	  PERF_SAMPLE_CALLCHAIN_BUILD_ID_OFFSET, false, true, true },
	{ "build_id_chain.exclude_both", PERF_SAMPLE_CALLCHAIN_BUILD_ID_OFFSET,
	  true, true, true },
};

/* Some trees have a level 3, at which nothing is allowed. */
static const int levels[] = { -1, 0, 1, 2, 3 };

struct level_case {
	const struct permission_case *permission;
	int level;
	enum source source;
};

/*
 * A chain that may hold kernel entries, in an event that excludes the kernel
 * otherwise: kernels differ, but each treats all kinds of chains the same.
 */
static bool refuses_chain(const struct perf_event_attr *chain)
{
	struct perf_event_attr attr = *chain;
	int fd;

	attr.sample_type = PERF_SAMPLE_CALLCHAIN;
	fd = attr_open(&attr, 0, -1);
	if (fd >= 0)
		close(fd);
	return fd < 0;
}

static bool refused_at(const struct level_case *test,
		       const struct perf_event_attr *attr)
{
	if (test->level < 2)
		return false;
	if (!attr->exclude_kernel || denies_everything())
		return true;
	return test->permission->chain && refuses_chain(attr);
}

static void permission(const void *arg)
{
	const struct level_case *test = arg;
	const struct permission_case *permission = test->permission;
	const struct perf_event_header *header;
	struct perf_event_attr attr;
	unsigned int samples = 0;
	int error;

	need_bits(permission->bits);
	attr_init(&attr, test->source, permission->bits);
	attr.exclude_kernel = permission->exclude_kernel;
	attr.exclude_callchain_kernel = permission->exclude_callchain_kernel;
	user_set_level(test->level);
	user_become_nobody();
	error = event_open_on(&event, &attr, 0, -1, -1, 8);
	if (refused_at(test, &attr)) {
		if (error != -EACCES && error != -EPERM)
			ktap_fail(RULE_OPEN_PERMISSION
				  "perf_event_open() at level %d: %s; expected %s", test->level,
				  strerror(-error), strerror(EACCES));
		return;
	}
	if (error)
		ktap_stop(RULE_OPEN_ACCEPTED "perf_event_open() at level %d: %s", test->level,
			  strerror(-error));
	event_enable(&event);
	work_on(&event, test->source, SAMPLES);
	event_disable(&event);
	while ((header = event_next(&event))) {
		samples += header->type == PERF_RECORD_SAMPLE;
		if (test->level >= 2)
			no_kernel_address(&attr, header);
	}
	if (!samples)
		ktap_fail(RULE_SAMPLES_COUNT "no samples");
}

static void restore(const void *arg)
{
	(void)arg;
	user_set_level(-1);
}

int main(int argc, char **argv)
{
	static struct level_case cases[ARRAY_SIZE(levels)][ARRAY_SIZE(permission_cases)][2];

	for (unsigned int i = 0; i < ARRAY_SIZE(levels); i++) {
		for (unsigned int j = 0; j < ARRAY_SIZE(permission_cases); j++) {
			for (unsigned int k = 0; k < 2; k++) {
				struct level_case *test = &cases[i][j][k];

				test->permission = &permission_cases[j];
				test->level = levels[i];
				test->source = k ? SOURCE_CLOCK : SOURCE_FAULTS;
				ktap_add(permission, test, "level_%d.%s.%s", levels[i],
					 source_names[test->source],
					 permission_cases[j].name);
			}
		}
	}
	ktap_add(restore, NULL, "level_restored");
	return ktap_main(argc, argv);
}
