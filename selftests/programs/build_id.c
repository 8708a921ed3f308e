// SPDX-License-Identifier: GPL-2.0
/*
 * Build IDs and offsets: resolved where the lock and the pages are certain,
 * and right wherever they are resolved; in place, and deferred.
 */
#include "decode.h"
#include "event.h"
#include "ktap.h"
#include "oracle.h"
#include "promise.h"
#include "scope.h"
#include "work.h"

#include <linux/perf_event.h>
#include <string.h>

#define SAMPLES		16
#define IP_BIT		PERF_SAMPLE_BUILD_ID_OFFSET
#define CHAIN_BIT	PERF_SAMPLE_CALLCHAIN_BUILD_ID_OFFSET

static struct event event;

struct build_id_case {
	const char *name;
	enum source source;
	__u64 bits;
	bool no_kernel_chain;
	bool sample_id_all;
};

static void open_case(const struct build_id_case *test,
		      struct perf_event_attr *attr)
{
	int error;

	need_bits(test->bits);
	attr->exclude_callchain_kernel = test->no_kernel_chain;
	attr->sample_id_all = test->sample_id_all;
	error = event_open(&event, attr);
	if (error)
		ktap_stop(RULE_OPEN_ACCEPTED "perf_event_open(): %s", strerror(-error));
}

static void make_samples(struct expect *expect, enum source source)
{
	expect_begin(expect, &event, source);
	expect->must_resolve = source != SOURCE_CLOCK;
	event_enable(&event);
	work_on(&event, source, SAMPLES);
	event_disable(&event);
	expect_end(expect);
}

/* In place: what must be resolved is, and nothing is resolved wrongly. */
static void in_place(const void *arg)
{
	const struct build_id_case *test = arg;
	struct perf_event_attr attr;
	struct expect expect;

	attr_init(&attr, test->source, test->bits);
	open_case(test, &attr);
	make_samples(&expect, test->source);
	check_ring(&expect, NULL);
	ktap_diag("%u samples, %u entries resolved, %u not", expect.samples,
		  expect.resolved, expect.unresolved);
	if (test->source != SOURCE_CLOCK && expect.samples < SAMPLES)
		ktap_fail(RULE_SAMPLES_COUNT "%u samples; expected %u", expect.samples, SAMPLES);
	if (test->source == SOURCE_SYSCALLS && !(test->bits & CHAIN_BIT))
		return;		/* a kernel address: nothing to resolve */
	if (test->source != SOURCE_CLOCK && expect.resolved < least_resolved(SAMPLES))
		ktap_fail(RULE_BUILD_ID_RESOLVED
			  "%u entries resolved in %u samples; expected each own address at least",
			  expect.resolved, expect.samples);
}

/* The same from an event of a whole CPU, for the samples of this task. */
static void cpu_wide(const void *arg)
{
	const struct build_id_case *test = arg;
	struct perf_event_attr attr;
	const struct perf_event_header *header;
	struct expect expect;
	struct sample sample;
	unsigned int own = 0;
	int error;

	need_bits(test->bits);
	attr_init(&attr, test->source, test->bits | PERF_SAMPLE_TID);
	error = event_open_on(&event, &attr, -1, 0, -1, EVENT_PAGES);
	if (error)
		ktap_stop(RULE_OPEN_ACCEPTED "perf_event_open(): %s", strerror(-error));
	make_samples(&expect, test->source);
	while ((header = event_next(&event))) {
		const char *problem = NULL;

		if (header->type == PERF_RECORD_SAMPLE)
			problem = decode_sample(&attr, header, &sample);
		if (problem)
			ktap_fail("size %u: %s", header->size, problem);
		if (problem || header->type != PERF_RECORD_SAMPLE ||
		    sample.tid.tid != expect.tid)
			continue;
		check_sample(&expect, &sample);
		own++;
	}
	ktap_diag("%u samples of this task, %u entries resolved, %u not", own,
		  expect.resolved, expect.unresolved);
	if (own < SAMPLES || expect.resolved < least_resolved(SAMPLES))
		ktap_fail(RULE_BUILD_ID_RESOLVED
			  "%u entries resolved in %u samples of this task; expected %u of each",
			  expect.resolved, own, SAMPLES);
}

static unsigned int answer_count;

static void check_answer_entries(struct expect *expect,
				 const struct record *record,
				 const struct promise *promise)
{
	const struct build_id_offset *entry = record->callchain_deferred.entries;
	__u64 nr = record->callchain_deferred.nr;
	const char *problem;

	if (!(record->header->misc & PERF_RECORD_MISC_MMAP_BUILD_ID)) {
		record_fail(record, RULE_DEFERRED_FORM
			    "entries without build IDs for an event that asks for them");
		return;
	}
	if (!nr)
		record_fail(record, RULE_DEFERRED_ENTRIES
			    "no entry; expected the address where the task was");
	if (!(event.attr.sample_type & CHAIN_BIT) && nr > 1)
		record_fail(record, RULE_DEFERRED_ENTRIES
			    "more than one entry for an event without a callchain; expected 1");
	for (__u64 i = 0; i < nr; i++) {
		__u64 address = promise && !i ? promise->address : 0;

		problem = check_answer(expect, &entry[i], address);
		if (problem)
			record_fail(record, "%s", problem);
	}
}

