// SPDX-License-Identifier: GPL-2.0
/*
 * Build IDs while the mappings are locked, or change under the samples: none is
 * resolved that cannot be, and none is a mix of two files.
 */
#include "decode.h"
#include "elf_file.h"
#include "event.h"
#include "ktap.h"
#include "made.h"
#include "oracle.h"
#include "scope.h"

#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define IP_BIT		PERF_SAMPLE_BUILD_ID_OFFSET
#define CHAIN_BIT	PERF_SAMPLE_CALLCHAIN_BUILD_ID_OFFSET
#define CALLS		8
#define ROUNDS		1500
#define REST_TURNS	3000	/* about as long as a change takes */
#define SPOT		0x40	/* in the page that changes */

static struct event event;
static unsigned int resolved, answers;

/* Take the lock of the mappings for writing, from this program's own text. */
static noinline void lock_for_writing(void *page)
{
	mprotect(page, 4096, PROT_READ);
	mprotect(page, 4096, PROT_READ | PROT_WRITE);
}

static void count_resolved(struct expect *expect, const struct sample *sample)
{
	(void)expect;
	for (__u64 i = 0; i < sample->callchain_build_id_offset.nr; i++)
		resolved += !!sample->callchain_build_id_offset.entries[i].size;
}

static void count_answers(struct expect *expect, const struct record *record)
{
	const struct build_id_offset *entry = record->callchain_deferred.entries;
	const char *problem;

	if (record->header->type != PERF_RECORD_CALLCHAIN_DEFERRED || !entry ||
	    !record->callchain_deferred.nr)
		return;
	answers++;
	problem = check_build_id(expect, entry, 0);
	if (problem)
		record_fail(record, "%s", problem);
}

/* Sampled with the lock held for writing: in place, nothing can be resolved. */
static void locked(const void *arg)
{
	long id = tracepoint_id("mmap_lock", "mmap_lock_acquire_returned");
	const bool *defer = arg;
	struct perf_event_attr attr;
	struct expect expect;
	void *page;
	int error;

	need_bits(CHAIN_BIT);
	if (id < 0)
		ktap_skip("no mmap_lock:mmap_lock_acquire_returned");
	attr_init(&attr, SOURCE_SYSCALLS, CHAIN_BIT);
	attr.config = id;
	attr_defer(&attr, *defer, *defer);
	error = event_open(&event, &attr);
	if (error)
		ktap_stop(RULE_OPEN_ACCEPTED "perf_event_open(): %s", strerror(-error));
	if (ioctl(event.fd, PERF_EVENT_IOC_SET_FILTER, "write == 1 && success == 1"))
		ktap_skip("PERF_EVENT_IOC_SET_FILTER: %m");
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	expect_begin(&expect, &event, SOURCE_COUNT);
	event_enable(&event);
	for (unsigned int i = 0; i < CALLS; i++)
		lock_for_writing(page);
	event_disable(&event);
	expect_end(&expect);
	expect.on_sample = count_resolved;
	expect.must_resolve = *defer;
	check_ring(&expect, count_answers);
	ktap_diag("%u samples, %u entries resolved in place, %u answers",
		  expect.samples, resolved, answers);
	if (expect.samples < CALLS)
		ktap_fail(RULE_SAMPLES_COUNT
			  "%u samples; expected %u, one of each call that takes the lock",
			  expect.samples, CALLS);
	if (!*defer && resolved)
		ktap_fail(RULE_BUILD_ID_LOCKED
			  "%u entries resolved under a lock that is held for writing; expected none",
			  resolved);
	if (*defer && answers < CALLS)
		ktap_fail(RULE_DEFERRED_ANSWER
			  "%u answers; expected %u, one for each sample", answers, expect.samples);
}

static struct elf_file files[2];
static char *changing;
static bool stop;
static unsigned int changes, of[2];

/* Map now one file, now the other in one place; they differ in page, too. */
static void map_file(unsigned int which)
{
	mmap(changing, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED,
	     files[which].fd, (2 + which) * 4096);
}

static void *change(void *arg)
{
	(void)arg;
	for (unsigned int i = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++) {
		map_file(i % 2);
		__atomic_store_n(&changes, i, __ATOMIC_RELAXED);
		/* The lock is free for a while. */
		for (unsigned int j = 0; j < REST_TURNS; j++)
			asm volatile("" : : : "memory");
	}
	return NULL;
}

