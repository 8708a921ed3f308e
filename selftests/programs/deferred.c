// SPDX-License-Identifier: GPL-2.0
/*
 * Answers to deferred callchains: every event that asks for them gets them, in
 * its own form, and the one that stands for a sample's address is that address.
 */
#include "decode.h"
#include "event.h"
#include "ktap.h"
#include "made.h"
#include "oracle.h"
#include "promise.h"
#include "scope.h"
#include "work.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define IP_BIT		PERF_SAMPLE_BUILD_ID_OFFSET
#define CHAIN_BIT	PERF_SAMPLE_CALLCHAIN_BUILD_ID_OFFSET
#define CONSUMERS_MAX	8
#define CALLS		8
#define FRAMES		29	/* no other chain here is as long */

static struct event producer, consumers[CONSUMERS_MAX];
static __u64 frames[FRAMES];

static void note_sample(struct expect *expect, const struct sample *sample)
{
	(void)expect;
	promise_note_sample(sample, 0);
}

/* The form that an event gets: build IDs only where it asks for no plain chain. */
static bool wants_build_ids(const struct perf_event_attr *attr)
{
	return (attr->sample_type & CHAIN_BIT) ||
	       ((attr->sample_type & IP_BIT) &&
		!(attr->sample_type & PERF_SAMPLE_CALLCHAIN));
}

/* Entry i of an answer is a known address: in either form, it must be that. */
static void check_entry(struct expect *expect, const struct record *record,
			__u64 i, __u64 address)
{
	const struct build_id_offset *entry = record->callchain_deferred.entries;
	const char *problem;

	if (entry) {
		problem = i ? check_build_id(expect, &entry[i], address) :
			  check_answer(expect, &entry[i], address);
		if (problem)
			record_fail(record, "%s", problem);
	} else if (address && record->callchain_deferred.ips[i] != address) {
		record_fail(record, RULE_DEFERRED_ENTRIES
			    "entry %llu is %#llx; expected %#llx, the address that was on the stack",
			    i, record->callchain_deferred.ips[i], address);
	}
}

static void check_made_entries(struct expect *expect, const struct record *record)
{
	__u64 nr = record->callchain_deferred.nr;

	/* Only the made calls have this many frames. */
	if (nr != FRAMES + 1)
		return;
	for (unsigned int i = 0; i < FRAMES; i++)
		check_entry(expect, record, i + 1, frames[i]);
	expect->deferred++;
}

static void on_answer(struct expect *expect, const struct record *record)
{
	const struct perf_event_attr *attr = &expect->event->attr;
	bool build_ids = record->header->misc & PERF_RECORD_MISC_MMAP_BUILD_ID;
	struct promise *promise;

	if (record->header->type != PERF_RECORD_CALLCHAIN_DEFERRED)
		return;
	promise = promise_find(record->callchain_deferred.cookie);
	if (promise && promise->answers++)
		record_fail(record, RULE_DEFERRED_ANSWER
			    "a second answer to one cookie; expected 1");
	if (build_ids != wants_build_ids(attr))
		record_fail(record, "%s", build_ids ?
			    RULE_DEFERRED_FORM "build IDs for an event that did not ask for them" :
			    RULE_DEFERRED_FORM "no build IDs for an event that asked for them");
	if ((record->header->misc & ~PERF_RECORD_MISC_MMAP_BUILD_ID) !=
	    PERF_RECORD_MISC_USER)
		record_fail(record, RULE_HEADER_MISC
			    "misc is %#x; expected PERF_RECORD_MISC_USER, and no bit but the one of build IDs",
			    record->header->misc);
	if (!record->callchain_deferred.nr)
		record_fail(record, RULE_DEFERRED_ENTRIES
			    "no entry; expected the address where the task was");
	else if (promise && promise->address)
		check_entry(expect, record, 0, promise->address);
	if ((attr->sample_type & IP_BIT) &&
	    !(attr->sample_type & (CHAIN_BIT | PERF_SAMPLE_CALLCHAIN)) &&
	    record->callchain_deferred.nr > 1)
		record_fail(record, RULE_DEFERRED_ENTRIES
			    "more than one entry for an event without a callchain; expected 1");
	check_made_entries(expect, record);
	if (record->has_id && (attr->sample_type & PERF_SAMPLE_TID) &&
	    record->id.tid.tid != expect->tid)
		record_fail(record, RULE_RECORD_SAMPLE_ID "sample_id names another task");
	if (record->has_id && (attr->sample_type & PERF_SAMPLE_ID) &&
	    record->id.id.id != expect->event->id)
		record_fail(record, RULE_RECORD_SAMPLE_ID "sample_id names another event");
	if (record->has_id && (attr->sample_type & PERF_SAMPLE_TIME) &&
	    (record->id.time.time < expect->time_from ||
	     record->id.time.time > expect->time_to))
		record_fail(record, RULE_RECORD_SAMPLE_ID
			    "sample_id has a time before or after the test");
}

