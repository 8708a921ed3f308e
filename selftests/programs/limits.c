// SPDX-License-Identifier: GPL-2.0
/*
 * Records of the types in scope as large as a record can be, rings that are
 * smaller than one, rings that overwrite from their start, and wakeups.
 */
#include "decode.h"
#include "event.h"
#include "ktap.h"
#include "oracle.h"
#include "scope.h"
#include "work.h"

#include <linux/perf_event.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define FAULTS		64
#define LARGEST		65528	/* what header.size can say, in words of 8 bytes */
#define OVERWRITE_PAGES	2

static struct event event;
static __u64 lost;

static void init(struct perf_event_attr *attr, const struct scoped_type *type,
		 __u64 bits)
{
	const struct sample_type *known = sample_type(type->bit);

	need_bits(type->bit);
	if (known && known->needs[0])
		ktap_skip("needs %s", known->needs);
	attr_init(attr, SOURCE_FAULTS, type->bit | bits);
}

static void open_or_stop(const struct perf_event_attr *attr, unsigned int pages)
{
	int error = event_open_on(&event, attr, 0, -1, -1, pages);

	if (error)
		ktap_stop(RULE_OPEN_ACCEPTED "perf_event_open(): %s", strerror(-error));
}

static void note_lost(struct expect *expect, const struct record *record)
{
	(void)expect;
	if (record->header->type == PERF_RECORD_LOST)
		lost += record->lost.lost;
}

/* The bit of attr.read_format, or 0 when this kernel does not take it. */
static __u64 known_format(__u64 bit)
{
	struct perf_event_attr attr;
	int fd;

	attr_init(&attr, SOURCE_CLOCK, 0);
	attr.read_format = bit;
	fd = attr_open(&attr, 0, -1);
	if (fd < 0)
		return 0;
	close(fd);
	return bit;
}

/* Every record up to the largest: the copy of the stack gives way, the rest is whole. */
static void near_64k(const void *arg)
{
	const struct scoped_type *type = arg;
	struct perf_event_attr attr;
	unsigned int largest = 0;

	init(&attr, type, PERF_SAMPLE_IP | PERF_SAMPLE_STACK_USER);
	for (unsigned int stack = LARGEST - 320; stack <= LARGEST; stack += 8) {
		const struct perf_event_header *header;
		struct expect expect;
		struct sample sample;
		const char *problem;
		unsigned int samples = 0;

		attr.sample_stack_user = stack;
		open_or_stop(&attr, EVENT_PAGES);
		expect_begin(&expect, &event, SOURCE_FAULTS);
		expect.must_resolve = true;
		event_enable(&event);
		work(SOURCE_FAULTS, 1);
		event_disable(&event);
		expect_end(&expect);
		while ((header = event_next(&event))) {
			problem = decode_sample(&attr, header, &sample);
			if (problem)
				ktap_fail("%s", problem);
			else
				check_sample(&expect, &sample);
			samples++;
			if (header->size > largest)
				largest = header->size;
		}
		if (!samples)
			ktap_fail(RULE_SAMPLES_COUNT
				  "no sample; expected one, with as much of the stack as fits");
		maps_free(&expect.maps);
		event_close(&event);
		if (ktap_failures()) {
			ktap_diag("with attr.sample_stack_user %u", stack);
			return;
		}
	}
	ktap_diag("the largest record has %u bytes", largest);
	if (largest < LARGEST - 256)
		ktap_fail(RULE_HEADER_SIZE
			  "the largest record has %u bytes; expected up to %u, for so much stack was asked",
			  largest, LARGEST);
}

/* No record fits into the ring: none is written, and all are counted. */
static void too_small(const void *arg)
{
	struct perf_event_attr attr;
	__u64 count[2] = { 0 };

	init(&attr, arg, PERF_SAMPLE_IP | PERF_SAMPLE_STACK_USER);
	attr.sample_stack_user = 8192;
	attr.read_format = known_format(PERF_FORMAT_LOST);
	open_or_stop(&attr, 1);
	event_enable(&event);
	work(SOURCE_FAULTS, FAULTS);
	event_disable(&event);
	if (event.page->data_head)
		ktap_fail(RULE_LOST_COUNT
			  "%llu bytes were written to a ring of one page; expected 0, a record has more than 8192",
			  event.page->data_head);
	if (read(event.fd, count, sizeof(count)) < 8)
		ktap_stop(RULE_TEST_SETUP "read: %m");
	if (count[0] < FAULTS)
		ktap_fail(RULE_SAMPLES_COUNT "%llu faults were counted; expected %u", count[0],
			  FAULTS);
	if (attr.read_format && count[1] != count[0])
		ktap_fail(RULE_LOST_COUNT
			  "PERF_FORMAT_LOST says %llu; expected %llu, as many faults were counted",
			  count[1], count[0]);
}