static bool of_file(const struct build_id_offset *bid, unsigned int which)
{
	for (unsigned int i = 0; i < sizeof(bid->build_id); i++)
		if (bid->build_id[i] != files[which].first_byte + i)
			return false;
	return true;
}

static void check_changing(const struct build_id_offset *bid, const void *record,
			   size_t size)
{
	unsigned int which;

	if (!bid->size)
		return;
	for (which = 0; which < 2 && !of_file(bid, which); which++)
		;
	if (which == 2)
		return;		/* of this program */
	resolved++;
	of[which]++;
	if (bid->offset != (2 + which) * 4096ULL + SPOT &&
	    ktap_fail(RULE_BUILD_ID_OFFSET
		      "offset %#llx in file %u; expected %#llx, which is mapped there",
		      bid->offset, which, (2 + which) * 4096ULL + SPOT))
		ktap_hexdump(record, size);
}

static void on_sample(struct expect *expect, const struct sample *sample)
{
	(void)expect;
	for (__u64 i = 0; i < sample->callchain_build_id_offset.nr; i++)
		check_changing(&sample->callchain_build_id_offset.entries[i],
			       sample->header, sample->header->size);
}

static void on_answer(struct expect *expect, const struct record *record)
{
	(void)expect;
	if (record->header->type != PERF_RECORD_CALLCHAIN_DEFERRED ||
	    !record->callchain_deferred.entries)
		return;
	for (__u64 i = 0; i < record->callchain_deferred.nr; i++)
		check_changing(&record->callchain_deferred.entries[i],
			       record->header, record->header->size);
}

/* Read what is there, with no mappings to compare: they change. */
static void drain(void)
{
	const struct perf_event_header *header;
	struct expect expect = { .event = &event, .source = SOURCE_COUNT };
	struct sample sample;
	struct record record;
	const char *problem;

	while ((header = event_next(&event))) {
		if (header->type == PERF_RECORD_SAMPLE) {
			problem = decode_sample(&event.attr, header, &sample);
			if (!problem)
				on_sample(&expect, &sample);
		} else {
			problem = decode_record(&event.attr, header, &record);
			if (!problem)
				on_answer(&expect, &record);
		}
		if (problem)
			ktap_fail("type %u size %u: %s", header->type, header->size,
				  problem);
	}
}

/* One place whose file another thread changes all the time. */
static void changing_mapping(const void *arg)
{
	const bool *defer = arg;
	struct perf_event_attr attr;
	__u64 address[16];
	unsigned int rounds = 0;
	pthread_t thread;
	int error;

	need_bits(CHAIN_BIT);
	for (unsigned int i = 0; i < 2; i++) {
		files[i].id_size = 20;
		files[i].first_byte = i ? 100 : 50;
		elf_file_make(&files[i]);
		elf_file_headers(&files[i]);
	}
	changing = elf_file_code(&files[0], 0);
	for (unsigned int i = 0; i < ARRAY_SIZE(address); i++)
		address[i] = (__u64)changing + SPOT;
	attr_init(&attr, SOURCE_SYSCALLS, CHAIN_BIT);
	attr_defer(&attr, *defer, *defer);
	error = event_open(&event, &attr);
	if (error)
		ktap_stop(RULE_OPEN_ACCEPTED "perf_event_open(): %s", strerror(-error));
	if (pthread_create(&thread, NULL, change, NULL))
		ktap_skip("pthread_create() failed");
	while (__atomic_load_n(&changes, __ATOMIC_RELAXED) < 100)
		sched_yield();
	event_enable(&event);
	/* On a busy machine the other thread may stop within a change, time and again. */
	for (unsigned int i = 0; i < ROUNDS || (!resolved && i < 10 * ROUNDS); i++) {
		made_syscall(address, ARRAY_SIZE(address));
		drain();
		rounds++;
	}
	event_disable(&event);
	drain();
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	ktap_diag("%u of %u entries resolved, %u to the first file and %u to the second, in %u changes",
		  resolved, rounds * 16, of[0], of[1], changes);
	if (resolved < least_resolved(1))
		ktap_fail(RULE_BUILD_ID_RESOLVED "not one of %u entries was resolved",
			  rounds * 16);
}

static const bool ways[] = { false, true };

int main(int argc, char **argv)
{
	ktap_add(locked, &ways[0], "in_place.locked");
	ktap_add(locked, &ways[1], "deferred.locked");
	ktap_add(changing_mapping, &ways[0], "in_place.changing");
	ktap_add(changing_mapping, &ways[1], "deferred.changing");
	return ktap_main(argc, argv);
}