/* An event that makes no sample, but asks for the answers. */
static void open_consumer(struct event *event, __u64 bits, bool id_all,
			  pid_t pid, int cpu)
{
	struct perf_event_attr attr;
	int error;

	attr_init(&attr, SOURCE_CLOCK, bits);
	attr.config = PERF_COUNT_SW_DUMMY;
	attr.sample_period = 0;
	attr_defer(&attr, false, true);
	attr.sample_id_all = id_all;
	error = event_open_on(event, &attr, pid, cpu, -1, 32);
	if (error)
		ktap_stop(RULE_OPEN_ACCEPTED "a consumer with sample_type %#llx: %s", bits,
			  strerror(-error));
}

static void open_producer(enum source source, __u64 bits)
{
	struct perf_event_attr attr;
	int error;

	attr_init(&attr, source, bits);
	attr_defer(&attr, true, false);
	error = event_open(&producer, &attr);
	if (error)
		ktap_stop(RULE_OPEN_ACCEPTED "a producer with sample_type %#llx: %s", bits,
			  strerror(-error));
}

static void make_frames(void)
{
	for (unsigned int i = 0; i < FRAMES; i++)
		frames[i] = (__u64)open_consumer + 3 * i + 1;
}

/* Make samples with the events enabled, and collect the promises. */
static void produce(struct expect *expect, struct event *events,
		    unsigned int count, enum source source)
{
	make_frames();
	made_syscall(NULL, 0);
	expect_begin(expect, &producer, source);
	for (unsigned int i = 0; i < count; i++)
		event_enable(&events[i]);
	event_enable(&producer);
	for (unsigned int i = 0; i < CALLS; i++) {
		if (source == SOURCE_FAULTS)
			made_fault(frames, FRAMES);
		else
			made_syscall(frames, FRAMES);
	}
	event_disable(&producer);
	for (unsigned int i = 0; i < count; i++)
		event_disable(&events[i]);
	expect_end(expect);
	expect->on_sample = note_sample;
	check_ring(expect, NULL);
	expect->on_sample = NULL;
	if (promise_count < CALLS)
		ktap_fail(RULE_DEFERRED_COOKIE "%u cookies in %u samples", promise_count,
			  expect->samples);
}

/* Every promise has one answer in the ring of each consumer. */
static void check_consumer(struct expect *expect, struct event *event,
			   const char *name)
{
	unsigned int missing;

	for (unsigned int i = 0; i < promise_count; i++)
		promises[i].answers = 0;
	expect->event = event;
	expect->must_resolve = true;
	expect->deferred = 0;
	check_ring(expect, on_answer);
	missing = promises_missing();
	if (missing)
		ktap_fail(RULE_DEFERRED_ANSWER
			  "%s: %u of %u cookies were not answered; expected all", name, missing,
			  promise_count);
	if (ktap_failures())
		ktap_diag("consumer: %s, sample_type %#llx", name,
			  event->attr.sample_type);
}

