// SPDX-License-Identifier: GPL-2.0
/*
 * Raw data that BPF programs write: every size around the 8-byte boundary and
 * up to the largest, whole and with a part of a packet appended, wherever in
 * the ring a record may begin.
 */
#include "bpf.h"
#include "decode.h"
#include "event.h"
#include "ktap.h"
#include "oracle.h"
#include "packet.h"
#include "work.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define VALUE_SIZE	70000
#define RING_PAGES	64
#define RECORD_DATA	440		/* with it a record has 57 times 8 bytes */
/* Where on the program's stack its data, the result and a key lie. */
#define STACK_DATA	448
#define RESULT_AT	(-STACK_DATA - 16)
#define KEY_AT		(-STACK_DATA - 8)
/* The largest payload whose record, with header and size, has 16 bits. */
#define LARGEST		65516
#define PACKET_SIZE	40000	/* too large for the linear part of a packet */
#define SMALL_PACKET	64

/* A macro since 4.8, an enumerator since 5.8; those trees have the other. */
#if defined(BPF_F_CTXLEN_MASK) || defined(BPF_PSEUDO_MAP_VALUE)
#define LONGEST		9
#else
#define LONGEST		0		/* nothing of a packet */
#endif

static struct event event, trigger;
static int value_map, result_map, output_map;
static const struct packet_path *path;
static unsigned int longest;		/* of a packet, in packet_small() */
static unsigned char value[VALUE_SIZE], packet[PACKET_SIZE];

static void open_output(__u64 bits, unsigned int pages)
{
	struct perf_event_attr attr;
	cpu_set_t set;
	int error;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		ktap_skip("cannot stay on one CPU: %m");
	attr_init(&attr, SOURCE_CLOCK, bits);
	attr.config = PERF_COUNT_SW_BPF_OUTPUT;
	attr.sample_period = 1;
	error = event_open_on(&event, &attr, -1, 0, -1, pages);
	if (error)
		ktap_skip("PERF_COUNT_SW_BPF_OUTPUT: %s", strerror(-error));
	event_enable(&event);
}

static void make_maps(void)
{
	for (unsigned int i = 0; i < sizeof(value); i++)
		value[i] = i * 7 + (i >> 8) + 1;
	for (unsigned int i = 0; i < sizeof(packet); i++)
		packet[i] = i * 13 + (i >> 8) + 3;
	value_map = bpf_map(BPF_MAP_TYPE_ARRAY, 4, VALUE_SIZE, 1);
	result_map = bpf_map(BPF_MAP_TYPE_ARRAY, 4, 8, 1);
	output_map = bpf_map(BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, 3);
	bpf_map_set(value_map, 0, value);
	bpf_map_set(output_map, 0, &event.fd);
}

static __s64 take_result(void)
{
	__s64 result, none = 1;

	bpf_map_get(result_map, 0, &result);
	bpf_map_set(result_map, 0, &none);
	return result;
}

/* Emit: r4 points to size bytes of value. */
static void emit_data(struct bpf_program *program, unsigned int size)
{
	if (size <= STACK_DATA) {
		for (unsigned int at = 0; at < size; at += 8) {
			__u64 word;

			memcpy(&word, value + at, 8);
			bpf_emit_wide(program, BPF_REG_1, 0, word);
			bpf_emit(program, BPF_STORE64(BPF_REG_10, at - STACK_DATA, BPF_REG_1));
		}
		bpf_emit(program, BPF_MOVE(BPF_REG_4, BPF_REG_10));
		bpf_emit(program, BPF_ADD_IMM(BPF_REG_4, -STACK_DATA));
		return;
	}
#ifdef BPF_PSEUDO_MAP_VALUE
	bpf_emit_wide(program, BPF_REG_4, BPF_PSEUDO_MAP_VALUE, value_map);
#else
	ktap_skip("this tree's BPF programs cannot address the value of a map");
#endif
}

