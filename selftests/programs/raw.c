// SPDX-License-Identifier: GPL-2.0
/* Raw data of tracepoints, whole and filtered. */
#include "decode.h"
#include "event.h"
#include "ktap.h"
#include "oracle.h"
#include "work.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#define CALLS	16

static struct event event;

static void open_syscalls(__u64 bits)
{
	struct perf_event_attr attr;
	int error;

	attr_init(&attr, SOURCE_SYSCALLS, bits);
	error = event_open(&event, &attr);
	if (error)
		ktap_stop(RULE_OPEN_ACCEPTED "perf_event_open(): %s", strerror(-error));
}

static void run(unsigned int least, unsigned int most)
{
	struct expect expect;

	expect_begin(&expect, &event, SOURCE_SYSCALLS);
	event_enable(&event);
	work(SOURCE_SYSCALLS, CALLS);
	event_disable(&event);
	expect_end(&expect);
	check_ring(&expect, NULL);
	if (expect.samples < least || expect.samples > most)
		ktap_fail(RULE_SAMPLES_COUNT "%u samples; expected from %u to %u", expect.samples,
			  least, most);
}

static void tracepoint(const void *arg)
{
	(void)arg;
	open_syscalls(PERF_SAMPLE_RAW);
	/* The ioctl that disables the event is one more. */
	run(CALLS + 1, CALLS + 1);
}

/* The same in a ring that holds older records: what fills up is 0 there too. */
static void used_ring(const void *arg)
{
	struct perf_event_attr attr;
	int error;

	(void)arg;
	attr_init(&attr, SOURCE_SYSCALLS, PERF_SAMPLE_RAW);
	error = event_open_on(&event, &attr, 0, -1, -1, 1);
	if (error)
		ktap_stop(RULE_OPEN_ACCEPTED "perf_event_open(): %s", strerror(-error));
	for (unsigned int i = 0; i < 8; i++)
		run(CALLS + 1, CALLS + 1);
}

static void filtered(const void *arg)
{
	char filter[64];

	(void)arg;
	open_syscalls(PERF_SAMPLE_RAW | PERF_SAMPLE_TID);
	snprintf(filter, sizeof(filter), "id == %d", SYS_getppid);
	if (ioctl(event.fd, PERF_EVENT_IOC_SET_FILTER, filter))
		ktap_stop(RULE_TEST_SETUP "PERF_EVENT_IOC_SET_FILTER: %m");
	run(CALLS, CALLS);
}

static void filtered_away(const void *arg)
{
	(void)arg;
	open_syscalls(PERF_SAMPLE_RAW);
	if (ioctl(event.fd, PERF_EVENT_IOC_SET_FILTER, "id < 0"))
		ktap_stop(RULE_TEST_SETUP "PERF_EVENT_IOC_SET_FILTER: %m");
	run(0, 0);
}

int main(int argc, char **argv)
{
	ktap_add(tracepoint, NULL, "tracepoint");
	ktap_add(used_ring, NULL, "tracepoint_used_ring");
	ktap_add(filtered, NULL, "tracepoint_filtered");
	ktap_add(filtered_away, NULL, "tracepoint_filtered_away");
	return ktap_main(argc, argv);
}
