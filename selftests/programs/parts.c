// SPDX-License-Identifier: GPL-2.0
/*
 * Which parts a callchain has, in either form: what attr excludes is not there,
 * the rest begins with its marker, and the user part may be promised instead.
 */
#include "decode.h"
#include "event.h"
#include "ktap.h"
#include "oracle.h"
#include "scope.h"
#include "work.h"

#include <linux/perf_event.h>
#include <string.h>

#define PLAIN_BIT	PERF_SAMPLE_CALLCHAIN
#define CHAIN_BIT	PERF_SAMPLE_CALLCHAIN_BUILD_ID_OFFSET
#define SAMPLES		8

struct parts_case {
	__u64 bit;
	enum source source;
	bool no_kernel, no_user, defer;
};

/* What one chain consists of. */
struct parts {
	unsigned int kernel, user, deferred, other;	/* markers */
	unsigned int kernel_entries, user_entries;
};

static struct event event;
static const struct parts_case *test;

static struct parts take_apart(const struct sample *sample)
{
	bool plain = test->bit == PLAIN_BIT;
	__u64 nr = plain ? sample->callchain.nr : sample->callchain_build_id_offset.nr;
	struct parts parts = { 0 };
	__u64 context = 0;

	for (__u64 i = 0; i < nr; i++) {
		const struct build_id_offset *entry = plain ? NULL :
			&sample->callchain_build_id_offset.entries[i];
		__u64 value = plain ? sample->callchain.ips[i] : entry->offset;

		if (context == PERF_CONTEXT_USER_DEFERRED)
			continue;	/* a cookie has any value */
		if ((entry && entry->size) || value < PERF_CONTEXT_MAX) {
			parts.kernel_entries += context == PERF_CONTEXT_KERNEL;
			parts.user_entries += context == PERF_CONTEXT_USER;
			continue;
		}
		context = value;
		parts.kernel += value == PERF_CONTEXT_KERNEL;
		parts.user += value == PERF_CONTEXT_USER;
		parts.deferred += value == PERF_CONTEXT_USER_DEFERRED;
		parts.other += value != PERF_CONTEXT_KERNEL && value != PERF_CONTEXT_USER &&
			       value != PERF_CONTEXT_USER_DEFERRED;
	}
	return parts;
}

static void expect_part(struct expect *expect, const struct sample *sample,
			const char *name, unsigned int markers, bool wanted)
{
	if (markers != wanted)
		sample_fail(expect, sample, RULE_CHAIN_EXCLUDED
			    "%u markers of the %s part; expected %u", markers, name, wanted);
}

static void on_sample(struct expect *expect, const struct sample *sample)
{
	struct parts parts = take_apart(sample);
	bool in_kernel = (sample->header->misc & PERF_RECORD_MISC_CPUMODE_MASK) ==
			 PERF_RECORD_MISC_KERNEL;

	expect_part(expect, sample, "kernel", parts.kernel, in_kernel && !test->no_kernel);
	expect_part(expect, sample, "user", parts.user, !test->no_user && !test->defer);
	expect_part(expect, sample, "deferred", parts.deferred, !test->no_user && test->defer);
	expect_part(expect, sample, "unknown", parts.other, false);
	if ((parts.kernel && !parts.kernel_entries) || (parts.user && !parts.user_entries))
		sample_fail(expect, sample, RULE_CHAIN_CONTEXT
			    "a marker without an entry: %u of the kernel, %u of the user; expected some behind each",
			    parts.kernel_entries, parts.user_entries);
}

static void parts(const void *arg)
{
	struct perf_event_attr attr;
	struct expect expect;
	int error;

	test = arg;
	need_bits(test->bit);
	attr_init(&attr, test->source, test->bit);
	attr_defer(&attr, test->defer, false);
	attr.exclude_callchain_kernel = test->no_kernel;
	attr.exclude_callchain_user = test->no_user;
	error = event_open(&event, &attr);
	if (error)
		ktap_stop(RULE_OPEN_ACCEPTED "perf_event_open(): %s", strerror(-error));
	expect_begin(&expect, &event, test->source);
	expect.on_sample = on_sample;
	event_enable(&event);
	work_on(&event, test->source, SAMPLES);
	event_disable(&event);
	expect_end(&expect);
	expect.must_resolve = test->source != SOURCE_CLOCK;
	check_ring(&expect, NULL);
	if (!expect.samples)
		ktap_fail(RULE_SAMPLES_COUNT "no samples");
}

int main(int argc, char **argv)
{
	static struct parts_case cases[2][SOURCE_COUNT][8];

	for (unsigned int form = 0; form < 2; form++) {
		for (unsigned int source = 0; source < SOURCE_COUNT; source++) {
			for (unsigned int i = 0; i < 8; i++) {
				struct parts_case *new = &cases[form][source][i];

				new->bit = form ? CHAIN_BIT : PLAIN_BIT;
				new->source = source;
				new->no_kernel = i & 1;
				new->no_user = i & 2;
				new->defer = i & 4;
				ktap_add(parts, new, "%s.%s%s%s%s", source_names[source],
					 form ? "build_id_chain" : "callchain",
					 new->no_kernel ? ".no_kernel" : "",
					 new->no_user ? ".no_user" : "",
					 new->defer ? ".deferred" : "");
			}
		}
	}
	return ktap_main(argc, argv);
}
