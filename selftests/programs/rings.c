// SPDX-License-Identifier: GPL-2.0
/*
 * Samples of the types in scope in rings that are too small, that overwrite
 * what is old, and that are written from their end.
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

#define FAULTS	2500	/* more than the rings here can hold */

static struct event event;
static __u64 lost;

static void init(struct perf_event_attr *attr, const struct scoped_type *type)
{
	const struct sample_type *known = sample_type(type->bit);

	need_bits(type->bit);
	if (known && known->needs[0])
		ktap_skip("needs %s", known->needs);
	attr_init(attr, SOURCE_FAULTS, type->bit | PERF_SAMPLE_IP);
}

static void note_lost(struct expect *expect, const struct record *record)
{
	(void)expect;
	if (record->header->type != PERF_RECORD_LOST)
		return;
	lost += record->lost.lost;
	if (record->lost.id != event.id)
		ktap_fail(RULE_LOST_COUNT "LOST of event %llu; expected %llu",
			  record->lost.id, event.id);
}

/* What does not fit is counted: samples and LOST add up to the faults. */
static void full(const void *arg)
{
	struct perf_event_attr attr;
	struct expect expect;
	__u64 count[8] = { 0 };
	int error;

	init(&attr, arg);
	error = event_open_on(&event, &attr, 0, -1, -1, 2);
	if (error)
		ktap_stop(RULE_OPEN_ACCEPTED "perf_event_open(): %s", strerror(-error));
	expect_begin(&expect, &event, SOURCE_FAULTS);
	expect.must_resolve = true;
	expect.gaps = true;
	event_enable(&event);
	work(SOURCE_FAULTS, FAULTS);
	event_disable(&event);
	expect_end(&expect);
	check_ring(&expect, note_lost);
	/* The next record that fits brings the LOST with it. */
	event_enable(&event);
	work(SOURCE_FAULTS, 2);
	event_disable(&event);
	maps_free(&expect.maps);
	expect_end(&expect);
	check_ring(&expect, note_lost);
	if (read(event.fd, count, sizeof(count)) < 8)
		ktap_stop(RULE_TEST_SETUP "read: %m");
	ktap_diag("%u samples, %llu lost, %llu faults", expect.samples, lost, count[0]);
	if (!lost)
		ktap_fail(RULE_LOST_COUNT
			  "nothing was lost of %u samples in a ring of two pages", FAULTS);
	if (expect.samples + lost != count[0])
		ktap_fail(RULE_LOST_COUNT
			  "%u samples and %llu lost; expected %llu together, as many faults were counted",
			  expect.samples, lost, count[0]);
}

/* Read-only and from the end: the newest records, and each of them whole. */
static void backward(const void *arg)
{
	size_t page = sysconf(_SC_PAGESIZE), size = 4 * page;
	static __u64 copy[4 * 4096 / 8];
	struct perf_event_attr attr;
	struct expect expect;
	struct sample sample;
	__u64 head, at;
	char *map;

	init(&attr, arg);
	attr.write_backward = 1;
	event.attr = attr;
	event.fd = attr_open(&attr, 0, -1);
	if (event.fd < 0)
		ktap_stop(RULE_OPEN_ACCEPTED "perf_event_open(): %s", strerror(-event.fd));
	map = mmap(NULL, page + size, PROT_READ, MAP_SHARED, event.fd, 0);
	if (map == MAP_FAILED || ioctl(event.fd, PERF_EVENT_IOC_ID, &event.id))
		ktap_stop(RULE_TEST_SETUP "mmap of a ring that overwrites: %m");
	expect_begin(&expect, &event, SOURCE_FAULTS);
	expect.must_resolve = true;
	expect.gaps = true;
	event_enable(&event);
	work(SOURCE_FAULTS, FAULTS);
	event_disable(&event);
	expect_end(&expect);
	head = ((struct perf_event_mmap_page *)map)->data_head;
	for (size_t i = 0; i < size; i++)
		((char *)copy)[i] = map[page + (head + i) % size];
	for (at = 0; at + 8 <= size;) {
		const struct perf_event_header *header = (const void *)((char *)copy + at);
		const char *problem;

		if (!header->size || at + header->size > size)
			break;		/* the oldest one, half overwritten */
		problem = header->type == PERF_RECORD_SAMPLE ?
			  decode_sample(&attr, header, &sample) :
			  RULE_HEADER_TYPE "no sample";
		if (problem) {
			ktap_fail("at %llu: %s", at, problem);
			break;
		}
		check_sample(&expect, &sample);
		at += header->size;
	}
	ktap_diag("%u samples in %zu bytes", expect.samples, size);
	if (at + 1024 < size)
		ktap_fail(RULE_RING_OVERWRITE
			  "records end %llu bytes into a full ring of %zu", at, size);
}

/* A reader that waits is woken when the watermark is reached. */
static void watermark(const void *arg)
{
	struct perf_event_attr attr;
	struct pollfd poller = { .events = POLLIN };
	int error;

	init(&attr, arg);
	attr.watermark = 1;
	attr.wakeup_watermark = 4096;
	error = event_open(&event, &attr);
	if (error)
		ktap_stop(RULE_OPEN_ACCEPTED "perf_event_open(): %s", strerror(-error));
	poller.fd = event.fd;
	event_enable(&event);
	work(SOURCE_FAULTS, FAULTS);
	event_disable(&event);
	if (poll(&poller, 1, 2000) != 1 || !(poller.revents & POLLIN))
		ktap_fail(RULE_RING_WATERMARK
			  "%llu bytes are in the ring, and poll() waits; expected that it waits for 4096",
			  event.page->data_head);
}

int main(int argc, char **argv)
{
	for (unsigned int i = 0; i < SCOPE_TYPES; i++) {
		ktap_add(full, &scope_types[i], "full.%s", scope_types[i].name);
		ktap_add(backward, &scope_types[i], "backward.%s", scope_types[i].name);
		ktap_add(watermark, &scope_types[i], "watermark.%s", scope_types[i].name);
	}
	return ktap_main(argc, argv);
}
