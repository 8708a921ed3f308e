// SPDX-License-Identifier: GPL-2.0
/*
 * Two events of one kind on one task that differ in what they ask for: each
 * gets what it asked for, whichever was opened first.
 */
#include "decode.h"
#include "event.h"
#include "ktap.h"
#include "oracle.h"
#include "scope.h"
#include "work.h"

#include <linux/perf_event.h>
#include <string.h>

#define SAMPLES	6

static struct event event[2];

struct ask {
	const char *name;
	__u64 bits;
	bool no_kernel_chain, no_user_chain, defer;
};

struct shared_case {
	const struct ask *ask;
	enum source source;
};

/* What differs the most: every type in scope that is not here is tried with these. */
static const struct ask asks[] = {
	{ "ip", PERF_SAMPLE_IP },
	{ "callchain", PERF_SAMPLE_CALLCHAIN },
	{ "user_callchain", PERF_SAMPLE_CALLCHAIN, .no_kernel_chain = true },
	{ "no_user_callchain", PERF_SAMPLE_CALLCHAIN, .no_user_chain = true },
	{ "raw", PERF_SAMPLE_RAW },
	{ "regs", PERF_SAMPLE_REGS_USER | PERF_SAMPLE_REGS_INTR },
	{ "stack", PERF_SAMPLE_STACK_USER },
	{ "build_id", PERF_SAMPLE_BUILD_ID_OFFSET },
	{ "build_id_chain", PERF_SAMPLE_CALLCHAIN_BUILD_ID_OFFSET },
	{ "user_build_id_chain", PERF_SAMPLE_CALLCHAIN_BUILD_ID_OFFSET,
	  .no_kernel_chain = true },
	{ "deferred_build_id_chain", PERF_SAMPLE_CALLCHAIN_BUILD_ID_OFFSET,
	  .defer = true },
};

static void open_ask(struct event *event, const struct ask *ask,
		     enum source source)
{
	struct perf_event_attr attr;
	int error;

	attr_init(&attr, source, ask->bits);
	attr.exclude_callchain_kernel = ask->no_kernel_chain;
	attr.exclude_callchain_user = ask->no_user_chain;
	attr_defer(&attr, ask->defer, false);
	error = event_open(event, &attr);
	if (error)
		ktap_stop(RULE_OPEN_ACCEPTED "perf_event_open() for %s: %s", ask->name,
			  strerror(-error));
}

/* Samples of two events, the first of which was opened first. */
static void pair(const struct ask *first, const struct ask *second,
		 enum source source)
{
	const struct ask *ask[2] = { first, second };
	struct expect expect;
	unsigned int least;

	for (unsigned int i = 0; i < 2; i++)
		open_ask(&event[i], ask[i], source);
	expect_begin(&expect, &event[0], source);
	for (unsigned int i = 0; i < 2; i++)
		event_enable(&event[i]);
	least = work_on(&event[0], source, SAMPLES);
	for (unsigned int i = 0; i < 2; i++)
		event_disable(&event[i]);
	expect_end(&expect);
	expect.must_resolve = true;
	for (unsigned int i = 0; i < 2; i++) {
		unsigned int failed = ktap_failures();

		expect.event = &event[i];
		expect.samples = 0;
		expect.last_value = 0;
		check_ring(&expect, NULL);
		if (expect.samples < least && ktap_failures() == failed)
			ktap_fail(RULE_SAMPLES_COUNT
				  "%u samples; expected %u", expect.samples, least);
		if (ktap_failures() > failed)
			ktap_diag("%s opened first, %s second: in the one for %s",
				  first->name, second->name, ask[i]->name);
		event_close(&event[i]);
	}
	maps_free(&expect.maps);
}

/*
 * Does an event that asks for IP alone get records of a wrong size next to ask? What
 * another type gets in its place says nothing about that type then.
 */
