// SPDX-License-Identifier: GPL-2.0
/*
 * Chains with a value that looks like a context marker, or like an address, and
 * short chains after long ones: what was there before does not show.
 */
#include "decode.h"
#include "elf_file.h"
#include "event.h"
#include "ktap.h"
#include "made.h"
#include "oracle.h"
#include "scope.h"

#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>

#define ADDRESS_BIT	PERF_SAMPLE_BUILD_ID_OFFSET
#define CHAIN_BIT	PERF_SAMPLE_CALLCHAIN_BUILD_ID_OFFSET
#define FORGED_FRAMES	40	/* no other chain here is as long */
#define LONG_FRAMES	126
#define SHORT_FRAMES	6
#define COOKIES		24
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE	0x100000
#endif

static struct event event, earlier;
static __u64 frames[LONG_FRAMES];
static unsigned int seen;

struct marker_case {
	const char *name;
	enum source source;
	__u64 bits;
	bool no_user_part;
};

static void open_case(struct event *new, const struct marker_case *test, __u64 bits,
		      bool no_user_part)
{
	struct perf_event_attr attr;
	int error;

	attr_init(&attr, test->source, bits);
	attr.exclude_callchain_user = no_user_part;
	error = event_open(new, &attr);
	if (error)
		ktap_stop(RULE_OPEN_ACCEPTED "perf_event_open(): %s", strerror(-error));
}

/* One sample of a chain that ends in the first count frames. */
static void make_sample(struct event *of, const struct marker_case *test, unsigned int count)
{
	event_enable(of);
	if (test->source == SOURCE_SYSCALLS)
		made_syscall(frames, count);
	else
		made_fault(frames, count);
	event_disable(of);
}

/* The user part begins once: all that follows stands for an address. */
static void check_forged(struct expect *expect, const struct sample *sample)
{
	const struct build_id_offset *entry = sample->callchain_build_id_offset.entries;
	__u64 nr = sample->callchain_build_id_offset.nr;

	if (nr < FORGED_FRAMES)
		return;		/* of another call */
	seen++;
	for (unsigned int i = 0; i < FORGED_FRAMES; i++) {
		__u64 at = nr - FORGED_FRAMES + i;
		const char *problem = check_build_id(expect, &entry[at], frames[i]);

		if (problem)
			sample_fail(expect, sample, "CALLCHAIN_BUILD_ID_OFFSET[%llu]: %s",
				    at, problem);
	}
}

/* A return address that looks like a marker does not begin another part. */
static void forged(const void *arg)
{
	const struct marker_case *test = arg;
	const struct perf_event_header *header;
	struct expect expect;
	struct sample sample;
	const char *problem;

	need_bits(test->bits);
	for (unsigned int i = 0; i < FORGED_FRAMES; i++)
		frames[i] = (__u64)made_syscall + i % 16;
	frames[FORGED_FRAMES / 2] = PERF_CONTEXT_USER;
	open_case(&event, test, test->bits, false);
	expect_begin(&expect, &event, test->source);
	make_sample(&event, test, FORGED_FRAMES);
	expect_end(&expect);
	expect.must_resolve = true;
	while ((header = event_next(&event))) {
		problem = decode_sample(&event.attr, header, &sample);
		if (problem)
			ktap_fail("%s", problem);
		else
			check_forged(&expect, &sample);
	}
	if (!seen)
		ktap_fail(RULE_CHAIN_FRAMES "no chain with the %u entries of the made frames",
			  FORGED_FRAMES);
}

/*
 * What a long chain left in the kernel's buffers does not show in a short one. The
 * event of the long one stays open: without one, the kernel frees the buffers. What
 * ends behind the kernel part, or is empty, has the other's user marker next to it.
 */
static void stale(const void *arg)
{
	const struct marker_case *test = arg;
	struct expect expect;

	need_bits(test->bits | CHAIN_BIT);
	for (unsigned int i = 0; i < LONG_FRAMES; i++)
		frames[i] = (__u64)made_syscall + i % 16;
	open_case(&earlier, test, PERF_SAMPLE_CALLCHAIN | CHAIN_BIT, false);
	expect_begin(&expect, &event, test->source);
	make_sample(&earlier, test, LONG_FRAMES);
	/* No mapping is there: the entries have size 0, and nothing in the ID. */
	for (unsigned int i = 0; i < SHORT_FRAMES; i++)
		frames[i] = 0x00007ffffffff000ULL + i;
	open_case(&event, test, test->bits, test->no_user_part);
	make_sample(&event, test, SHORT_FRAMES);
	expect_end(&expect);
	check_ring(&expect, NULL);
	if (!expect.samples)
		ktap_fail(RULE_SAMPLES_COUNT "no samples; expected 1 of the made call");
}