struct consumer {
	const char *name;
	__u64 bits;
	bool id_all;
};

static const struct consumer forms[] = {
	{ "plain chain", PERF_SAMPLE_CALLCHAIN },
	{ "address", IP_BIT, true },
	{ "chain of build IDs", CHAIN_BIT },
	{ "plain chain with ids", PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_TID |
	  PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_ID, true },
	{ "build IDs with ids", CHAIN_BIT | PERF_SAMPLE_TID | PERF_SAMPLE_ID, true },
	{ "plain chain and address", PERF_SAMPLE_CALLCHAIN | IP_BIT | PERF_SAMPLE_TID, true },
	{ "nothing", 0 },
	{ "ids alone", PERF_SAMPLE_TID | PERF_SAMPLE_TIME, true },
};

struct forms_case {
	const char *name;
	enum source source;
	__u64 bits;		/* of the producer */
	bool reverse;
	unsigned int only;	/* one consumer alone: its number + 1 */
};

static void many_forms(const void *arg)
{
	const struct forms_case *test = arg;
	unsigned int count = test->only ? 1 : ARRAY_SIZE(forms);
	struct expect expect;

	need_bits(test->bits | CHAIN_BIT);
	open_producer(test->source, test->bits);
	for (unsigned int i = 0; i < count; i++) {
		unsigned int form = test->only ? test->only - 1 :
				    test->reverse ? count - 1 - i : i;

		open_consumer(&consumers[i], forms[form].bits,
			      forms[form].id_all, 0, -1);
	}
	produce(&expect, consumers, count, test->source);
	for (unsigned int i = 0; i < count; i++) {
		unsigned int form = test->only ? test->only - 1 :
				    test->reverse ? count - 1 - i : i;

		check_consumer(&expect, &consumers[i], forms[form].name);
	}
}

/* CPU-wide, and nothing but defer_output asks for records of other tasks. */
static void cpu_wide(const void *arg)
{
	const __u64 *bits = arg;
	struct expect expect;

	need_bits(*bits);
	open_producer(SOURCE_FAULTS, *bits);
	open_consumer(&consumers[0], *bits, false, -1, 0);
	produce(&expect, consumers, 1, SOURCE_FAULTS);
	check_consumer(&expect, &consumers[0], "CPU-wide");
}

/* A plain chain and an address in one event: the answer can hold no build ID. */
static void with_plain_chain(const void *arg)
{
	struct expect expect;

	(void)arg;
	need_bits(IP_BIT);
	open_producer(SOURCE_FAULTS, IP_BIT | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_IP);
	make_frames();
	expect_begin(&expect, &producer, SOURCE_FAULTS);
	expect.must_resolve = true;
	event_enable(&producer);
	for (unsigned int i = 0; i < CALLS; i++)
		made_fault(frames, FRAMES);
	event_disable(&producer);
	expect_end(&expect);
	check_ring(&expect, NULL);
	if (expect.resolved < least_resolved(CALLS))
		ktap_fail(RULE_BUILD_ID_RESOLVED
			  "%u of %u addresses are resolved in place; expected all: the plain answers will not do it",
			  expect.resolved, expect.samples);
}

/* The address of a kernel sample is known at once: nothing is deferred. */
static void kernel_address(const void *arg)
{
	struct expect expect;

	(void)arg;
	need_bits(IP_BIT);
	open_producer(SOURCE_SYSCALLS, IP_BIT | PERF_SAMPLE_IP);
	expect_begin(&expect, &producer, SOURCE_SYSCALLS);
	event_enable(&producer);
	work(SOURCE_SYSCALLS, CALLS);
	event_disable(&producer);
	expect_end(&expect);
	check_ring(&expect, NULL);
	if (expect.deferred || expect.samples < CALLS)
		ktap_fail(RULE_DEFERRED_ASKED
			  "%u samples, %u deferred; expected none deferred",
			  expect.samples, expect.deferred);
}

static unsigned int answer_count;