static void note_answer(struct expect *expect, const struct record *record)
{
	struct promise *promise;

	if (record->header->type != PERF_RECORD_CALLCHAIN_DEFERRED)
		return;
	answer_count++;
	promise = promise_find(record->callchain_deferred.cookie);
	if (!record->callchain_deferred.cookie)
		record_fail(record, RULE_DEFERRED_COOKIE "the cookie is 0");
	else if (promise && promise->answers)
		record_fail(record, RULE_DEFERRED_ANSWER
			    "a second answer to one cookie; expected 1");
	if (promise)
		promise->answers++;
	check_answer_entries(expect, record, promise);
	if (record->has_id && (event.attr.sample_type & PERF_SAMPLE_TID) &&
	    (record->id.tid.pid != expect->pid || record->id.tid.tid != expect->tid))
		record_fail(record, RULE_RECORD_SAMPLE_ID "sample_id names another task");
	if (record->has_id && (event.attr.sample_type & PERF_SAMPLE_IDENTIFIER) &&
	    record->id.identifier.id != event.id)
		record_fail(record, RULE_RECORD_SAMPLE_ID "sample_id names another event");
}

static void collect(struct expect *expect)
{
	const struct perf_event_header *header;
	struct sample sample;

	/* Answers may stand before their samples: first read all promises. */
	while ((header = event_next(&event)))
		if (header->type == PERF_RECORD_SAMPLE &&
		    !decode_sample(&event.attr, header, &sample))
			promise_note_sample(&sample, 0);
	event.tail = 0;
	check_ring(expect, note_answer);
}

static void deferred(const void *arg)
{
	const struct build_id_case *test = arg;
	unsigned int missing;
	struct perf_event_attr attr;
	struct expect expect;

	attr_init(&attr, test->source, test->bits);
	attr_defer(&attr, true, true);
	open_case(test, &attr);
	make_samples(&expect, test->source);
	collect(&expect);
	missing = promises_missing();
	ktap_diag("%u samples, %u cookies, %u answers, %u entries resolved, %u not",
		  expect.samples, promise_count, answer_count, expect.resolved,
		  expect.unresolved);
	/* The call that disables the event ends after it: its answer is lost. */
	if (missing > 1)
		ktap_fail(RULE_DEFERRED_ANSWER
			  "%u of %u cookies were never answered; expected at most 1, that of the call which disables the event",
			  missing,
			  promise_count);
	if (test->source != SOURCE_CLOCK && promise_count < SAMPLES)
		ktap_fail(RULE_DEFERRED_COOKIE "%u cookies in %u samples", promise_count,
			  expect.samples);
}

static const struct build_id_case in_place_cases[] = {
	{ "fault.ip", SOURCE_FAULTS, IP_BIT | PERF_SAMPLE_IP },
	{ "fault.ip_alone", SOURCE_FAULTS, IP_BIT },
	{ "fault.chain", SOURCE_FAULTS, CHAIN_BIT | PERF_SAMPLE_CALLCHAIN },
	{ "fault.both", SOURCE_FAULTS, IP_BIT | CHAIN_BIT },
	{ "syscall.ip", SOURCE_SYSCALLS, IP_BIT | PERF_SAMPLE_IP },
	{ "syscall.chain", SOURCE_SYSCALLS, CHAIN_BIT | PERF_SAMPLE_CALLCHAIN },
	{ "syscall.chain_alone", SOURCE_SYSCALLS, CHAIN_BIT },
	{ "syscall.user_chain", SOURCE_SYSCALLS, CHAIN_BIT, .no_kernel_chain = true },
	{ "clock.ip", SOURCE_CLOCK, IP_BIT | PERF_SAMPLE_IP },
	{ "clock.chain", SOURCE_CLOCK, CHAIN_BIT | PERF_SAMPLE_CALLCHAIN },
};

static const struct build_id_case wide_cases[] = {
	{ "fault.ip", SOURCE_FAULTS, IP_BIT | PERF_SAMPLE_IP },
	{ "fault.chain", SOURCE_FAULTS, CHAIN_BIT },
	{ "syscall.chain", SOURCE_SYSCALLS, CHAIN_BIT },
};

static const struct build_id_case deferred_cases[] = {
	{ "fault.ip", SOURCE_FAULTS, IP_BIT | PERF_SAMPLE_IP },
	{ "fault.ip_alone", SOURCE_FAULTS, IP_BIT },
	{ "fault.chain", SOURCE_FAULTS, CHAIN_BIT },
	{ "fault.both", SOURCE_FAULTS, IP_BIT | CHAIN_BIT | PERF_SAMPLE_IP },
	{ "fault.sample_id", SOURCE_FAULTS,
	  IP_BIT | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
	  PERF_SAMPLE_IDENTIFIER, .sample_id_all = true },
	{ "syscall.chain", SOURCE_SYSCALLS, CHAIN_BIT },
	{ "syscall.user_chain", SOURCE_SYSCALLS, CHAIN_BIT, .no_kernel_chain = true },
	{ "clock.ip", SOURCE_CLOCK, IP_BIT | PERF_SAMPLE_IP },
	{ "clock.chain", SOURCE_CLOCK, CHAIN_BIT },
};

int main(int argc, char **argv)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(in_place_cases); i++)
		ktap_add(in_place, &in_place_cases[i], "in_place.%s",
			 in_place_cases[i].name);
	for (unsigned int i = 0; i < ARRAY_SIZE(deferred_cases); i++)
		ktap_add(deferred, &deferred_cases[i], "deferred.%s",
			 deferred_cases[i].name);
	for (unsigned int i = 0; i < ARRAY_SIZE(wide_cases); i++)
		ktap_add(cpu_wide, &wide_cases[i], "cpu_wide.%s", wide_cases[i].name);
	return ktap_main(argc, argv);
}
