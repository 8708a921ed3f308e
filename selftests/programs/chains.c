// SPDX-License-Identifier: GPL-2.0
/*
 * Callchains whose every address is known, because the test wrote the frames:
 * edges of mappings, holes, kernel values, and chains at the limits of depth.
 */
#include "decode.h"
#include "event.h"
#include "ktap.h"
#include "made.h"
#include "oracle.h"
#include "scope.h"
#include "work.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CHAIN_BIT	PERF_SAMPLE_CALLCHAIN_BUILD_ID_OFFSET
#define LEAST_FRAMES	40
#define ADDRESS_BIT	PERF_SAMPLE_BUILD_ID_OFFSET
#define MAX_STACK	"/proc/sys/kernel/perf_event_max_stack"

static struct event event;

struct made_case {
	const char *name;
	unsigned int (*choose)(const struct maps *maps, __u64 *address);
	__u64 bits;
	bool defer;
	bool user_only;
	enum source source;
};

static __u64 chosen[MADE_MAX];
static unsigned int chosen_count, expected_count, seen;

/* Addresses just inside each mapping. */
static unsigned int choose_inside(const struct maps *maps, __u64 *address)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < maps->count && count + 2 < 100; i++) {
		if (maps->map[i].start >> 63)
			continue;	/* vsyscall */
		address[count++] = maps->map[i].start;
		address[count++] = maps->map[i].end - 1;
	}
	return count;
}

/* Addresses just outside each mapping, where no other mapping is. */
static unsigned int choose_outside(const struct maps *maps, __u64 *address)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < maps->count && count + 2 < 100; i++) {
		__u64 before = maps->map[i].start - 1, after = maps->map[i].end;

		if (maps->map[i].start >> 63)
			continue;
		if (!maps_find(maps, before))
			address[count++] = before;
		if (!maps_find(maps, after))
			address[count++] = after;
	}
	return count;
}

/* Values that are no user address; none looks like a context marker. */
static unsigned int choose_kernel(const struct maps *maps, __u64 *address)
{
	static const __u64 values[] = {
		0xffffffff81000000ULL, 0xffff888000000000ULL,
		0xffffffffff600000ULL, 0x8000000000000000ULL,
		0x0000800000000000ULL, 0x00007ffffffff000ULL,
		0x00007fffffffffffULL, 0xdeadbeefdeadbeefULL,
	};

	(void)maps;
	memcpy(address, values, sizeof(values));
	return ARRAY_SIZE(values);
}

/* The user part of a chain: where it begins behind its marker, or nr. */
static __u64 user_part(const __u64 *ips, __u64 nr)
{
	for (__u64 i = 0; i < nr; i++)
		if (ips[i] == PERF_CONTEXT_USER)
			return i + 1;
	return nr;
}

/* The chain of the made call holds what the frames say, and no more. */
static void check_made_chain(struct expect *expect, const struct sample *sample)
{
	__u64 nr = sample->callchain.nr;
	__u64 user = user_part(sample->callchain.ips, nr);
	const __u64 *ips = sample->callchain.ips + user;

	if (user + 1 >= nr || ips[1] != chosen[0])
		return;		/* of another call */
	seen++;
	if (nr - user != expected_count) {
		sample_fail(expect, sample, RULE_CHAIN_FRAMES
			    "the user part has %llu entries; expected %u",
			    nr - user, expected_count);
		return;
	}
	for (unsigned int i = 0; i + 1 < expected_count; i++)
		if (ips[i + 1] != chosen[i])
			sample_fail(expect, sample, RULE_CHAIN_FRAMES
				    "entry %u of the user part is %#llx; expected %#llx, as the frame says",
				    i + 1, ips[i + 1], chosen[i]);
}

static void check_made_answer(struct expect *expect, const struct record *record)
{
	const struct build_id_offset *entry = record->callchain_deferred.entries;
	__u64 nr = record->callchain_deferred.nr;
	const char *problem;

	if (record->header->type != PERF_RECORD_CALLCHAIN_DEFERRED)
		return;
	if (nr != expected_count)
		return;		/* of another call */
	if (!entry) {
		record_fail(record, RULE_DEFERRED_FORM
			    "no build IDs for an event that asks for them");
		return;
	}
	seen++;
	for (unsigned int i = 0; i + 1 < expected_count; i++) {
		problem = check_build_id(expect, &entry[i + 1], chosen[i]);
		if (problem)
			record_fail(record, "entry %u, %#llx: %s", i + 1,
				    chosen[i], problem);
	}
}

static void set_max_stack(struct perf_event_attr *attr, unsigned short value)
{
#if HAVE_SAMPLE_MAX_STACK
	attr->sample_max_stack = value;
#else
	(void)attr;
	if (value)
		ktap_skip("this tree has no attr.sample_max_stack");
#endif
}

