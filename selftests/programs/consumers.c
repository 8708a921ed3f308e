// SPDX-License-Identifier: GPL-2.0
/*
 * Several events get one answer each to one cookie: the callchain of addresses,
 * in a ring with room for it, says what all others must hold, whatever their
 * form is, how deep the chain, and how full another ring.
 */
#include "decode.h"
#include "event.h"
#include "ktap.h"
#include "made.h"
#include "oracle.h"
#include "scope.h"

#include <linux/perf_event.h>
#include <string.h>
#include <unistd.h>

#define IP_BIT		PERF_SAMPLE_BUILD_ID_OFFSET
#define CHAIN_BIT	PERF_SAMPLE_CALLCHAIN_BUILD_ID_OFFSET
#define CONSUMERS	4
#define ANSWERS_MAX	256
#define RING_PAGES	64

struct answer {
	__u64 cookie, nr;
	__u64 ips[MADE_MAX];
	bool seen;		/* in the ring that is compared */
};

struct consumers_case {
	const char *name;
	unsigned int frames, calls;
	__u64 bits[CONSUMERS];		/* in the order of opening */
	__u64 full;			/* bits of the event whose ring is too small */
};

static struct event producer, consumers[CONSUMERS];
static struct answer answers[ANSWERS_MAX];
static unsigned int answer_count, deepest;
static __u64 frames[MADE_MAX];

static struct answer *find_answer(__u64 cookie)
{
	for (unsigned int i = 0; i < answer_count; i++)
		if (answers[i].cookie == cookie)
			return &answers[i];
	return NULL;
}

/* The callchain of addresses: what the others are compared with. */
static void note_answer(struct expect *expect, const struct record *record)
{
	struct answer *answer = &answers[answer_count];
	__u64 nr = record->callchain_deferred.nr;

	(void)expect;
	if (record->header->type != PERF_RECORD_CALLCHAIN_DEFERRED)
		return;
	if (!record->callchain_deferred.ips) {
		record_fail(record, RULE_DEFERRED_FORM
			    "build IDs for an event that did not ask for them");
		return;
	}
	if (answer_count == ANSWERS_MAX || nr > MADE_MAX)
		ktap_stop(RULE_TEST_SETUP "more answers, or entries, than this test can hold");
	answer_count++;
	answer->cookie = record->callchain_deferred.cookie;
	answer->nr = nr;
	memcpy(answer->ips, record->callchain_deferred.ips, nr * sizeof(*answer->ips));
	if (nr > deepest)
		deepest = nr;
}

/* Every entry is that of the answer in addresses. */
static void check_entries(struct expect *expect, const struct record *record,
			  const struct answer *answer)
{
	const struct build_id_offset *entry = record->callchain_deferred.entries;
	const char *problem;

	for (__u64 i = 0; i < record->callchain_deferred.nr; i++) {
		if (entry) {
			problem = check_build_id(expect, &entry[i], answer->ips[i]);
			if (problem)
				record_fail(record, "entry %llu: %s", i, problem);
		} else if (record->callchain_deferred.ips[i] != answer->ips[i]) {
			record_fail(record, RULE_DEFERRED_ENTRIES
				    "entry %llu is %#llx; expected %#llx, as another event got it",
				    i, record->callchain_deferred.ips[i], answer->ips[i]);
		}
	}
}

static void compare_answer(struct expect *expect, const struct record *record)
{
	__u64 bits = expect->event->attr.sample_type;
	bool build_ids = record->header->misc & PERF_RECORD_MISC_MMAP_BUILD_ID;
	struct answer *answer;
	__u64 nr;

	if (record->header->type != PERF_RECORD_CALLCHAIN_DEFERRED)
		return;
	if (build_ids != !!(bits & (IP_BIT | CHAIN_BIT)))
		record_fail(record, "%s", build_ids ?
			    RULE_DEFERRED_FORM "build IDs for an event that did not ask for them" :
			    RULE_DEFERRED_FORM "no build IDs for an event that asked for them");
	answer = find_answer(record->callchain_deferred.cookie);
	if (!answer) {
		record_fail(record, RULE_DEFERRED_ANSWER
			    "an answer that another event did not get; expected one each");
		return;
	}
	answer->seen = true;
	nr = bits & IP_BIT && answer->nr ? 1 : answer->nr;
	if (record->callchain_deferred.nr != nr)
		record_fail(record, RULE_DEFERRED_ENTRIES
			    "%llu entries; expected %llu: another event got %llu of this callchain",
			    record->callchain_deferred.nr, nr, answer->nr);
	else
		check_entries(expect, record, answer);
}

/* All answers, where the ring has room for them. */
static void check_consumer(const struct consumers_case *test, struct expect *expect,
			   struct event *event)
{
	__u64 bits = event->attr.sample_type;
	unsigned int missing = 0;

