// SPDX-License-Identifier: GPL-2.0
/*
 * Tasks that end, whole CPUs with their kernel threads, and memory that must
 * not leak, nor reach into its neighbours.
 */
#include "decode.h"
#include "event.h"
#include "ktap.h"
#include "made.h"
#include "oracle.h"
#include "scope.h"
#include "work.h"

#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define IP_BIT		PERF_SAMPLE_BUILD_ID_OFFSET
#define CHAIN_BIT	PERF_SAMPLE_CALLCHAIN_BUILD_ID_OFFSET
#define NEIGHBOURS	96
#define DATAGRAM	1500	/* with its header, in memory of 2048 bytes */
#define LEAK_FRAMES	480
#define LEAK_ROUNDS	2500
#define LEAK_LIMIT_KB	12000	/* a leak of each answer would be 38,000 */

static struct event event;
static __u64 frames[LEAK_FRAMES];

static void make_frames(void)
{
	for (unsigned int i = 0; i < LEAK_FRAMES; i++)
		frames[i] = (__u64)(i % 2 ? (void *)made_fault : (void *)make_frames) + i % 32;
}

static void open_or_stop(struct event *event, struct perf_event_attr *attr,
			 pid_t pid, int cpu)
{
	int error = event_open_on(event, attr, pid, cpu, -1, EVENT_PAGES);

	if (error)
		ktap_stop(RULE_OPEN_ACCEPTED "perf_event_open(): %s", strerror(-error));
}

/* Everything on one CPU: this task, others, kernel threads, the idle task. */
static void whole_cpu(const void *arg)
{
	const __u64 *bits = arg;
	const struct perf_event_header *header;
	struct perf_event_attr attr;
	struct sample sample;
	struct record record;
	const char *problem;
	unsigned int samples = 0;
	int cpu = sysconf(_SC_NPROCESSORS_ONLN) - 1;

	need_bits(*bits);
	attr_init(&attr, SOURCE_CLOCK, *bits | PERF_SAMPLE_TID);
	attr.sample_period = 500000;
	open_or_stop(&event, &attr, -1, cpu);
	event_enable(&event);
	for (unsigned int i = 0; i < 10; i++) {
		pid_t child = fork();

		if (!child) {
			work(SOURCE_CLOCK, 1);
			_exit(0);
		}
		waitpid(child, NULL, 0);
		usleep(2000);
	}
	event_disable(&event);
	while ((header = event_next(&event))) {
		if (header->type == PERF_RECORD_SAMPLE) {
			problem = decode_sample(&attr, header, &sample);
			samples++;
		} else {
			problem = decode_record(&attr, header, &record);
		}
		if (problem && ktap_fail("type %u size %u: %s", header->type,
					 header->size, problem))
			ktap_hexdump(header, header->size);
	}
	if (!samples)
		ktap_fail(RULE_SAMPLES_COUNT "no samples of a busy CPU");
}

/* Tasks that end with a promise outstanding: what is written is whole. */
static void exits(const void *arg)
{
	const __u64 *bits = arg;
	const struct perf_event_header *header;
	struct perf_event_attr attr;
	struct sample sample;
	struct record record;
	const char *problem;
	unsigned int samples = 0;

	need_bits(*bits);
	make_frames();
	attr_init(&attr, SOURCE_SYSCALLS, *bits);
	attr.inherit = 1;
	attr_defer(&attr, true, true);
	/* An inherited event has no ring of its own: one CPU, this task's. */
	open_or_stop(&event, &attr, 0, 0);
	event_enable(&event);
	for (unsigned int i = 0; i < 20; i++) {
		pid_t child = fork();

		if (!child) {
			made_syscall(frames, 5);
			if (i % 2)
				raise(SIGKILL);
			syscall(SYS_exit_group, 0);
		}
		waitpid(child, NULL, 0);
	}
	event_disable(&event);
	while ((header = event_next(&event))) {
		samples += header->type == PERF_RECORD_SAMPLE;
		problem = header->type == PERF_RECORD_SAMPLE ?
			  decode_sample(&attr, header, &sample) :
			  decode_record(&attr, header, &record);
		if (problem && ktap_fail("type %u size %u: %s", header->type,
					 header->size, problem))
			ktap_hexdump(header, header->size);
	}
	ktap_diag("%u samples", samples);
}

/* Memory of the kernel that cannot be reclaimed, in KiB. */
static long kernel_memory(void)
{
	FILE *file = fopen("/proc/meminfo", "re");
	char line[128];
	long slab = -1, kib;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "SUnreclaim: %ld kB", &kib) == 1)
			slab = kib;
	if (file)
		fclose(file);
	if (slab < 0)
		ktap_skip("no SUnreclaim in /proc/meminfo");
	return slab;
}