static void count_answer(struct expect *expect, const struct record *record)
{
	(void)expect;
	answer_count += record->header->type == PERF_RECORD_CALLCHAIN_DEFERRED;
}

/* No user part is asked for: nothing is promised, and nothing is answered. */
static void no_user_part(const void *arg)
{
	struct perf_event_attr attr;
	struct expect expect;
	int error;

	(void)arg;
	need_bits(CHAIN_BIT);
	attr_init(&attr, SOURCE_FAULTS, CHAIN_BIT);
	attr_defer(&attr, true, true);
	attr.exclude_callchain_user = 1;
	error = event_open(&producer, &attr);
	if (error)
		ktap_stop(RULE_OPEN_ACCEPTED "perf_event_open(): %s", strerror(-error));
	make_frames();
	expect_begin(&expect, &producer, SOURCE_FAULTS);
	event_enable(&producer);
	for (unsigned int i = 0; i < CALLS; i++)
		made_fault(frames, FRAMES);
	event_disable(&producer);
	expect_end(&expect);
	check_ring(&expect, count_answer);
	if (expect.deferred || answer_count)
		ktap_fail(RULE_DEFERRED_ASKED
			  "%u samples, %u promises, %u answers; expected no promise and no answer",
			  expect.samples, expect.deferred, answer_count);
}

static int watched;

static noinline void touch_watched(void)
{
	__atomic_store_n(&watched, watched + 1, __ATOMIC_RELAXED);
}

/* Samples of a breakpoint, or of a uprobe, and their own answers. */
static void own_answers(struct perf_event_attr *attr, void (*trigger)(void))
{
	struct expect expect;
	int error;

	attr_defer(attr, true, true);
	error = event_open(&producer, attr);
	if (error)
		ktap_skip("perf_event_open(): %s", strerror(-error));
	expect_begin(&expect, &producer, SOURCE_COUNT);
	event_enable(&producer);
	for (unsigned int i = 0; i < CALLS; i++)
		trigger();
	event_disable(&producer);
	expect_end(&expect);
	expect.on_sample = note_sample;
	check_ring(&expect, NULL);
	producer.tail = 0;
	expect.on_sample = NULL;
	if (promise_count < CALLS)
		ktap_fail(RULE_DEFERRED_COOKIE "%u cookies in %u samples", promise_count,
			  expect.samples);
	check_consumer(&expect, &producer, "itself");
}

static void breakpoint(const void *arg)
{
	const int *type = arg;
	struct perf_event_attr attr;

	need_bits(IP_BIT);
	attr_init(&attr, SOURCE_FAULTS, IP_BIT | PERF_SAMPLE_IP);
	attr.type = PERF_TYPE_BREAKPOINT;
	attr.config = 0;
	attr.exclude_kernel = 1;
	attr.bp_type = *type;
	attr.bp_addr = *type == HW_BREAKPOINT_X ? (__u64)touch_watched : (__u64)&watched;
	attr.bp_len = *type == HW_BREAKPOINT_X ? (int)sizeof(long) : HW_BREAKPOINT_LEN_4;
	own_answers(&attr, touch_watched);
}

/* Offset of a function in the file of this program. */
static __u64 file_offset(const void *function)
{
	const struct mapping *map;
	struct maps maps;
	__u64 offset = 0;

	maps_read(&maps);
	map = maps_find(&maps, (__u64)function);
	if (map)
		offset = (__u64)function - map->start + map->offset;
	maps_free(&maps);
	return offset;
}

static void user_probe(const void *arg)
{
	FILE *file = fopen("/sys/bus/event_source/devices/uprobe/type", "re");
	struct perf_event_attr attr;
	static char path[256];
	unsigned int type;

	(void)arg;
	need_bits(IP_BIT);
	if (!file || fscanf(file, "%u", &type) != 1)
		ktap_skip("no uprobe PMU");
	if (readlink("/proc/self/exe", path, sizeof(path) - 1) < 0)
		ktap_skip("/proc/self/exe: %m");
	attr_init(&attr, SOURCE_FAULTS, IP_BIT | PERF_SAMPLE_IP);
	attr.type = type;
	attr.config = 0;
	attr.uprobe_path = (__u64)path;
	attr.probe_offset = file_offset(touch_watched);
	own_answers(&attr, touch_watched);
}