/* The cookie of the newest sample in the ring, or 0. */
static __u64 newest_cookie(struct event *of)
{
	const struct perf_event_header *header;
	struct sample sample;
	__u64 cookie = 0;

	while ((header = event_next(of))) {
		const struct build_id_offset *entry;
		__u64 nr;

		if (header->type != PERF_RECORD_SAMPLE ||
		    decode_sample(&of->attr, header, &sample))
			continue;
		nr = sample.callchain_build_id_offset.nr;
		entry = sample.callchain_build_id_offset.entries;
		if (nr >= 2 && entry[nr - 2].offset == PERF_CONTEXT_USER_DEFERRED)
			cookie = entry[nr - 1].offset;
	}
	return cookie;
}

static void note_cookie(struct expect *expect, const struct sample *sample)
{
	__u64 nr = sample->callchain_build_id_offset.nr;

	if (nr && maps_find(&expect->maps,
			    sample->callchain_build_id_offset.entries[nr - 1].offset))
		seen++;
}

/* A cookie is a number, even where a file is mapped at the address that it looks like. */
static void mapped_cookie(const void *arg)
{
	const struct marker_case *test = arg;
	struct elf_file file = { .id_size = 20 };
	struct perf_event_attr attr;
	struct expect expect;
	__u64 cookie[2];
	int error;

	need_bits(test->bits);
	attr_init(&attr, test->source, test->bits);
	attr_defer(&attr, true, false);
	attr.exclude_callchain_kernel = 1;
	error = event_open(&event, &attr);
	if (error)
		ktap_stop(RULE_OPEN_ACCEPTED "perf_event_open(): %s", strerror(-error));
	elf_file_make(&file);
	elf_file_headers(&file);
	expect_begin(&expect, &event, test->source);
	for (unsigned int i = 0; i < 2; i++) {
		make_sample(&event, test, 0);
		cookie[i] = newest_cookie(&event);
	}
	/* A counter above the number of the CPU: the next ones are as far apart. */
	for (unsigned int i = 1; i <= COOKIES; i++)
		mmap((void *)((cookie[1] + i * (cookie[1] - cookie[0])) & ~0xfffULL), 4096,
		     PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED_NOREPLACE, file.fd, 2 * 4096);
	for (unsigned int i = 0; i < COOKIES; i++)
		make_sample(&event, test, 0);
	expect_end(&expect);
	expect.on_sample = note_cookie;
	check_ring(&expect, NULL);
	if (!seen && !ktap_failures())
		ktap_skip("no cookie is an address in the file: %#llx came after %#llx",
			  cookie[1], cookie[0]);
}

#define BOTH	(PERF_SAMPLE_CALLCHAIN | CHAIN_BIT)

static const struct marker_case forged_cases[] = {
	{ "syscall", SOURCE_SYSCALLS, CHAIN_BIT },
	{ "fault", SOURCE_FAULTS, CHAIN_BIT | ADDRESS_BIT },
};

static const struct marker_case stale_cases[] = {
	{ "fault.chain", SOURCE_FAULTS, BOTH },
	{ "fault.both", SOURCE_FAULTS, BOTH | ADDRESS_BIT },
	{ "fault.no_user_part", SOURCE_FAULTS, BOTH, true },
	{ "fault.address.no_user_part", SOURCE_FAULTS,
	  CHAIN_BIT | ADDRESS_BIT | PERF_SAMPLE_IP, true },
	{ "syscall.chain", SOURCE_SYSCALLS, BOTH },
	{ "syscall.no_user_part", SOURCE_SYSCALLS, BOTH, true },
};

static const struct marker_case cookie_cases[] = {
	{ "fault.chain", SOURCE_FAULTS, CHAIN_BIT },
	{ "fault.both", SOURCE_FAULTS, CHAIN_BIT | ADDRESS_BIT },
	{ "syscall.chain", SOURCE_SYSCALLS, CHAIN_BIT },
};

int main(int argc, char **argv)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(forged_cases); i++)
		ktap_add(forged, &forged_cases[i], "forged.%s", forged_cases[i].name);
	for (unsigned int i = 0; i < ARRAY_SIZE(stale_cases); i++)
		ktap_add(stale, &stale_cases[i], "stale.%s", stale_cases[i].name);
	for (unsigned int i = 0; i < ARRAY_SIZE(cookie_cases); i++)
		ktap_add(mapped_cookie, &cookie_cases[i], "mapped_cookie.%s",
			 cookie_cases[i].name);
	return ktap_main(argc, argv);
}
