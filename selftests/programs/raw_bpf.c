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
#include "work.h"

#include <linux/perf_event.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define VALUE_SIZE	70000
#define RING_PAGES	64
#define HELPER		BPF_FUNC_perf_event_output
/* The largest payload whose record, with header and size, has 16 bits. */
#define LARGEST		65516
#define PACKET_SIZE	40000	/* too large for the linear part of a packet */

static struct event event, trigger;
static int value_map, result_map, output_map, ends[2] = { -1, -1 };
static unsigned char value[VALUE_SIZE], packet[PACKET_SIZE];

static void open_output(__u64 bits)
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
	error = event_open_on(&event, &attr, -1, 0, -1, RING_PAGES);
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
	output_map = bpf_map(BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, 1);
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

/* Let a program at sys_enter write size bytes; returns what the helper did. */
static __s64 output(unsigned int size)
{
	const struct bpf_insn insn[] = {
		MOV(BPF_REG_6, BPF_REG_1),
		LOAD64(BPF_REG_2, BPF_REG_1, 8),
		JUMP_NE(BPF_REG_2, SYS_getppid, 11),
		MOV(BPF_REG_1, BPF_REG_6),
		MAP(BPF_REG_2, output_map),
		MOV_IMM(BPF_REG_3, 0),
		MAP_VALUE(BPF_REG_4, value_map),
		MOV_IMM(BPF_REG_5, size),
		CALL(HELPER),
		MAP_VALUE(BPF_REG_1, result_map),
		STORE64(BPF_REG_1, 0, BPF_REG_0),
		MOV_IMM(BPF_REG_0, 0),
		EXIT(),
	};
	struct perf_event_attr attr;
	int program = bpf_load(BPF_PROG_TYPE_TRACEPOINT, insn, ARRAY_SIZE(insn));
	int error;

	take_result();
	attr_init(&attr, SOURCE_SYSCALLS, 0);
	attr.sample_period = 0;
	error = event_open_on(&trigger, &attr, 0, -1, -1, 1);
	if (error)
		ktap_stop("perf_event_open() for the trigger: %s", strerror(-error));
	if (ioctl(trigger.fd, PERF_EVENT_IOC_SET_BPF, program))
		ktap_stop("PERF_EVENT_IOC_SET_BPF: %m");
	event_enable(&trigger);
	work_syscall();
	event_disable(&trigger);
	event_close(&trigger);
	close(program);
	return take_result();
}

/* Let a socket filter write meta bytes and length bytes of a packet. */
static __s64 output_packet(unsigned int meta, unsigned int length,
			   unsigned int size)
{
	__u64 flags = (__u64)length << 32;
	const struct bpf_insn insn[] = {
		MAP(BPF_REG_2, output_map),
		WIDE_IMM(BPF_REG_3, flags),
		MAP_VALUE(BPF_REG_4, value_map),
		MOV_IMM(BPF_REG_5, meta),
		CALL(HELPER),
		MAP_VALUE(BPF_REG_1, result_map),
		STORE64(BPF_REG_1, 0, BPF_REG_0),
		MOV_IMM(BPF_REG_0, -1),
		EXIT(),
	};
	int program = bpf_load(BPF_PROG_TYPE_SOCKET_FILTER, insn, ARRAY_SIZE(insn));
	int room = 8 * PACKET_SIZE;

	take_result();
	if (ends[0] < 0 && socketpair(AF_UNIX, SOCK_DGRAM, 0, ends))
		ktap_skip("AF_UNIX: %m");
	setsockopt(ends[0], SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room));
	if (setsockopt(ends[1], SOL_SOCKET, SO_ATTACH_BPF, &program, sizeof(program)))
		ktap_stop("SO_ATTACH_BPF: %m");
	if (send(ends[0], packet, size, MSG_DONTWAIT) != (ssize_t)size)
		ktap_stop("a datagram of %u bytes: %m", size);
	recv(ends[1], packet, sizeof(packet), MSG_DONTWAIT);
	close(program);
	return take_result();
}

