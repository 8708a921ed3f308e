// SPDX-License-Identifier: GPL-2.0
/*
 * Random attrs, the same on every run: what is accepted makes records that
 * decode and values that are right; a bit that nobody knows is refused.
 */
#include "decode.h"
#include "event.h"
#include "ktap.h"
#include "oracle.h"
#include "scope.h"
#include "work.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TRIES	60
#define SAMPLES	3

static struct event event;
static __u64 state;

/* splitmix64 */
static __u64 draw(void)
{
	__u64 z = (state += 0x9e3779b97f4a7c15ULL);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

/* Bits that this kernel can be asked for together on a software event. */
static __u64 draw_bits(void)
{
	__u64 bits = draw() & SCOPE_ALL_BITS;

	if (ktap_kernel == KERNEL_BASE)
		bits &= ~SCOPE_NEW_BITS;
	for (unsigned int i = 0; i < SAMPLE_TYPES; i++) {
		if (sample_types[i].needs[0])
			bits &= ~sample_types[i].bit;
		if (bits & sample_types[i].bit)
			bits &= ~sample_types[i].excludes;
	}
	return bits;
}

static void one(enum source source)
{
	__u64 bits = draw_bits(), flags = draw();
	struct perf_event_attr attr;
	struct expect expect;
	int error;

	attr_init(&attr, source, bits);
	attr.read_format = flags & 7;
	attr.sample_id_all = flags >> 8;
	attr.exclude_callchain_kernel = flags >> 9;
	attr.exclude_callchain_user = flags >> 10;
	attr.comm = flags >> 11;
	attr.mmap = flags >> 12;
	attr.mmap2 = flags >> 13;
	attr.task = flags >> 14;
	attr.context_switch = flags >> 15;
	if (bits & PERF_SAMPLE_STACK_USER)
		attr.sample_stack_user = 8 + (flags >> 16) % 2048 / 8 * 8;
	if (bits & PERF_SAMPLE_REGS_USER)
		attr.sample_regs_user = 1 + (flags >> 32) % 0x3ff;
#if HAVE_DEFER_CALLCHAIN
	attr.defer_callchain = flags >> 60;
	attr.defer_output = flags >> 61;
#endif
	error = event_open(&event, &attr);
	if (error) {
		ktap_fail(RULE_OPEN_ACCEPTED "perf_event_open(): %s", strerror(-error));
	} else {
		expect_begin(&expect, &event, source);
		expect.must_resolve = true;
		event_enable(&event);
		work(source, SAMPLES);
		event_disable(&event);
		expect_end(&expect);
		check_ring(&expect, NULL);
		if (expect.samples < SAMPLES && !ktap_failures())
			ktap_fail(RULE_SAMPLES_COUNT
				  "%u samples; expected %u", expect.samples, SAMPLES);
		maps_free(&expect.maps);
		event_close(&event);
	}
	if (ktap_failures())
		ktap_diag("with sample_type %#llx flags %#llx", bits, flags);
}

static void valid(const void *arg)
{
	const enum source *source = arg;

	state = *source;
	for (unsigned int i = 0; i < TRIES && !ktap_failures(); i++)
		one(*source);
}

static void invalid(const void *arg)
{
	(void)arg;
	state = 99;
	for (unsigned int i = 0; i < 20 * TRIES; i++) {
		__u64 bits = draw() & draw();
		struct perf_event_attr attr;
		int fd;

		if (!(bits & ~SCOPE_ALL_BITS))
			continue;
		attr_init(&attr, SOURCE_CLOCK, 0);
		attr.sample_type = bits;
		fd = attr_open(&attr, 0, -1);
		if (fd != -EINVAL)
			ktap_fail(RULE_OPEN_REFUSED
				  "perf_event_open() with sample_type %#llx: %s; expected %s",
				  bits, strerror(fd < 0 ? -fd : 0), strerror(EINVAL));
		if (fd >= 0)
			close(fd);
	}
}

static const enum source sources[] = { SOURCE_FAULTS, SOURCE_SYSCALLS };

int main(int argc, char **argv)
{
	ktap_add(valid, &sources[0], "valid.page_faults");
	ktap_add(valid, &sources[1], "valid.sys_enter");
	ktap_add(invalid, NULL, "invalid");
	return ktap_main(argc, argv);
}