/* Large answers, again and again, leave no memory behind. */
static void leak(const void *arg)
{
	struct perf_event_attr attr;
	long before, after;

	(void)arg;
	need_bits(CHAIN_BIT);
	make_frames();
	attr_init(&attr, SOURCE_SYSCALLS, CHAIN_BIT);
	attr_defer(&attr, true, true);
	open_or_stop(&event, &attr, 0, -1);
	event_enable(&event);
	for (unsigned int i = 0; i < 50; i++)
		made_syscall(frames, LEAK_FRAMES);
	before = kernel_memory();
	for (unsigned int i = 0; i < LEAK_ROUNDS; i++)
		made_syscall(frames, LEAK_FRAMES);
	after = kernel_memory();
	event_disable(&event);
	ktap_diag("%ld KiB before, %ld after %u answers", before, after, LEAK_ROUNDS);
	if (after - before > LEAK_LIMIT_KB)
		ktap_fail(RULE_MEMORY_LEAK "the kernel holds %ld KiB more after %u answers",
			  after - before, LEAK_ROUNDS);
}

static void fill(unsigned char *data, unsigned int number)
{
	for (unsigned int i = 0; i < DATAGRAM; i++)
		data[i] = 1 + (number + i) % 255;
}

/* A datagram is received as it was sent. */
static void receive(int fd, unsigned int number)
{
	unsigned char data[DATAGRAM], sent[DATAGRAM];

	fill(sent, number);
	if (read(fd, data, sizeof(data)) != sizeof(data))
		ktap_stop(RULE_MEMORY_NEIGHBOUR "datagram %u is gone: %m", number);
	for (unsigned int i = 0; i < DATAGRAM; i++) {
		if (data[i] == sent[i])
			continue;
		if (ktap_fail(RULE_MEMORY_NEIGHBOUR
			      "byte %u of datagram %u is %#x; expected %#x, as it was sent",
			      i, number, data[i], sent[i]))
			ktap_hexdump(data, 128);
		return;
	}
}

/*
 * The memory of an answer is what a datagram had that was just received; those
 * before and after it are still to be read.
 */
static void neighbours(const void *arg)
{
	static int socket[NEIGHBOURS][2];
	unsigned char data[DATAGRAM];
	const unsigned int *entries = arg;
	struct perf_event_attr attr;
	char filter[32];

	need_bits(CHAIN_BIT);
	make_frames();
	attr_init(&attr, SOURCE_SYSCALLS, CHAIN_BIT);
	attr_defer(&attr, true, true);
	open_or_stop(&event, &attr, 0, -1);
	snprintf(filter, sizeof(filter), "id == %d", SYS_getppid);
	if (ioctl(event.fd, PERF_EVENT_IOC_SET_FILTER, filter))
		ktap_skip("PERF_EVENT_IOC_SET_FILTER: %m");
	event_enable(&event);
	made_syscall(frames, *entries - 1);
	for (unsigned int i = 0; i < NEIGHBOURS; i++)
		if (socketpair(AF_UNIX, SOCK_DGRAM, 0, socket[i]))
			ktap_skip("socketpair(): %m");
	for (unsigned int i = 0; i < NEIGHBOURS; i++) {
		fill(data, i);
		if (write(socket[i][0], data, sizeof(data)) != sizeof(data))
			ktap_skip("a datagram cannot be sent: %m");
	}
	for (unsigned int i = 0; i < NEIGHBOURS; i += 2) {
		receive(socket[i][1], i);
		made_syscall(frames, *entries - 1);
	}
	for (unsigned int i = 1; i < NEIGHBOURS; i += 2)
		receive(socket[i][1], i);
}

/* Entries that fill memory of 2048 bytes, and the most that 24 bytes each let in. */
static const unsigned int neighbour_entries[] = { 64, 85 };
static const __u64 bits[] = { IP_BIT, CHAIN_BIT, IP_BIT | CHAIN_BIT };
static const char * const names[] = { "address", "chain", "both" };

int main(int argc, char **argv)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(bits); i++) {
		ktap_add(whole_cpu, &bits[i], "whole_cpu.%s", names[i]);
		ktap_add(exits, &bits[i], "exits.%s", names[i]);
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(neighbour_entries); i++)
		ktap_add(neighbours, &neighbour_entries[i], "neighbours.%u_entries",
			 neighbour_entries[i]);
	ktap_add(leak, NULL, "leak");
	return ktap_main(argc, argv);
}