/* A ring that holds one record at a time, read after each. */
static void one_at_a_time(const void *arg)
{
	struct perf_event_attr attr;
	struct expect expect;
	__u64 count[1] = { 0 };

	init(&attr, arg, PERF_SAMPLE_IP | PERF_SAMPLE_STACK_USER);
	attr.read_format = 0;
	attr.sample_stack_user = 3000;
	open_or_stop(&attr, 1);
	expect_begin(&expect, &event, SOURCE_FAULTS);
	expect.gaps = true;
	for (unsigned int i = 0; i < FAULTS; i++) {
		event_enable(&event);
		work(SOURCE_FAULTS, 1 + i % 2);
		event_disable(&event);
		maps_free(&expect.maps);
		expect_end(&expect);
		expect.must_resolve = true;
		check_ring(&expect, note_lost);
	}
	if (read(event.fd, count, sizeof(count)) != sizeof(count))
		ktap_stop(RULE_TEST_SETUP "read: %m");
	/* The last loss is told with the next record: up to one may be out. */
	if (expect.samples + lost > count[0] || expect.samples + lost + 4 < count[0])
		ktap_fail(RULE_LOST_COUNT
			  "%u samples and %llu lost; expected %llu together, as many faults were counted",
			  expect.samples, lost, count[0]);
	if (expect.samples < FAULTS)
		ktap_fail(RULE_SAMPLES_COUNT
			  "%u samples of %u faults in an empty ring; expected at least %u",
			  expect.samples, FAULTS, FAULTS);
}

/* Size of this event's record when all have the same, or skip the case. */
static unsigned int record_size(const struct perf_event_attr *attr)
{
	const struct perf_event_header *header;
	unsigned int size = 0;

	open_or_stop(attr, EVENT_PAGES);
	/* The first time, this program's own text comes in: faults under other frames. */
	for (unsigned int i = 0; i < 2; i++) {
		while (event_next(&event))
			;
		event_enable(&event);
		work(SOURCE_FAULTS, FAULTS);
		event_disable(&event);
	}
	while ((header = event_next(&event))) {
		if (size && header->size != size)
			ktap_skip("records of several sizes: nobody knows where one begins");
		size = header->size;
	}
	event_close(&event);
	if (!size)
		ktap_stop(RULE_SAMPLES_COUNT "no sample");
	return size;
}

/* Read-only and from the start: the ring goes round, and its newest records are whole. */
static void overwrite(const void *arg)
{
	size_t page = sysconf(_SC_PAGESIZE), data_size = OVERWRITE_PAGES * page;
	struct perf_event_attr attr;
	struct expect expect;
	struct sample sample;
	unsigned int size, whole;
	__u64 head;
	char *map;

	init(&attr, arg, PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD);
	size = record_size(&attr);
	event.attr = attr;
	event.fd = attr_open(&attr, 0, -1);
	if (event.fd < 0)
		ktap_stop(RULE_OPEN_ACCEPTED "perf_event_open(): %s", strerror(-event.fd));
	map = mmap(NULL, page + data_size, PROT_READ, MAP_SHARED, event.fd, 0);
	if (map == MAP_FAILED || ioctl(event.fd, PERF_EVENT_IOC_ID, &event.id))
		ktap_stop(RULE_TEST_SETUP "mmap of a ring that overwrites: %m");
	expect_begin(&expect, &event, SOURCE_FAULTS);
	expect.must_resolve = true;
	event_enable(&event);
	work(SOURCE_FAULTS, 2 * data_size / size + 7);
	event_disable(&event);
	expect_end(&expect);
	expect.gaps = true;
	head = ((struct perf_event_mmap_page *)map)->data_head;
	if (head < data_size || head % size)
		ktap_fail(RULE_RING_OVERWRITE
			  "data_head is %llu; expected a multiple of %u, the size of each record, beyond %zu",
			  head, size, data_size);
	whole = data_size / size;
	for (__u64 at = head - (__u64)whole * size; at < head; at += size) {
		static __u64 record[RECORD_MAX / sizeof(__u64)];
		const char *problem;

		for (unsigned int i = 0; i < size; i++)
			((char *)record)[i] = map[page + (at + i) % data_size];
		problem = decode_sample(&attr, (const void *)record, &sample);
		if (problem) {
			ktap_fail("at %llu of %llu: %s", at, head, problem);
			break;
		}
		check_sample(&expect, &sample);
	}
}

static bool readable(void)
{
	struct pollfd poller = { .fd = event.fd, .events = POLLIN };

	return poll(&poller, 1, 0) == 1 && (poller.revents & POLLIN);
}

/* Nobody is woken before the bytes, or the samples, are there that attr names. */
static void wakeups(const void *arg)
{
	struct perf_event_attr attr;
	unsigned int size;
	__u64 before;

	init(&attr, arg, PERF_SAMPLE_IP);
	size = record_size(&attr);
	attr.watermark = 1;
	attr.wakeup_watermark = 8 * size;
	for (unsigned int by_events = 0; by_events < 2; by_events++) {
		if (by_events) {
			attr.watermark = 0;
			attr.wakeup_events = 8;
		}
		open_or_stop(&attr, EVENT_PAGES);
		event_enable(&event);
		work(SOURCE_FAULTS, 3);
		event_disable(&event);
		before = event.page->data_head / size;
		if (before < 8 && readable())
			ktap_fail(RULE_RING_WATERMARK
				  "readable after %llu records; expected after 8", before);
		event_enable(&event);
		work(SOURCE_FAULTS, 9);
		event_disable(&event);
		if (!readable())
			ktap_fail(RULE_RING_WATERMARK
				  "not readable after %llu records; expected after 8",
				  event.page->data_head / size);
		event_close(&event);
	}
}

int main(int argc, char **argv)
{
	for (unsigned int i = 0; i < SCOPE_TYPES; i++) {
		const struct scoped_type *type = &scope_types[i];

		ktap_add(near_64k, type, "near_64k.%s", type->name);
		ktap_add(too_small, type, "ring_too_small.%s", type->name);
		ktap_add(one_at_a_time, type, "one_at_a_time.%s", type->name);
		ktap_add(overwrite, type, "overwrite.%s", type->name);
		ktap_add(wakeups, type, "wakeups.%s", type->name);
	}
	return ktap_main(argc, argv);
}
