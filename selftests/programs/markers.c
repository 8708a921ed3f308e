// SPDX-License-Identifier: GPL-2.0
/*
 * Chains with a value that looks like a context marker, and short chains after
 * long ones: what was there before does not show.
 */
#include "decode.h"
#include "event.h"
#include "ktap.h"
#include "made.h"
#include "oracle.h"
#include "scope.h"

#include <linux/perf_event.h>
#include <string.h>

#define ADDRESS_BIT	PERF_SAMPLE_BUILD_ID_OFFSET
#define CHAIN_BIT	PERF_SAMPLE_CALLCHAIN_BUILD_ID_OFFSET
#define FORGED_FRAMES	40	/* no other chain here is as long */
#define LONG_FRAMES	126
#define SHORT_FRAMES	6

static struct event event, earlier;
static __u64 frames[LONG_FRAMES];
static unsigned int seen;

struct marker_case {
	const char *name;
	enum source source;
	__u64 bits;
	bool no_user_part;
};

static void open_case(struct event *new, const struct marker_case *test, __u64 bits,
		      bool no_user_part)
{
	struct perf_event_attr attr;
	int error;

	attr_init(&attr, test->source, bits);
	attr.exclude_callchain_user = no_user_part;
	error = event_open(new, &attr);
	if (error)
		ktap_stop(RULE_OPEN_ACCEPTED "perf_event_open(): %s", strerror(-error));
}

/* One sample of a chain that ends in the first count frames. */
static void make_sample(struct event *of, const struct marker_case *test, unsigned int count)
{
	event_enable(of);
	if (test->source == SOURCE_SYSCALLS)
		made_syscall(frames, count);
	else
		made_fault(frames, count);
	event_disable(of);
}

/* The user part begins once: all that follows stands for an address. */
static void check_forged(struct expect *expect, const struct sample *sample)
{
	const struct build_id_offset *entry = sample->callchain_build_id_offset.entries;
	__u64 nr = sample->callchain_build_id_offset.nr;

	if (nr < FORGED_FRAMES)
		return;		/* of another call */
	seen++;
	for (unsigned int i = 0; i < FORGED_FRAMES; i++) {
		__u64 at = nr - FORGED_FRAMES + i;
		const char *problem = check_build_id(expect, &entry[at], frames[i]);

		if (problem)
			sample_fail(expect, sample, "CALLCHAIN_BUILD_ID_OFFSET[%llu]: %s",
				    at, problem);
	}
}

/* A return address that looks like a marker does not begin another part. */
static void forged(const void *arg)
{
	const struct marker_case *test = arg;
	const struct perf_event_header *header;
	struct expect expect;
	struct sample sample;
	const char *problem;

	need_bits(test->bits);
	for (unsigned int i = 0; i < FORGED_FRAMES; i++)
		frames[i] = (__u64)made_syscall + i % 16;
	frames[FORGED_FRAMES / 2] = PERF_CONTEXT_USER;
	open_case(&event, test, test->bits, false);
	expect_begin(&expect, &event, test->source);
	make_sample(&event, test, FORGED_FRAMES);
	expect_end(&expect);
	expect.must_resolve = true;
	while ((header = event_next(&event))) {
		problem = decode_sample(&event.attr, header, &sample);
		if (problem)
			ktap_fail("%s", problem);
		else
			check_forged(&expect, &sample);
	}
	if (!seen)
		ktap_fail(RULE_CHAIN_FRAMES "no chain with the %u entries of the made frames",
			  FORGED_FRAMES);
}

/*
 * What a long chain left in the kernel's buffers does not show in a short one. The
 * event of the long one stays open: without one, the kernel frees the buffers. What
 * ends behind the kernel part, or is empty, has the other's user marker next to it.
 */
static void stale(const void *arg)
{
	const struct marker_case *test = arg;
	struct expect expect;

	need_bits(test->bits | CHAIN_BIT);
	for (unsigned int i = 0; i < LONG_FRAMES; i++)
		frames[i] = (__u64)made_syscall + i % 16;
	open_case(&earlier, test, PERF_SAMPLE_CALLCHAIN | CHAIN_BIT, false);
	expect_begin(&expect, &event, test->source);
	make_sample(&earlier, test, LONG_FRAMES);
	/* No mapping is there: the entries have size 0, and nothing in the ID. */
	for (unsigned int i = 0; i < SHORT_FRAMES; i++)
		frames[i] = 0x00007ffffffff000ULL + i;
	open_case(&event, test, test->bits, test->no_user_part);
	make_sample(&event, test, SHORT_FRAMES);
	expect_end(&expect);
	check_ring(&expect, NULL);
	if (!expect.samples)
		ktap_fail(RULE_SAMPLES_COUNT "no samples; expected 1 of the made call");
}

#define BOTH	(PERF_SAMPLE_CALLCHAIN | CHAIN_BIT)

static const struct marker_case forged_cases[] = {
	{ "syscall", SOURCE_SYSCALLS, CHAIN_BIT },
	{ "fault", SOURCE_FAULTS, CHAIN_BIT | ADDRESS_BIT },
};

static const struct marker_case stale_cases[] = {
	{ "fault.chain", SOURCE_FAULTS, BOTH },
	{ "fault.both", SOURCE_FAULTS, BOTH | ADDRESS_BIT },
	{ "fault.no_user_part", SOURCE_FAULTS, BOTH, true },
	{ "fault.address.no_user_part", SOURCE_FAULTS,
	  CHAIN_BIT | ADDRESS_BIT | PERF_SAMPLE_IP, true },
	{ "syscall.chain", SOURCE_SYSCALLS, BOTH },
	{ "syscall.no_user_part", SOURCE_SYSCALLS, BOTH, true },
};

int main(int argc, char **argv)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(forged_cases); i++)
		ktap_add(forged, &forged_cases[i], "forged.%s", forged_cases[i].name);
	for (unsigned int i = 0; i < ARRAY_SIZE(stale_cases); i++)
		ktap_add(stale, &stale_cases[i], "stale.%s", stale_cases[i].name);
	return ktap_main(argc, argv);
}