/* Emit: call the helper with what is in r1, and keep what it returns. */
static void emit_call(struct bpf_program *program, __u64 flags, unsigned int size)
{
	bpf_emit(program, BPF_MOVE(BPF_REG_1, BPF_REG_6));
	bpf_emit_wide(program, BPF_REG_2, BPF_PSEUDO_MAP_FD, output_map);
	bpf_emit_wide(program, BPF_REG_3, 0, flags);
	bpf_emit(program, BPF_MOVE_IMM(BPF_REG_5, size));
	bpf_emit(program, BPF_HELPER(BPF_FUNC_perf_event_output));
	bpf_emit(program, BPF_STORE64(BPF_REG_10, RESULT_AT, BPF_REG_0));
	bpf_emit(program, BPF_MOVE_IMM(BPF_REG_1, 0));
	bpf_emit(program, BPF_STORE64(BPF_REG_10, KEY_AT, BPF_REG_1));
	bpf_emit_wide(program, BPF_REG_1, BPF_PSEUDO_MAP_FD, result_map);
	bpf_emit(program, BPF_MOVE(BPF_REG_2, BPF_REG_10));
	bpf_emit(program, BPF_ADD_IMM(BPF_REG_2, KEY_AT));
	bpf_emit(program, BPF_MOVE(BPF_REG_3, BPF_REG_10));
	bpf_emit(program, BPF_ADD_IMM(BPF_REG_3, RESULT_AT));
	bpf_emit(program, BPF_MOVE_IMM(BPF_REG_4, 0));
	bpf_emit(program, BPF_HELPER(BPF_FUNC_map_update_elem));
}

static int load_output(unsigned int size, __u64 flags)
{
	static struct bpf_program program;
	int fd;

	program.count = 0;
	bpf_emit(&program, BPF_MOVE(BPF_REG_6, BPF_REG_1));
	bpf_emit(&program, BPF_LOAD64(BPF_REG_2, BPF_REG_1, 8));
	bpf_emit(&program, BPF_JUMP_EQ(BPF_REG_2, SYS_getppid, 2));
	bpf_emit(&program, BPF_MOVE_IMM(BPF_REG_0, 0));
	bpf_emit(&program, BPF_RETURN());
	emit_data(&program, size);
	emit_call(&program, flags, size);
	bpf_emit(&program, BPF_MOVE_IMM(BPF_REG_0, 0));
	bpf_emit(&program, BPF_RETURN());
	fd = bpf_load(BPF_PROG_TYPE_TRACEPOINT, &program);
	if (fd < 0)
		ktap_stop(RULE_TEST_SETUP "BPF_PROG_LOAD for %u bytes: %s", size, strerror(-fd));
	return fd;
}

/* Let a program at sys_enter write size bytes; returns what the helper did. */
static __s64 output_to(unsigned int size, __u64 flags)
{
	struct perf_event_attr attr;
	int program = load_output(size, flags), error;

	take_result();
	attr_init(&attr, SOURCE_SYSCALLS, 0);
	attr.sample_period = 0;
	error = event_open_on(&trigger, &attr, 0, -1, -1, 1);
	if (error)
		ktap_stop(RULE_OPEN_ACCEPTED
			  "perf_event_open() for the trigger: %s", strerror(-error));
	if (ioctl(trigger.fd, PERF_EVENT_IOC_SET_BPF, program))
		ktap_stop(RULE_TEST_SETUP "PERF_EVENT_IOC_SET_BPF: %m");
	event_enable(&trigger);
	work_syscall();
	event_disable(&trigger);
	event_close(&trigger);
	close(program);
	return take_result();
}

static __s64 output(unsigned int size)
{
	return output_to(size, 0);
}

/* Programs of old trees cannot pass a size of 0. */
#ifdef BPF_PSEUDO_MAP_VALUE
#define SMALLEST	0
#else
#define SMALLEST	1
#endif

/* A program that writes meta bytes and length bytes of a packet, or -errno. */
static int load_packet(unsigned int meta, unsigned int length)
{
	static struct bpf_program program;

	program.count = 0;
	bpf_emit(&program, BPF_MOVE(BPF_REG_6, BPF_REG_1));
	emit_data(&program, meta);
	emit_call(&program, (__u64)length << 32, meta);
	bpf_emit(&program, BPF_MOVE_IMM(BPF_REG_0, path->verdict));
	bpf_emit(&program, BPF_RETURN());
	return bpf_load(path->type, &program);
}

/* Let a program write meta bytes and length bytes of a packet of size. */
static __s64 output_packet(unsigned int meta, unsigned int length,
			   unsigned int size)
{
	int fd = load_packet(meta, length);

	if (fd < 0)
		ktap_stop(RULE_TEST_SETUP "BPF_PROG_LOAD for %u bytes: %s", meta, strerror(-fd));
	take_result();
	path->attach(fd);
	path->send(packet, size, size > SMALL_PACKET);
	path->detach();
	close(fd);
	return take_result();
}

