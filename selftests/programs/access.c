// SPDX-License-Identifier: GPL-2.0
/*
 * Whom an unprivileged user may look at, and how, at each perf_event_paranoid
 * level: the same with every type in scope as without it.
 */
#include "decode.h"
#include "event.h"
#include "ktap.h"
#include "scope.h"
#include "user.h"
#include "work.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <unistd.h>

#define SAMPLES		8
#define NEVER		(-2)
#define ALWAYS		3

/* An access, and the highest level at which it is allowed. */
struct access {
	const char *name;
	__u64 bits;
	pid_t pid;
	int cpu;
	bool tracepoint;
	int allowed_to;
};

static const struct access accesses[] = {
	{ "own_task", PERF_SAMPLE_IP, 0, -1, .allowed_to = ALWAYS },
	{ "cpu", PERF_SAMPLE_IP, -1, 0, .allowed_to = 0 },
	{ "other_task", PERF_SAMPLE_IP, 1, -1, .allowed_to = NEVER },
	{ "physical_address", PERF_SAMPLE_PHYS_ADDR, 0, -1, .allowed_to = 1 },
	{ "tracepoint", PERF_SAMPLE_IP, 0, -1, true, ALWAYS },
	{ "tracepoint_raw", PERF_SAMPLE_RAW, 0, -1, true, -1 },
};

struct access_case {
	const struct access *access;
	const struct scoped_type *type;
	int level;
};

static struct event event;

/* An event that excludes all of the kernel, with the type in it. */
static void init(struct perf_event_attr *attr, const struct scoped_type *type,
		 __u64 bits)
{
	const struct sample_type *known = sample_type(type->bit);

	need_bits(type->bit | bits);
	if (known && known->needs[0])
		ktap_skip("needs %s", known->needs);
	attr_init(attr, SOURCE_FAULTS, type->bit | bits);
	attr->exclude_kernel = 1;
	attr->exclude_callchain_kernel = 1;
}

static void access_at(const void *arg)
{
	const struct access_case *test = arg;
	const struct access *access = test->access;
	struct perf_event_attr attr;
	bool allowed = test->level <= access->allowed_to;
	long id;
	int fd;

	init(&attr, test->type, access->bits);
	if (access->tracepoint) {
		id = tracepoint_id("sched", "sched_switch");
		if (id < 0)
			ktap_skip("no sched:sched_switch in /sys/kernel/tracing");
		attr.type = PERF_TYPE_TRACEPOINT;
		attr.config = id;
	}
	user_set_level(test->level);
	user_become_nobody();
	if (denies_everything())
		allowed = false;
	/* What the type itself may not show is denied with it. */
	if ((attr.sample_type & PERF_SAMPLE_PHYS_ADDR) && test->level > 1)
		allowed = false;
	if ((attr.sample_type & PERF_SAMPLE_RAW) && access->tracepoint && test->level > -1)
		allowed = false;
	fd = attr_open(&attr, access->pid, access->cpu);
	if (allowed && fd < 0)
		ktap_fail(RULE_OPEN_PERMISSION
			  "%s at level %d: %s; expected a file descriptor", access->name,
			  test->level, strerror(-fd));
	if (!allowed && fd != -EACCES && fd != -EPERM)
		ktap_fail(RULE_OPEN_PERMISSION "%s at level %d: %s; expected %s", access->name,
			  test->level, strerror(fd < 0 ? -fd : 0), strerror(EACCES));
}

/* What the type shows at level 2 is no address of the kernel. */
static void shown(const void *arg)
{
	const struct scoped_type *type = arg;
	const struct perf_event_header *header;
	struct perf_event_attr attr;
	unsigned int samples = 0;
	int error;

	init(&attr, type, PERF_SAMPLE_IP);
	user_set_level(2);
	user_become_nobody();
	error = event_open_on(&event, &attr, 0, -1, -1, 8);
	if (error == -EACCES && (type->bit & PERF_SAMPLE_PHYS_ADDR))
		ktap_skip("physical addresses are denied");
	if (error)
		ktap_stop(RULE_OPEN_ACCEPTED "perf_event_open() at level 2: %s",
			  strerror(-error));
	event_enable(&event);
	work(SOURCE_FAULTS, SAMPLES);
	event_disable(&event);
	while ((header = event_next(&event))) {
		samples += header->type == PERF_RECORD_SAMPLE;
		no_kernel_address(&attr, header);
	}
	if (samples < SAMPLES)
		ktap_fail(RULE_SAMPLES_COUNT "%u samples; expected at least %u", samples,
			  SAMPLES);
}

static void restore(const void *arg)
{
	(void)arg;
	user_set_level(-1);
}

#define LEVELS	5	/* -1 to 3 */

int main(int argc, char **argv)
{
	static struct access_case cases[SCOPE_TYPES][ARRAY_SIZE(accesses)][LEVELS];

	for (unsigned int i = 0; i < SCOPE_TYPES; i++) {
		for (unsigned int j = 0; j < ARRAY_SIZE(accesses); j++) {
			for (int k = 0; k < LEVELS; k++) {
				struct access_case *test = &cases[i][j][k];

				test->access = &accesses[j];
				test->type = &scope_types[i];
				test->level = k - 1;
				ktap_add(access_at, test, "level_%d.%s.%s", test->level,
					 accesses[j].name, scope_types[i].name);
			}
		}
		ktap_add(shown, &scope_types[i], "no_kernel_address.%s", scope_types[i].name);
	}
	ktap_add(restore, NULL, "level_restored");
	return ktap_main(argc, argv);
}