/* One sample is in the ring: size bytes, of which the last are of a packet. */
static void check_output(unsigned int meta, unsigned int length, __s64 result)
{
	const struct perf_event_header *header = event_next(&event);
	unsigned int size = meta + length, whole = ((size + 4 + 7) & ~7U) - 4;
	struct sample sample;
	const char *problem;

	if (result) {
		ktap_fail("the helper says %lld for %u bytes", result, size);
		return;
	}
	if (!header) {
		ktap_fail("no record for %u bytes", size);
		return;
	}
	problem = decode_sample(&event.attr, header, &sample);
	if (!problem && sample.raw.size != whole)
		problem = "RAW size is not that of the data, filled up to 8 bytes";
	if (!problem && memcmp(sample.raw.data, value, meta))
		problem = "RAW: the data differs from what the program wrote";
	if (!problem && memcmp(sample.raw.data + meta, packet, length))
		problem = "RAW: the data differs from the packet";
	if (problem && ktap_fail("%u bytes and %u of a packet: %s", meta, length,
				 problem)) {
		ktap_diag("  header.size %u, RAW size %u, not %u", header->size,
			  sample.raw.size, whole);
		ktap_hexdump(header, header->size < 256 ? header->size : 256);
	}
	if (event_next(&event))
		ktap_fail("a second record for one output of %u bytes", size);
}

static void start(__u64 bits)
{
	open_output(bits);
	make_maps();
}

static void small(const void *arg)
{
	(void)arg;
	start(PERF_SAMPLE_RAW);
	for (unsigned int size = 0; size <= 40; size++)
		check_output(size, 0, output(size));
}

static void with_others(const void *arg)
{
	(void)arg;
	start(PERF_SAMPLE_RAW | PERF_SAMPLE_IP | PERF_SAMPLE_TIME |
	      PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER);
	for (unsigned int size = 0; size <= 24; size++)
		check_output(size, 0, output(size));
}

/* Records that begin and end everywhere in a page. */
static void ring_edges(const void *arg)
{
	(void)arg;
	start(PERF_SAMPLE_RAW);
	for (unsigned int i = 0; i < 64; i++)
		check_output(4064 + i, 0, output(4064 + i));
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
		ktap_fail("%u bytes: the helper says %lld, the ring has %llu bytes more, and header.size is %u",
			  sizes[i], result, head, header ? header->size : 0);
		event.tail = event.page->data_head;
		event.page->data_tail = event.tail;
	}
}

static void packet_small(const void *arg)
{
	(void)arg;
	start(PERF_SAMPLE_RAW);
	for (unsigned int meta = 0; meta < 10; meta++)
		for (unsigned int length = 0; length < 10; length++)
			check_output(meta, length, output_packet(meta, length, 64));
}

/* The packet's bytes lie in several pages. */
static void packet_paged(const void *arg)
{
	static const unsigned int lengths[] = {
		4095, 4096, 16000, 20000, 32771, PACKET_SIZE - 1, PACKET_SIZE,
	};

	(void)arg;
	start(PERF_SAMPLE_RAW);
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
	result = output_packet(8, 65, 64);
	if (result >= 0 || event_next(&event))
		ktap_fail("65 bytes of a packet of 64: the helper says %lld", result);
}

int main(int argc, char **argv)
{
	ktap_add(small, NULL, "small");
	ktap_add(with_others, NULL, "with_other_types");
	ktap_add(ring_edges, NULL, "ring_edges");
	ktap_add(large, NULL, "large");
	ktap_add(too_large, NULL, "too_large");
	ktap_add(packet_small, NULL, "packet.small");
	ktap_add(packet_paged, NULL, "packet.paged");
	ktap_add(packet_short, NULL, "packet.too_short");
	return ktap_main(argc, argv);
}