static void *thread(void *arg)
{
	(void)arg;
	for (unsigned int i = 0; i < CALLS; i++)
		made_fault(frames, FRAMES);
	return NULL;
}

/* Threads and tasks that come and go: nothing but right answers. */
static void tasks(const void *arg)
{
	struct expect expect;
	pthread_t id;

	(void)arg;
	need_bits(IP_BIT | CHAIN_BIT);
	make_frames();
	open_producer(SOURCE_FAULTS, IP_BIT | CHAIN_BIT | PERF_SAMPLE_IP);
	open_consumer(&consumers[0], CHAIN_BIT | PERF_SAMPLE_TIME, true, -1, 0);
	expect_begin(&expect, &producer, SOURCE_FAULTS);
	event_enable(&consumers[0]);
	event_enable(&producer);
	for (unsigned int i = 0; i < 4; i++) {
		pid_t child;

		if (!pthread_create(&id, NULL, thread, NULL))
			pthread_join(id, NULL);
		child = fork();
		if (!child) {
			made_fault(frames, FRAMES);
			_exit(0);
		}
		waitpid(child, NULL, 0);
		made_fault(frames, FRAMES);
	}
	event_disable(&producer);
	event_disable(&consumers[0]);
	expect_end(&expect);
	check_ring(&expect, NULL);
	expect.event = &consumers[0];
	check_ring(&expect, on_answer);
}

static const struct forms_case forms_cases[] = {
	{ "chain_of_plain", SOURCE_SYSCALLS, PERF_SAMPLE_CALLCHAIN },
	{ "chain_of_build_ids", SOURCE_SYSCALLS, CHAIN_BIT },
	{ "fault_address", SOURCE_FAULTS, IP_BIT | PERF_SAMPLE_IP },
	{ "fault_address_and_chain", SOURCE_FAULTS, IP_BIT | CHAIN_BIT },
};

static const __u64 wide_bits[] = {
	PERF_SAMPLE_CALLCHAIN, IP_BIT, CHAIN_BIT, IP_BIT | CHAIN_BIT,
};

static const char * const wide_names[] = {
	"callchain", "address", "chain", "both",
};

static const int breakpoint_types[] = { HW_BREAKPOINT_W, HW_BREAKPOINT_X };

int main(int argc, char **argv)
{
	static struct forms_case cases[ARRAY_SIZE(forms_cases)][2 + ARRAY_SIZE(forms)];

	for (unsigned int i = 0; i < ARRAY_SIZE(forms_cases); i++) {
		for (unsigned int j = 0; j < 2 + ARRAY_SIZE(forms); j++) {
			struct forms_case *test = &cases[i][j];

			*test = forms_cases[i];
			test->reverse = j == 1;
			test->only = j < 2 ? 0 : j - 1;
			if (j < 2)
				ktap_add(many_forms, test, "forms.%s.%s", test->name,
					 j ? "reverse" : "forward");
			else
				ktap_add(many_forms, test, "forms.%s.only_%u",
					 test->name, j - 2);
		}
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(wide_bits); i++)
		ktap_add(cpu_wide, &wide_bits[i], "cpu_wide.%s", wide_names[i]);
	ktap_add(with_plain_chain, NULL, "address_with_plain_chain");
	ktap_add(kernel_address, NULL, "kernel_address");
	ktap_add(no_user_part, NULL, "no_user_part");
	ktap_add(breakpoint, &breakpoint_types[0], "own.breakpoint_write");
	ktap_add(breakpoint, &breakpoint_types[1], "own.breakpoint_execute");
	ktap_add(user_probe, NULL, "own.uprobe");
	ktap_add(tasks, NULL, "tasks");
	return ktap_main(argc, argv);
}