static void open_chain(const struct made_case *test, unsigned short max_stack,
		       unsigned int stack)
{
	struct perf_event_attr attr;
	int error;

	attr_init(&attr, test->source, test->bits);
	attr_defer(&attr, test->defer, test->defer);
	attr.exclude_callchain_kernel = test->user_only;
	set_max_stack(&attr, max_stack);
	if (stack) {
		attr.sample_type |= PERF_SAMPLE_STACK_USER;
		attr.sample_stack_user = stack;
	}
	error = event_open(&event, &attr);
	if (error)
		ktap_stop(RULE_OPEN_ACCEPTED "perf_event_open(): %s", strerror(-error));
}

static void make_chain(const struct made_case *test, const __u64 *address,
		       unsigned int count)
{
	if (test->source == SOURCE_SYSCALLS)
		made_syscall(address, count);
	else
		made_fault(address, count);
}

static void run_chain(const struct made_case *test, struct expect *expect)
{
	seen = 0;
	expect_begin(expect, &event, test->source);
	expect->must_resolve = true;
	if (test->bits & PERF_SAMPLE_CALLCHAIN)
		expect->on_sample = check_made_chain;
	event_enable(&event);
	make_chain(test, chosen, chosen_count);
	event_disable(&event);
	expect_end(expect);
	check_ring(expect, test->defer ? check_made_answer : NULL);
	if (!seen && !ktap_failures())
		ktap_fail(RULE_CHAIN_FRAMES "no chain with the %u entries of the made frames",
			  expected_count);
}

static void made(const void *arg)
{
	const struct made_case *test = arg;
	struct expect expect;
	struct maps maps;

	need_bits(test->bits);
	open_chain(test, 0, 0);
	made_syscall(NULL, 0);		/* the stack has grown before it is looked at */
	maps_read(&maps);
	chosen_count = test->choose(&maps, chosen);
	/* Longer than any other chain here. */
	for (unsigned int i = 0; chosen_count < LEAST_FRAMES; i++)
		chosen[chosen_count++] = chosen[i];
	expected_count = chosen_count + 1;
	maps_free(&maps);
	run_chain(test, &expect);
	ktap_diag("%u addresses, %u entries resolved, %u not", chosen_count,
		  expect.resolved, expect.unresolved);
}

struct depth_case {
	const char *name;
	unsigned int frames;
	unsigned int sysctl;		/* 0: as it is */
	unsigned short max_stack;	/* attr.sample_max_stack */
	unsigned int entries;		/* that the user part must have */
	struct made_case made;
};

static bool write_max_stack(unsigned int value)
{
	FILE *file = fopen(MAX_STACK, "we");
	bool done;

	if (!file)
		ktap_skip("no %s", MAX_STACK);
	done = fprintf(file, "%u\n", value) > 0;
	return !fclose(file) && done;
}

static void choose_depth(unsigned int frames)
{
	for (unsigned int i = 0; i < frames; i++)
		chosen[i] = (__u64)made_syscall + i % 16;
	chosen_count = frames;
}

static void depth(const void *arg)
{
	const struct depth_case *test = arg;
	struct expect expect;

	need_bits(test->made.bits);
	if (test->sysctl && !write_max_stack(test->sysctl))
		ktap_skip("%s cannot be set: %m", MAX_STACK);
	choose_depth(test->frames);
	expected_count = test->entries;
	open_chain(&test->made, test->max_stack, 0);
	run_chain(&test->made, &expect);
	event_close(&event);
	if (test->sysctl && !write_max_stack(PERF_MAX_STACK_DEPTH))
		ktap_fail(RULE_SYSCTL_MAX_STACK
			  "%s is still held after the event was closed: %m", MAX_STACK);
}

/* Chains behind a large copy of the stack: cut to what fits, never too large. */
static void near_limit(const void *arg)
{
	const struct made_case *test = arg;
	struct expect expect;

	need_bits(test->bits);
	choose_depth(PERF_MAX_STACK_DEPTH - 1);
	expected_count = PERF_MAX_STACK_DEPTH;
	for (unsigned int stack = 59000 / 8 * 8; stack < 65536; stack += 264) {
		open_chain(test, 0, stack);
		run_chain(test, &expect);
		event_close(&event);
		if (ktap_failures()) {
			ktap_diag("with attr.sample_stack_user %u", stack);
			break;
		}
	}
}

