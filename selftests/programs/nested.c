// SPDX-License-Identifier: GPL-2.0
/*
 * Samples inside samples: one is taken while another is being written, or is
 * being resolved, and both are right.
 */
#include "decode.h"
#include "event.h"
#include "ktap.h"
#include "made.h"
#include "oracle.h"
#include "scope.h"

#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>

#define IP_BIT		PERF_SAMPLE_BUILD_ID_OFFSET
#define CHAIN_BIT	PERF_SAMPLE_CALLCHAIN_BUILD_ID_OFFSET
#define FRAMES		110
#define ROUNDS		6000
#define NEST_FRAMES	30
#define NEST_ROUNDS	8
#define NEST_TURNS	1000000

static struct event event, clock_event;
static __u64 frames[FRAMES];

static void make_frames(void)
{
	for (unsigned int i = 0; i < FRAMES; i++)
		frames[i] = (__u64)(i % 2 ? (void *)made_fault : (void *)make_frames) + i % 32;
}

static void open_or_stop(struct event *event, struct perf_event_attr *attr)
{
	int error = event_open(event, attr);

	if (error)
		ktap_stop(RULE_OPEN_ACCEPTED "perf_event_open(): %s", strerror(-error));
}

/* What is expected of the clock that ran beside the event of expect. */
static struct expect of_clock(const struct expect *expect)
{
	struct expect clock = *expect;

	clock.event = &clock_event;
	clock.source = SOURCE_CLOCK;
	return clock;
}

/* A clock that fires while the page fault's sample is being written. */
static void nested(const void *arg)
{
	const __u64 *bits = arg;
	struct perf_event_attr attr;
	struct expect expect, clock_expect;
	unsigned int clock_samples = 0;

	need_bits(*bits);
	make_frames();
	attr_init(&attr, SOURCE_FAULTS, *bits | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_IP);
	open_or_stop(&event, &attr);
	attr_init(&attr, SOURCE_CLOCK, *bits | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_IP);
	attr.sample_period = 20000;
	open_or_stop(&clock_event, &attr);
	made_fault(frames, FRAMES);
	for (unsigned int i = 0; i < ROUNDS / 40; i++) {
		expect_begin(&expect, &event, SOURCE_FAULTS);
		event_enable(&clock_event);
		event_enable(&event);
		for (unsigned int j = 0; j < 40; j++)
			made_fault(frames, FRAMES);
		event_disable(&event);
		event_disable(&clock_event);
		expect_end(&expect);
		clock_expect = of_clock(&expect);
		check_ring(&expect, NULL);
		check_ring(&clock_expect, NULL);
		clock_samples += clock_expect.samples;
		maps_free(&expect.maps);
	}
	ktap_diag("%u samples of the clock among %u faults", clock_samples, ROUNDS);
}

struct nested_case {
	const char *name;
	__u64 bits;
	bool user_part;		/* look at the user part alone */
};

/* What is resolved of the clock's chain stands for the addresses of that chain. */
static void check_user_part(struct expect *expect, const struct sample *sample)
{
	const struct build_id_offset *entry = sample->callchain_build_id_offset.entries;
	const __u64 *ips = sample->callchain.ips;
	bool user = false;

	if (sample->callchain.nr != sample->callchain_build_id_offset.nr) {
		sample_fail(expect, sample, RULE_CHAIN_SAME "%llu entries; expected %llu",
			    sample->callchain_build_id_offset.nr, sample->callchain.nr);
		return;
	}
	for (__u64 i = 0; i < sample->callchain.nr; i++) {
		const char *problem = user ? check_build_id(expect, &entry[i], ips[i]) : NULL;

		if (problem)
			sample_fail(expect, sample, "CALLCHAIN_BUILD_ID_OFFSET[%llu]: %s",
				    i, problem);
		user = user || ips[i] == PERF_CONTEXT_USER;
	}
}

/* The samples in the ring of the clock. */
static unsigned int check_clock(struct expect *expect, const struct nested_case *test)
{
	const struct perf_event_header *header;
	struct sample sample;
	const char *problem;

	if (!test->user_part)
		check_ring(expect, NULL);
	while ((header = event_next(&clock_event))) {
		problem = decode_sample(&clock_event.attr, header, &sample);
		if (problem)
			ktap_fail("%s", problem);
		else
			check_user_part(expect, &sample);
		expect->samples++;
	}
	return expect->samples;
}

/*
 * A sample that is taken while another one is being resolved: of the lock that
 * the clock's sample takes for it, in the same interrupt.
 */
static void nested_lock(const void *arg)
{
	long id = tracepoint_id("mmap_lock", "mmap_lock_acquire_returned");
	const struct nested_case *test = arg;
	unsigned int clock_samples = 0, lock_samples = 0;
	struct expect expect, clock_expect;
	struct perf_event_attr attr;

	need_bits(test->bits | CHAIN_BIT);
	if (id < 0)
		ktap_skip("no mmap_lock:mmap_lock_acquire_returned");
	make_frames();
	attr_init(&attr, SOURCE_SYSCALLS, CHAIN_BIT | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_IP);
	attr.config = id;
	open_or_stop(&event, &attr);
	if (ioctl(event.fd, PERF_EVENT_IOC_SET_FILTER, "write == 0"))
		ktap_skip("PERF_EVENT_IOC_SET_FILTER: %m");
	attr_init(&attr, SOURCE_CLOCK, test->bits | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_IP);
	open_or_stop(&clock_event, &attr);
	made_spin(frames, NEST_FRAMES, 1);
	for (unsigned int i = 0; i < NEST_ROUNDS; i++) {
		expect_begin(&expect, &event, SOURCE_COUNT);
		event_enable(&event);
		event_enable(&clock_event);
		made_spin(frames, NEST_FRAMES, NEST_TURNS);
		event_disable(&clock_event);
		event_disable(&event);
		expect_end(&expect);
		clock_expect = of_clock(&expect);
		check_ring(&expect, NULL);
		lock_samples += expect.samples;
		clock_samples += check_clock(&clock_expect, test);
		maps_free(&expect.maps);
	}
	ktap_diag("%u samples of the clock, %u of the lock", clock_samples, lock_samples);
	if (!clock_samples)
		ktap_fail(RULE_SAMPLES_COUNT "no samples of the clock");
}

static const __u64 bits[] = { IP_BIT, CHAIN_BIT, IP_BIT | CHAIN_BIT };
static const char * const names[] = { "address", "chain", "both" };

static const struct nested_case nested_cases[] = {
	{ "address", IP_BIT },
	{ "chain", CHAIN_BIT },
	{ "both", IP_BIT | CHAIN_BIT },
	{ "both.user_part", IP_BIT | CHAIN_BIT, true },
};

int main(int argc, char **argv)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(bits); i++)
		ktap_add(nested, &bits[i], "clock_in_fault.%s", names[i]);
	for (unsigned int i = 0; i < ARRAY_SIZE(nested_cases); i++)
		ktap_add(nested_lock, &nested_cases[i], "lock_in_clock.%s", nested_cases[i].name);
	return ktap_main(argc, argv);
}
