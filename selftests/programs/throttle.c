// SPDX-License-Identifier: GPL-2.0
/*
 * Sampling that is too frequent is stopped until the next tick.
 */
#include "decode.h"
#include "event.h"
#include "ktap.h"
#include "oracle.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ID_BITS		(PERF_SAMPLE_ID | PERF_SAMPLE_TIME)
#define SPIN		(100 * 1000 * 1000)	/* ns: ticks enough at any CONFIG_HZ */
#define SPINS		10			/* at most, on a machine that is busy with others */
#define ENOUGH		1024			/* bytes of records */
#define RATE_FILE	"/proc/sys/kernel/perf_event_max_sample_rate"

static struct event event;
static unsigned int stops, starts;


static void check_throttle(struct expect *expect, const struct record *record,
			   __u64 time, __u64 id, __u64 stream_id)
{
	check_record_id(expect, record);
	if (time < expect->time_from || time > expect->time_to)
		record_fail(record, RULE_RECORD_THROTTLE "a time before or after the test");
	if (id != expect->event->id || stream_id != expect->event->id)
		record_fail(record, RULE_RECORD_THROTTLE "id %llu, stream_id %llu; expected %llu, the event's",
			    id, stream_id, expect->event->id);
}

static void on_throttle(struct expect *expect, const struct record *record)
{
	static bool stopped;

	if (record->header->type == PERF_RECORD_THROTTLE) {
		check_throttle(expect, record, record->throttle.time, record->throttle.id,
			       record->throttle.stream_id);
		if (stopped)
			record_fail(record, RULE_RECORD_THROTTLE
				    "stopped twice; expected an UNTHROTTLE in between");
		stopped = true;
		stops++;
	}
	if (record->header->type == PERF_RECORD_UNTHROTTLE) {
		check_throttle(expect, record, record->unthrottle.time, record->unthrottle.id,
			       record->unthrottle.stream_id);
		if (!stopped)
			record_fail(record, RULE_RECORD_THROTTLE
				    "goes on; expected a THROTTLE before it");
		stopped = false;
		starts++;
	}
}

static void spin(void)
{
	struct timespec from, now;

	clock_gettime(CLOCK_MONOTONIC, &from);
	do {
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - from.tv_sec) * 1000000000LL + now.tv_nsec - from.tv_nsec < SPIN);
}

/* Write number to the sysctl, and return what was there. */
static long set_rate(long number)
{
	int fd = open(RATE_FILE, O_RDWR);
	char text[32] = "";
	long before;

	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		ktap_skip("%s: %m", RATE_FILE);
	before = atol(text);
	snprintf(text, sizeof(text), "%ld\n", number);
	if (pwrite(fd, text, strlen(text), 0) < 0)
		ktap_skip("%s: %m", RATE_FILE);
	close(fd);
	return before;
}

/* One sample a tick is allowed: a clock of 200 us is stopped in each. */
static void throttle(const void *arg)
{
	const __u64 *bits = arg;
	struct perf_event_attr attr;
	struct expect expect;
	long rate;
	int error;

	attr_init(&attr, SOURCE_CLOCK, *bits);
	attr.sample_id_all = !!*bits;
	error = event_open(&event, &attr);
	if (error)
		ktap_stop(RULE_OPEN_ACCEPTED "perf_event_open(): %s", strerror(-error));
	expect_begin(&expect, &event, SOURCE_CLOCK);
	rate = set_rate(1);
	event_enable(&event);
	for (unsigned int i = 0; i < SPINS && event.page->data_head < ENOUGH; i++)
		spin();
	event_disable(&event);
	set_rate(rate);
	expect_end(&expect);
	check_ring(&expect, on_throttle);
	ktap_diag("%u THROTTLE, %u UNTHROTTLE, %u samples", stops, starts, expect.samples);
	if (!stops || !starts)
		ktap_fail(RULE_RECORD_THROTTLE
			  "%u THROTTLE, %u UNTHROTTLE; expected both: a tick has more than one sample",
			  stops, starts);
}

int main(int argc, char **argv)
{
	static const __u64 plain, sample_id = ID_BITS;

	ktap_add(throttle, &plain, "clock.plain");
	ktap_add(throttle, &sample_id, "clock.sample_id");
	return ktap_main(argc, argv);
}