static void too_deep(const void *arg)
{
	const __u64 *bits = arg;
	struct perf_event_attr attr;
	int fd;

	need_bits(*bits);
	attr_init(&attr, SOURCE_FAULTS, *bits);
	set_max_stack(&attr, PERF_MAX_STACK_DEPTH + 1);
	fd = attr_open(&attr, 0, -1);
	if (fd != -EOVERFLOW)
		ktap_fail(RULE_CHAIN_LIMIT
			  "attr.sample_max_stack above the sysctl: %s; expected %s",
			  strerror(fd < 0 ? -fd : 0), strerror(EOVERFLOW));
	set_max_stack(&attr, PERF_MAX_STACK_DEPTH);
	fd = attr_open(&attr, 0, -1);
	if (fd < 0)
		ktap_fail(RULE_CHAIN_LIMIT
			  "attr.sample_max_stack at the sysctl: %s; expected a file descriptor",
			  strerror(-fd));
}

/* The limit cannot move while an event depends on it. */
static void sysctl_busy(const void *arg)
{
	const __u64 *bits = arg;
	struct perf_event_attr attr;
	int fd;

	need_bits(*bits);
	if (!write_max_stack(PERF_MAX_STACK_DEPTH))
		ktap_skip("%s cannot be set: %m", MAX_STACK);
	attr_init(&attr, SOURCE_FAULTS, *bits);
	fd = attr_open(&attr, 0, -1);
	if (fd < 0)
		ktap_stop(RULE_OPEN_ACCEPTED "perf_event_open(): %s", strerror(-fd));
	if (write_max_stack(PERF_MAX_STACK_DEPTH + 10))
		ktap_fail(RULE_SYSCTL_MAX_STACK
			  "%s was changed while an event with a callchain is open; expected EBUSY",
			  MAX_STACK);
	close(fd);
	if (!write_max_stack(PERF_MAX_STACK_DEPTH))
		ktap_fail(RULE_SYSCTL_MAX_STACK
			  "%s is still held after the event was closed: %m", MAX_STACK);
}

/* An event without a callchain does not hold the limit. */
static void sysctl_free(const void *arg)
{
	const __u64 *bits = arg;
	struct perf_event_attr attr;
	int fd;

	need_bits(*bits);
	attr_init(&attr, SOURCE_FAULTS, *bits);
	fd = attr_open(&attr, 0, -1);
	if (fd < 0)
		ktap_stop(RULE_OPEN_ACCEPTED "perf_event_open(): %s", strerror(-fd));
	if (!write_max_stack(PERF_MAX_STACK_DEPTH))
		ktap_fail(RULE_SYSCTL_MAX_STACK
			  "%s is held by an event without a callchain: %m", MAX_STACK);
	close(fd);
}

static const struct made_case made_cases[] = {
	{ "inside", choose_inside, PERF_SAMPLE_CALLCHAIN },
	{ "inside.build_id", choose_inside, PERF_SAMPLE_CALLCHAIN | CHAIN_BIT },
	{ "inside.build_id.deferred", choose_inside, CHAIN_BIT, true },
	{ "outside", choose_outside, PERF_SAMPLE_CALLCHAIN },
	{ "outside.build_id", choose_outside, PERF_SAMPLE_CALLCHAIN | CHAIN_BIT },
	{ "outside.build_id.deferred", choose_outside, CHAIN_BIT, true },
	{ "kernel_values", choose_kernel, PERF_SAMPLE_CALLCHAIN },
	{ "kernel_values.build_id", choose_kernel, PERF_SAMPLE_CALLCHAIN | CHAIN_BIT },
	{ "kernel_values.build_id.deferred", choose_kernel, CHAIN_BIT, true },
};

#define USER(bits)	{ "", NULL, bits, false, true, SOURCE_SYSCALLS }
#define FAULT(bits)	{ "", NULL, bits, false, true, SOURCE_FAULTS }
#define DEFERRED(bits)	{ "", NULL, bits, true, true, SOURCE_SYSCALLS }
#define WITH_KERNEL(bits)	{ "", NULL, bits, false, false, SOURCE_SYSCALLS }
#define BOTH		(PERF_SAMPLE_CALLCHAIN | CHAIN_BIT)

