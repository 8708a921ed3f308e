// SPDX-License-Identifier: GPL-2.0
/*
 * Every sample type in scope, alone and with others, from several kinds of
 * event: each record decodes to exactly header.size bytes, the next one begins
 * there, and every value is what its oracle says.
 */
#include "decode.h"
#include "event.h"
#include "ktap.h"
#include "oracle.h"
#include "scope.h"
#include "work.h"

#include <string.h>

#define SAMPLES	8

static struct event event;

struct layout_case {
	const struct combination *combination;
	enum source source;
};

static const char *needs(__u64 bits)
{
	for (unsigned int i = 0; i < SAMPLE_TYPES; i++)
		if ((bits & sample_types[i].bit) && sample_types[i].needs[0])
			return sample_types[i].needs;
	return NULL;
}

static void layout(const void *arg)
{
	const struct layout_case *test = arg;
	__u64 bits = test->combination->bits;
	struct perf_event_attr attr;
	struct expect expect;
	unsigned int least;
	int error;

	need_bits(bits);
	attr_init(&attr, test->source, bits);
	error = event_open(&event, &attr);
	if (error && needs(bits))
		ktap_skip("needs %s", needs(bits));
	if (error)
		ktap_stop("perf_event_open() with sample_type %#llx: %s", bits,
			  strerror(-error));
	expect_begin(&expect, &event, test->source);
	expect.must_resolve = test->source != SOURCE_CLOCK;
	event_enable(&event);
	least = work(test->source, SAMPLES);
	event_disable(&event);
	expect_end(&expect);
	check_ring(&expect, NULL);
	if (expect.samples < least && !ktap_failures())
		ktap_fail("%u samples, at least %u were made", expect.samples,
			  least);
}

static struct layout_case cases[SCOPE_COMBINATIONS][SOURCE_COUNT];

int main(int argc, char **argv)
{
	for (unsigned int source = 0; source < SOURCE_COUNT; source++) {
		for (unsigned int i = 0; i < SCOPE_COMBINATIONS; i++) {
			struct layout_case *test = &cases[i][source];

			test->combination = &combinations[i];
			test->source = source;
			if (source == SOURCE_CLOCK && !test->combination->basic)
				continue;
			ktap_add(layout, test, "%s.%s", source_names[source],
				 test->combination->name);
		}
	}
	return ktap_main(argc, argv);
}
