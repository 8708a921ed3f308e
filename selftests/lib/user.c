// SPDX-License-Identifier: GPL-2.0
#include "user.h"
#include "decode.h"
#include "event.h"
#include "ktap.h"

#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define PARANOID	"/proc/sys/kernel/perf_event_paranoid"
#define NOBODY		65534

void user_set_level(int level)
{
	FILE *file = fopen(PARANOID, "we");
	bool done;

	if (!file)
		ktap_skip("%s: %m", PARANOID);
	done = fprintf(file, "%d\n", level) > 0;
	if (fclose(file) || !done)
		ktap_skip("%s cannot be set: %m", PARANOID);
}

void user_become_nobody(void)
{
	if (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) ||
	    setresuid(NOBODY, NOBODY, NOBODY))
		ktap_skip("cannot become an unprivileged user: %m");
	prctl(PR_SET_DUMPABLE, 1);	/* /proc/self is still ours to read */
}

bool denies_everything(void)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	int fd = attr_open(&attr, 0, -1);

	if (fd < 0)
		return true;
	close(fd);
	return false;
}

/*
 * The kernel's half of memory, with 5 levels of page tables as with 4
 * (Documentation/arch/x86/x86_64/mm.rst). Its two unused holes hold no address, but
 * markers, small negative numbers, and -1 in the upper half of a word. The
 * vsyscall page is for user space.
 */
static bool in_kernel_half(__u64 value)
{
	return value >> 56 == 0xff && value < 0xffffffffffe00000ULL &&
	       value >> 31 != 0xffffffff00000000ULL >> 31 &&
	       value >> 12 != 0xffffffffff600000ULL >> 12;
}

/* Where all memory is mapped, unless that is moved: no other data look so. */
static bool in_direct_map(__u64 value)
{
	return value >> 36 == 0xff11000000000000ULL >> 36 ||
	       value >> 36 == 0xffff888000000000ULL >> 36;
}

static void address_fail(const struct perf_event_header *header,
			 const char *at, __u64 value)
{
	if (ktap_fail(RULE_PERMISSION_ADDRESS
		      "the kernel address %#llx at byte %td of a record for an unprivileged user",
		      value, at - (const char *)header))
		ktap_hexdump(header, header->size);
}

/*
 * Words of 8 bytes from the start of the data on, or anywhere between. What is the
 * user's own can have any values in its words.
 */
static void check_data(const struct perf_event_header *header, const void *data,
		       __u64 size, bool own)
{
	const char *at = data;

	for (__u64 i = 0; i + sizeof(__u64) <= size; i++) {
		__u64 value;

		memcpy(&value, at + i, sizeof(value));
		if (!in_direct_map(value) && (own || i % 8 || !in_kernel_half(value)))
			continue;
		address_fail(header, at + i, value);
		return;
	}
}

static __u64 words[RECORD_MAX / sizeof(__u64)];	/* of a record */

static void blank(const struct perf_event_header *header, const void *data,
		  size_t size)
{
	memset((char *)words + ((const char *)data - (const char *)header), 0, size);
}

/* An ID is a hash: any bytes can stand in it. */
static void blank_id(const struct perf_event_header *header,
		     const struct build_id_offset *bid)
{
	if (bid->size && bid->size <= sizeof(bid->build_id))
		blank(header, bid->build_id, bid->size);
}

/* The ID of the sample, which decodes to a copy. */
static void blank_own_id(const struct sample *sample)
{
	const struct build_id_offset *own = &sample->build_id_offset.bid;
	const struct perf_event_header *header = sample->header;
	const char *at = (const char *)(header + 1);
	const char *end = (const char *)header + header->size;

	for (; at + sizeof(*own) <= end; at += 8)
		if (!memcmp(at, own, sizeof(*own)))
			blank_id(header, (const struct build_id_offset *)at);
}

/* Look into what is not made of words, and leave words of the rest. */
static void check_parts(const struct sample *sample)
{
	const struct perf_event_header *header = sample->header;
	__u64 bits = sample->decoded;

	if (bits & PERF_SAMPLE_BUILD_ID_OFFSET)
		blank_own_id(sample);
	if (bits & PERF_SAMPLE_CALLCHAIN_BUILD_ID_OFFSET)
		for (__u64 i = 0; i < sample->callchain_build_id_offset.nr; i++)
			blank_id(header, &sample->callchain_build_id_offset.entries[i]);
	if (bits & PERF_SAMPLE_RAW) {
		check_data(header, sample->raw.data, sample->raw.size, false);
		blank(header, sample->raw.data, sample->raw.size);
	}
	if ((bits & PERF_SAMPLE_STACK_USER) && sample->stack_user.size) {
		check_data(header, sample->stack_user.data, sample->stack_user.size, true);
		blank(header, sample->stack_user.data, sample->stack_user.size);
	}
}

void no_kernel_address(const struct perf_event_attr *attr,
		       const struct perf_event_header *header)
{
	static struct sample sample;

	memcpy(words, header, header->size);
	if (header->type == PERF_RECORD_SAMPLE) {
		/* Of a type without a spec, the rest is words. */
		decode_sample(attr, header, &sample);
		check_parts(&sample);
	}
	for (unsigned int i = 1; i < header->size / 8; i++) {
		if (!in_kernel_half(words[i]))
			continue;
		address_fail(header, (const char *)header + i * 8, words[i]);
		return;
	}
}