/* The first path on which a program may write to events. */
static void choose_path(void)
{
	for (unsigned int i = 0; i < PACKET_PATHS; i++) {
		int fd;

		path = &packet_paths[i];
		fd = load_packet(SMALLEST, 0);
		if (fd < 0)
			continue;
		close(fd);
		ktap_diag("packets at a %s", path->name);
		longest = LONGEST;
		/* The header is that of the patched kernel. */
		if (ktap_kernel == KERNEL_BASE && longest &&
		    output_packet(SMALLEST, 1, SMALL_PACKET) == -EINVAL)
			longest = 0;
		while (event_next(&event))
			;
		return;
	}
	ktap_skip("no program that sees packets may write to an event");
}

/* One sample is in the ring: size bytes, of which the last are of a packet. */
static void check_output(unsigned int meta, unsigned int length, __s64 result)
{
	const struct perf_event_header *header = event_next(&event);
	unsigned int size = meta + length, whole = ((size + 4 + 7) & ~7U) - 4;
	struct sample sample;
	const char *problem;

	if (result) {
		ktap_fail(RULE_RAW_OUTPUT
			  "the helper says %lld for %u bytes; expected 0", result, size);
		return;
	}
	if (!header) {
		ktap_fail(RULE_RAW_OUTPUT "no record for %u bytes", size);
		return;
	}
	problem = decode_sample(&event.attr, header, &sample);
	if (!problem && sample.raw.size != whole)
		problem = RULE_RAW_SIZE "RAW size is not that of the data, filled up to 8 bytes";
	if (!problem && memcmp(sample.raw.data, value, meta))
		problem = RULE_RAW_DATA "RAW: the data differs from what the program wrote";
	if (!problem && memcmp(sample.raw.data + meta, packet, length))
		problem = RULE_RAW_DATA "RAW: the data differs from the packet";
	if (problem && ktap_fail("%u bytes and %u of a packet: %s", meta, length,
				 problem)) {
		ktap_diag("  header.size %u, RAW size %u, not %u", header->size,
			  sample.raw.size, whole);
		ktap_hexdump(header, header->size < 256 ? header->size : 256);
	}
	if (event_next(&event))
		ktap_fail(RULE_RAW_OUTPUT "a second record for one output of %u bytes", size);
}

static void start(__u64 bits)
{
	open_output(bits, RING_PAGES);
	make_maps();
}

static void small(const void *arg)
{
	(void)arg;
	start(PERF_SAMPLE_RAW);
	for (unsigned int size = SMALLEST; size <= 40; size++)
		check_output(size, 0, output(size));
	for (unsigned int size = STACK_DATA - 9; size <= STACK_DATA; size++)
		check_output(size, 0, output(size));
}

static void with_others(const void *arg)
{
	(void)arg;
	start(PERF_SAMPLE_RAW | PERF_SAMPLE_IP | PERF_SAMPLE_TIME |
	      PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER);
	for (unsigned int size = SMALLEST; size <= 24; size++)
		check_output(size, 0, output(size));
}

/* What stands behind the raw data in a record, when that had to be filled up. */
static void with_others_behind(const void *arg)
{
	const unsigned int filled = 4;	/* with its size: 8 bytes */
	struct sample sample = { 0 };
	__u64 source;

	(void)arg;
	start(PERF_SAMPLE_RAW | PERF_SAMPLE_DATA_SRC);
	check_output(filled, 0, output(filled));
	decode_sample(&event.attr, (void *)event.record, &sample);
	source = sample.data_src.data_src;
	for (unsigned int size = SMALLEST; size <= 24; size++) {
		check_output(size, 0, output(size));
		decode_sample(&event.attr, (void *)event.record, &sample);
		if (sample.data_src.data_src != source &&
		    ktap_fail(RULE_RAW_SIZE
			      "%u bytes: DATA_SRC behind them is %#llx; expected %#llx",
			      size, sample.data_src.data_src, source))
			ktap_hexdump(event.record, 64);
	}
}