static bool spoils(const struct ask *ask, bool opened_first, enum source source)
{
	static const struct ask ip = { "ip", PERF_SAMPLE_IP };
	struct event *spoiled = &event[opened_first];
	const struct perf_event_header *header;
	struct sample sample;
	bool wrong = false;

	open_ask(&event[0], opened_first ? ask : &ip, source);
	open_ask(&event[1], opened_first ? &ip : ask, source);
	for (unsigned int i = 0; i < 2; i++)
		event_enable(&event[i]);
	work(source, 1);
	for (unsigned int i = 0; i < 2; i++)
		event_disable(&event[i]);
	while (!wrong && (header = event_next(spoiled)))
		wrong = decode_sample(&spoiled->attr, header, &sample);
	for (unsigned int i = 0; i < 2; i++)
		event_close(&event[i]);
	return wrong;
}

static bool refused(const struct ask *ask)
{
	if (ask->bits & ~SCOPE_ALL_BITS)
		return true;
	return ktap_kernel == KERNEL_BASE && (ask->bits & SCOPE_NEW_BITS);
}

/* One kind of event with each other kind, in both orders. */
static void shared(const void *arg)
{
	const struct shared_case *test = arg;

	if (refused(test->ask))
		ktap_skip("the base kernel refuses the bit");
	for (unsigned int i = 0; i < ARRAY_SIZE(asks); i++) {
		if (refused(&asks[i]))
			continue;
		pair(test->ask, &asks[i], test->source);
		if (&asks[i] != test->ask)
			pair(&asks[i], test->ask, test->source);
	}
}

static void try_next_to(const struct ask *ask, bool opened_first, const struct shared_case *test)
{
	if (spoils(ask, opened_first, test->source))
		ktap_diag("not tried next to %s, which was opened %s: IP is of a wrong size there",
			  ask->name, opened_first ? "first" : "second");
	else if (opened_first)
		pair(ask, test->ask, test->source);
	else
		pair(test->ask, ask, test->source);
}

/* A type that stands in no ask, with each of them in both orders. */
static void other(const void *arg)
{
	const struct shared_case *test = arg;

	need_bits(test->ask->bits);
	for (unsigned int i = 0; i < ARRAY_SIZE(asks); i++) {
		if (refused(&asks[i]))
			continue;
		try_next_to(&asks[i], true, test);
		try_next_to(&asks[i], false, test);
	}
}

/* Two events that ask for the same. */
static void same(const void *arg)
{
	const struct shared_case *test = arg;

	if (refused(test->ask))
		ktap_skip("the base kernel refuses the bit");
	pair(test->ask, test->ask, test->source);
}

static bool in_asks(__u64 bit)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(asks); i++)
		if (asks[i].bits & bit)
			return true;
	return false;
}

/* Types in scope that stand in no ask, and that the machine has. */
static unsigned int find_others(struct ask *others)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < SCOPE_TYPES; i++) {
		const struct sample_type *known = sample_type(scope_types[i].bit);

		if (in_asks(scope_types[i].bit) || (known && known->needs[0]))
			continue;
		others[count++] = (struct ask){ scope_types[i].name, scope_types[i].bit };
	}
	return count;
}

int main(int argc, char **argv)
{
	static struct shared_case cases[2][ARRAY_SIZE(asks) + SCOPE_TYPES];
	static struct ask others[SCOPE_TYPES];
	unsigned int other_count = find_others(others);

	for (unsigned int source = 0; source < 2; source++) {
		for (unsigned int i = 0; i < ARRAY_SIZE(asks); i++) {
			struct shared_case *test = &cases[source][i];

			if (!(asks[i].bits & SCOPE_BITS))
				continue;
			test->ask = &asks[i];
			test->source = source;
			ktap_add(shared, test, "%s.%s", source_names[source],
				 asks[i].name);
			ktap_add(same, test, "%s.same.%s", source_names[source],
				 asks[i].name);
		}
		for (unsigned int i = 0; i < other_count; i++) {
			struct shared_case *test = &cases[source][ARRAY_SIZE(asks) + i];

			test->ask = &others[i];
			test->source = source;
			ktap_add(other, test, "%s.%s", source_names[source],
				 others[i].name);
			ktap_add(same, test, "%s.same.%s", source_names[source],
				 others[i].name);
		}
	}
	return ktap_main(argc, argv);
}