static const struct depth_case depth_cases[] = {
	{ "126_frames", 126, 0, 0, 127, USER(PERF_SAMPLE_CALLCHAIN) },
	{ "127_frames", 127, 0, 0, 127, USER(PERF_SAMPLE_CALLCHAIN) },
	{ "200_frames", 200, 0, 0, 127, USER(PERF_SAMPLE_CALLCHAIN) },
	{ "max_stack_2", 100, 0, 2, 2, USER(PERF_SAMPLE_CALLCHAIN) },
	{ "max_stack_5", 100, 0, 5, 5, USER(PERF_SAMPLE_CALLCHAIN) },
	{ "max_stack_126", 200, 0, 126, 126, USER(PERF_SAMPLE_CALLCHAIN) },
	{ "max_stack_127", 200, 0, 127, 127, USER(PERF_SAMPLE_CALLCHAIN) },
	{ "300_frames_sysctl_250", 300, 250, 0, 250, USER(PERF_SAMPLE_CALLCHAIN) },
	{ "126_frames.build_id", 126, 0, 0, 127, USER(BOTH) },
	{ "127_frames.build_id", 127, 0, 0, 127, USER(BOTH) },
	{ "200_frames.build_id", 200, 0, 0, 127, USER(BOTH) },
	{ "max_stack_2.build_id", 100, 0, 2, 2, USER(BOTH) },
	{ "max_stack_5.build_id", 100, 0, 5, 5, USER(BOTH) },
	{ "max_stack_126.build_id", 200, 0, 126, 126, USER(BOTH) },
	{ "max_stack_127.build_id", 200, 0, 127, 127, USER(BOTH) },
	{ "max_stack_200_sysctl_250.build_id", 300, 250, 200, 200, USER(BOTH) },
	{ "126_frames_sysctl_250.build_id", 126, 250, 0, 127, USER(BOTH) },
	{ "127_frames_sysctl_250.build_id", 127, 250, 0, 128, USER(BOTH) },
	{ "128_frames_sysctl_250.build_id", 128, 250, 0, 129, USER(BOTH) },
	{ "300_frames_sysctl_250.build_id", 300, 250, 0, 250, USER(BOTH) },
	{ "800_frames_sysctl_700.build_id", 800, 700, 0, 700, USER(BOTH) },
	{ "200_frames_sysctl_250.both", 200, 250, 0, 201, FAULT(BOTH | ADDRESS_BIT) },
	{ "250_frames_sysctl_250.both", 250, 250, 0, 250, FAULT(BOTH | ADDRESS_BIT) },
	/* Behind a kernel part: entries of the kernel take no place of the user's. */
	{ "125_frames_sysctl_250.behind_kernel", 125, 250, 0, 126, WITH_KERNEL(BOTH) },
	{ "126_frames_sysctl_250.behind_kernel", 126, 250, 0, 127, WITH_KERNEL(BOTH) },
	{ "127_frames_sysctl_250.behind_kernel", 127, 250, 0, 128, WITH_KERNEL(BOTH) },
	{ "126_frames_sysctl_250.behind_kernel.both", 126, 250, 0, 127,
	  WITH_KERNEL(BOTH | ADDRESS_BIT) },
	{ "126_frames.behind_fault.both", 126, 0, 0, 127, FAULT(BOTH | ADDRESS_BIT) },
	{ "126_frames.build_id.deferred", 126, 0, 0, 127, DEFERRED(CHAIN_BIT) },
	{ "200_frames.build_id.deferred", 200, 0, 0, 201, DEFERRED(CHAIN_BIT) },
};

static const __u64 chain_bits = PERF_SAMPLE_CALLCHAIN;
static const __u64 build_id_bits = CHAIN_BIT;

static const __u64 free_bits[] = { PERF_SAMPLE_IP, ADDRESS_BIT };

static const struct made_case limit_cases[] = {
	USER(PERF_SAMPLE_CALLCHAIN), USER(BOTH),
};

int main(int argc, char **argv)
{
	static struct made_case cases[ARRAY_SIZE(made_cases)][2];

	for (unsigned int i = 0; i < ARRAY_SIZE(made_cases); i++) {
		for (unsigned int source = 0; source < 2; source++) {
			cases[i][source] = made_cases[i];
			cases[i][source].source = source;
			ktap_add(made, &cases[i][source], "made.%s.%s",
				 source_names[source], made_cases[i].name);
		}
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(depth_cases); i++)
		ktap_add(depth, &depth_cases[i], "depth.%s", depth_cases[i].name);
	ktap_add(near_limit, &limit_cases[0], "near_64k.callchain");
	ktap_add(near_limit, &limit_cases[1], "near_64k.build_id");
	ktap_add(too_deep, &chain_bits, "max_stack_above_sysctl.callchain");
	ktap_add(too_deep, &build_id_bits, "max_stack_above_sysctl.build_id");
	ktap_add(sysctl_busy, &chain_bits, "sysctl_busy.callchain");
	ktap_add(sysctl_busy, &build_id_bits, "sysctl_busy.build_id");
	ktap_add(sysctl_free, &free_bits[0], "sysctl_free.ip");
	ktap_add(sysctl_free, &free_bits[1], "sysctl_free.build_id");
	return ktap_main(argc, argv);
}