/* Records that begin and end everywhere in a page. */
static void ring_edges(const void *arg)
{
	(void)arg;
	start(PERF_SAMPLE_RAW);
#ifdef BPF_PSEUDO_MAP_VALUE
	for (unsigned int i = 0; i < 64; i++)
		check_output(4064 + i, 0, output(4064 + i));
#else
	/* A page has 512 times 8 bytes, and 57 has no factor in common with it. */
	for (unsigned int i = 0; i < 512; i++)
		check_output(RECORD_DATA + i % 4, 0, output(RECORD_DATA + i % 4));
#endif
}

/* The bytes that fill data of this size up, in the record that was read last. */
static void check_padding(unsigned int size)
{
	const struct perf_event_header *header = (const void *)event.record;
	unsigned int filled = ((size + 4 + 7) & ~7U) - 4;
	struct sample sample;

	if (ktap_failures() || decode_sample(&event.attr, header, &sample))
		return;
	for (unsigned int i = size; i < filled; i++) {
		if (!sample.raw.data[i])
			continue;
		if (ktap_fail(RULE_RAW_PADDING
			      "%u bytes: byte %u of RAW is %#x; expected 0", size, i,
			      sample.raw.data[i]))
			ktap_hexdump(header, header->size);
		return;
	}
}

/* perf_event_open(2): "The values are padded with 0", in a used ring too. */
static void padding_is_zero(const void *arg)
{
	(void)arg;
	open_output(PERF_SAMPLE_RAW, 1);
	make_maps();
	for (unsigned int i = 0; i < 10; i++)
		check_output(RECORD_DATA, 0, output(RECORD_DATA));
	for (unsigned int size = 1; size <= 24 && !ktap_failures(); size++) {
		check_output(size, 0, output(size));
		check_padding(size);
	}
}

static void large(const void *arg)
{
	static const unsigned int sizes[] = {
		8191, 8192, 16384, 32767, 32768, 65000, 65500, 65509, 65512,
		65513, LARGEST - 1, LARGEST,
	};

	(void)arg;
	start(PERF_SAMPLE_RAW);
	for (unsigned int i = 0; i < ARRAY_SIZE(sizes); i++)
		check_output(sizes[i], 0, output(sizes[i]));
}

/* header.size has 16 bits: more is refused, and leaves nothing in the ring. */
static void too_large(const void *arg)
{
	static const unsigned int sizes[] = { LARGEST + 1, 65535, 65536, VALUE_SIZE };

	(void)arg;
	start(PERF_SAMPLE_RAW);
	for (unsigned int i = 0; i < ARRAY_SIZE(sizes); i++) {
		__s64 result = output(sizes[i]);
		__u64 head = event.page->data_head - event.tail;
		const struct perf_event_header *header;

		if (result < 0 && !head)
			continue;
		header = head ? event_next(&event) : NULL;
		ktap_fail(RULE_RAW_OUTPUT
			  "%u bytes: the helper says %lld, the ring has %llu bytes more, and header.size is %u",
			  sizes[i], result, head, header ? header->size : 0);
		event.tail = event.page->data_head;
		event.page->data_tail = event.tail;
	}
}

/* The bytes that fill up are at worst what lay in the ring: nothing of the kernel. */
static void padding_is_no_leak(const void *arg)
{
	static unsigned char fill[VALUE_SIZE];
	unsigned int kept = 0, zero = 0;

	(void)arg;
	start(PERF_SAMPLE_RAW);
	/* Once round, and into what the first of these records filled. */
	memset(fill, 0x5a, sizeof(fill));
	bpf_map_set(value_map, 0, fill);
	for (unsigned int i = 0; i < 5; i++)
		if (output(60000) || !event_next(&event))
			ktap_stop(RULE_RAW_OUTPUT "no record of 60000 bytes");

	for (unsigned int size = SMALLEST; size <= 40; size++) {
		const struct perf_event_header *header;
		struct sample sample;

		if (output(size))
			ktap_stop(RULE_RAW_OUTPUT
				  "the helper fails for %u bytes; expected 0", size);
		header = event_next(&event);
		if (!header || decode_sample(&event.attr, header, &sample))
			ktap_stop(RULE_RAW_OUTPUT "no whole record for %u bytes", size);
		for (unsigned int i = size; i < sample.raw.size; i++) {
			kept += sample.raw.data[i] == 0x5a;
			zero += !sample.raw.data[i];
			if (sample.raw.data[i] && sample.raw.data[i] != 0x5a &&
			    ktap_fail(RULE_RAW_LEFT_OVER
				      "byte %u behind %u bytes of data is %#x; expected 0, or 0x5a as before",
				      i - size, size, sample.raw.data[i]))
				ktap_hexdump(header, header->size);
		}
	}
	ktap_diag("of the bytes that fill up, %u are 0 and %u as they were", zero, kept);
}