	for (unsigned int i = 0; i < answer_count; i++)
		answers[i].seen = false;
	expect->event = event;
	check_ring(expect, compare_answer);
	for (unsigned int i = 0; i < answer_count; i++)
		missing += !answers[i].seen;
	if (bits == test->full && !missing)
		ktap_fail(RULE_TEST_SETUP "the ring that should be full is not");
	if (bits != test->full && missing)
		ktap_fail(RULE_DEFERRED_ANSWER
			  "%u of %u answers are missing; expected all, as another event got them",
			  missing, answer_count);
	if (ktap_failures())
		ktap_diag("sample_type %#llx", bits);
}

static void open_producer(void)
{
	struct perf_event_attr attr;
	int error;

	attr_init(&attr, SOURCE_SYSCALLS, PERF_SAMPLE_CALLCHAIN);
	attr_defer(&attr, true, false);
	error = event_open(&producer, &attr);
	if (error)
		ktap_stop(RULE_OPEN_ACCEPTED "a producer: %s", strerror(-error));
}

static void open_consumer(const struct consumers_case *test, struct event *event, __u64 bits)
{
	struct perf_event_attr attr;
	int error;

	attr_init(&attr, SOURCE_CLOCK, bits);
	attr.config = PERF_COUNT_SW_DUMMY;
	attr.sample_period = 0;
	attr_defer(&attr, false, true);
	error = event_open_on(event, &attr, 0, -1, -1, bits == test->full ? 1 : RING_PAGES);
	if (error)
		ktap_stop(RULE_OPEN_ACCEPTED "a consumer with sample_type %#llx: %s", bits,
			  strerror(-error));
}

/* One answer each to the made calls, while every event is enabled. */
static void produce(const struct consumers_case *test, struct expect *expect)
{
	for (unsigned int i = 0; i < test->frames; i++)
		frames[i] = (__u64)made_syscall + i % 16;
	made_syscall(NULL, 0);
	expect_begin(expect, &producer, SOURCE_SYSCALLS);
	expect->must_resolve = true;
	for (unsigned int i = 0; i < CONSUMERS; i++)
		event_enable(&consumers[i]);
	event_enable(&producer);
	for (unsigned int i = 0; i < test->calls; i++)
		made_syscall(frames, test->frames);
	event_disable(&producer);
	for (unsigned int i = 0; i < CONSUMERS; i++)
		event_disable(&consumers[i]);
	expect_end(expect);
}

static void compare(const void *arg)
{
	const struct consumers_case *test = arg;
	struct expect expect;

	need_bits(IP_BIT | CHAIN_BIT);
	open_producer();
	for (unsigned int i = 0; i < CONSUMERS; i++)
		open_consumer(test, &consumers[i], test->bits[i]);
	produce(test, &expect);
	for (unsigned int i = 0; i < CONSUMERS; i++) {
		expect.event = &consumers[i];
		if (test->bits[i] == PERF_SAMPLE_CALLCHAIN)
			check_ring(&expect, note_answer);
	}
	ktap_diag("%u answers, the largest has %u entries", answer_count, deepest);
	if (answer_count < test->calls)
		ktap_fail(RULE_DEFERRED_ANSWER "%u answers; expected at least %u", answer_count,
			  test->calls);
	for (unsigned int i = 0; i < CONSUMERS; i++)
		if (test->bits[i] != PERF_SAMPLE_CALLCHAIN)
			check_consumer(test, &expect, &consumers[i]);
}

#define PLAIN		PERF_SAMPLE_CALLCHAIN
#define WITH_TIME	(CHAIN_BIT | PERF_SAMPLE_TIME)
#define NO_FORM		PERF_SAMPLE_TIME

static const struct consumers_case cases[] = {
	{ "126_frames", 126, 6, { PLAIN, CHAIN_BIT, IP_BIT, WITH_TIME } },
	{ "127_frames", 127, 6, { CHAIN_BIT, IP_BIT, WITH_TIME, PLAIN } },
	{ "254_frames", 254, 6, { PLAIN, CHAIN_BIT, IP_BIT, WITH_TIME } },
	{ "255_frames", 255, 6, { CHAIN_BIT, IP_BIT, WITH_TIME, PLAIN } },
	{ "400_frames", 400, 6, { PLAIN, CHAIN_BIT, IP_BIT, WITH_TIME } },
	{ "1000_frames", 1000, 6, { CHAIN_BIT, IP_BIT, WITH_TIME, PLAIN } },
	{ "behind_full_chain", 20, 100, { CHAIN_BIT, PLAIN, NO_FORM, IP_BIT }, CHAIN_BIT },
	{ "before_full_chain", 20, 100, { PLAIN, NO_FORM, IP_BIT, CHAIN_BIT }, CHAIN_BIT },
	{ "behind_full_address", 20, 100, { IP_BIT, PLAIN, NO_FORM, CHAIN_BIT }, IP_BIT },
	{ "before_full_address", 20, 100, { PLAIN, NO_FORM, CHAIN_BIT, IP_BIT }, IP_BIT },
	{ "behind_full_plain", 20, 100, { NO_FORM, CHAIN_BIT, IP_BIT, PLAIN }, NO_FORM },
};

int main(int argc, char **argv)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++)
		ktap_add(compare, &cases[i], "%s", cases[i].name);
	return ktap_main(argc, argv);
}