static void packet_small(const void *arg)
{
	(void)arg;
	start(PERF_SAMPLE_RAW);
	choose_path();
	for (unsigned int meta = SMALLEST; meta < 10; meta++)
		for (unsigned int length = 0; length <= longest; length++)
			check_output(meta, length,
				     output_packet(meta, length, SMALL_PACKET));
}

static void need_packet_data(void)
{
	choose_path();
	if (!longest)
		ktap_skip("this kernel's programs cannot append a packet");
}

/* The packet's bytes lie in several pages. */
static void packet_paged(const void *arg)
{
	static const unsigned int lengths[] = {
		4095, 4096, 16000, 20000, 32771, PACKET_SIZE - 1, PACKET_SIZE,
	};

	(void)arg;
	start(PERF_SAMPLE_RAW);
	need_packet_data();
	for (unsigned int i = 0; i < ARRAY_SIZE(lengths); i++)
		check_output(3 + i, lengths[i],
			     output_packet(3 + i, lengths[i], PACKET_SIZE));
}

/* More of the packet than there is. */
static void packet_short(const void *arg)
{
	__s64 result;

	(void)arg;
	start(PERF_SAMPLE_RAW);
	need_packet_data();
	result = output_packet(8, SMALL_PACKET + 1, SMALL_PACKET);
	if (result >= 0 || event_next(&event))
		ktap_fail(RULE_RAW_OUTPUT
			  "%u bytes of a packet of %u: the helper says %lld; expected an error and no record",
			  SMALL_PACKET + 1, SMALL_PACKET, result);
}

struct refusal {
	const char *what;
	__u64 flags;
	int error;
};

/* What the helper must not do, and says so. */
static void refusals(const void *arg)
{
	static const struct refusal list[] = {
		{ "an unknown flag", 1ULL << 33, EINVAL },
		{ "a flag of packets", 1ULL << 63, EINVAL },
		{ "an index behind the map", 3, E2BIG },
		{ "an empty slot", 2, ENOENT },
		{ "an event that is not for BPF", 1, EINVAL },
	};
	struct perf_event_attr attr;
	int other, taken;

	(void)arg;
	start(PERF_SAMPLE_RAW);
	attr_init(&attr, SOURCE_CLOCK, PERF_SAMPLE_RAW);
	other = attr_open(&attr, -1, 0);
	if (other < 0)
		ktap_stop(RULE_OPEN_ACCEPTED "perf_event_open(): %s", strerror(-other));
	/* Maps of old trees do not even take it. */
	taken = bpf_map_try(output_map, 1, &other);
	if (taken && taken != -EINVAL)
		ktap_stop(RULE_TEST_SETUP "BPF_MAP_UPDATE_ELEM: %s", strerror(-taken));
	for (unsigned int i = 0; i < ARRAY_SIZE(list); i++) {
		__s64 result;

		if (taken && list[i].flags == 1)
			continue;
		result = output_to(16, list[i].flags);
		if (result != -list[i].error)
			ktap_fail(RULE_RAW_OUTPUT
				  "%s: the helper says %lld; expected %d", list[i].what,
				  result, -list[i].error);
		if (event_next(&event))
			ktap_fail(RULE_RAW_OUTPUT "%s: and yet there is a record", list[i].what);
	}
	/* The index of this CPU, in one word. */
	check_output(16, 0, output_to(16, 0xffffffff));
}

int main(int argc, char **argv)
{
	ktap_add(small, NULL, "small");
	ktap_add(with_others, NULL, "with_other_types");
	ktap_add(with_others_behind, NULL, "with_other_types_behind");
	ktap_add(ring_edges, NULL, "ring_edges");
	ktap_add(padding_is_zero, NULL, "padding.zero");
	ktap_add(large, NULL, "large");
	ktap_add(too_large, NULL, "too_large");
	ktap_add(padding_is_no_leak, NULL, "padding.no_leak");
	ktap_add(refusals, NULL, "refusals");
	ktap_add(packet_small, NULL, "packet.small");
	ktap_add(packet_paged, NULL, "packet.paged");
	ktap_add(packet_short, NULL, "packet.too_short");
	return ktap_main(argc, argv);
}
