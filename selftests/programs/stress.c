// SPDX-License-Identifier: GPL-2.0
/*
 * Samples inside samples, tasks that end, whole CPUs with their kernel threads,
 * and memory that must not leak.
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
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define IP_BIT		PERF_SAMPLE_BUILD_ID_OFFSET
#define CHAIN_BIT	PERF_SAMPLE_CALLCHAIN_BUILD_ID_OFFSET
#define FRAMES		110
#define ROUNDS		6000
#define IDLE_FRAMES	76
#define IDLE_ROUNDS	60
#define LEAK_FRAMES	480
#define LEAK_ROUNDS	2500
#define LEAK_LIMIT_KB	12000	/* a leak of each answer would be 38,000 */

static struct event event, clock_event;
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

/* A clock that fires while the page fault's sample is being written. */
static void nested(const void *arg)
{
	const __u64 *bits = arg;
	struct perf_event_attr attr;
	struct expect expect;
	unsigned int clock_samples = 0;

	need_bits(*bits);
	make_frames();
	attr_init(&attr, SOURCE_FAULTS, *bits | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_IP);
	open_or_stop(&event, &attr, 0, -1);
	attr_init(&attr, SOURCE_CLOCK, *bits | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_IP);
	attr.sample_period = 20000;
	open_or_stop(&clock_event, &attr, 0, -1);
	made_fault(frames, FRAMES);
	for (unsigned int i = 0; i < ROUNDS / 40; i++) {
		expect_begin(&expect, &event, SOURCE_FAULTS);
		event_enable(&clock_event);
		event_enable(&event);
		for (unsigned int j = 0; j < 40; j++)
			made_fault(frames, FRAMES);
		event_disable(&event);
		event_disable(&clock_event);
		expect_end(&expect);
		check_ring(&expect, NULL);
		expect.event = &clock_event;
		expect.source = SOURCE_CLOCK;
		expect.samples = 0;
		check_ring(&expect, NULL);
		clock_samples += expect.samples;
		maps_free(&expect.maps);
	}
	ktap_diag("%u samples of the clock among %u faults", clock_samples, ROUNDS);
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

/* How often this task's calls allocate size bytes. */
static __u64 count_allocations(unsigned int size)
{
	long id = tracepoint_id("kmem", "kmalloc");
	struct perf_event_attr attr;
	char filter[64];
	__u64 count = 0;
	int fd;

	if (id < 0)
		ktap_skip("no kmem:kmalloc");
	attr_init(&attr, SOURCE_SYSCALLS, 0);
	attr.config = id;
	attr.sample_period = 0;
	fd = attr_open(&attr, 0, -1);
	snprintf(filter, sizeof(filter), "bytes_req == %u", size);
	if (fd < 0 || ioctl(fd, PERF_EVENT_IOC_SET_FILTER, filter))
		ktap_skip("kmem:kmalloc: %m");
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	for (unsigned int i = 0; i < IDLE_ROUNDS; i++)
		made_syscall(frames, IDLE_FRAMES);
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	if (read(fd, &count, sizeof(count)) != sizeof(count))
		ktap_skip("kmem:kmalloc: %m");
	close(fd);
	return count;
}

/*
 * Once the last event that asks for build IDs is gone, answers to others cost
 * nothing: no memory is taken for one build ID, or for one of each entry.
 */
static void forgotten(const void *arg)
{
	static const unsigned int sizes[] = { 32, 32 * (IDLE_FRAMES + 1) };
	const __u64 *bits = arg;
	struct perf_event_attr attr;

	need_bits(*bits);
	make_frames();
	for (unsigned int i = 0; i < 3; i++) {
		attr_init(&attr, SOURCE_SYSCALLS, *bits);
		attr_defer(&attr, true, true);
		open_or_stop(&event, &attr, 0, -1);
		event_close(&event);
	}
	attr_init(&attr, SOURCE_SYSCALLS, PERF_SAMPLE_CALLCHAIN);
	attr_defer(&attr, true, true);
	open_or_stop(&event, &attr, 0, -1);
	event_enable(&event);
	made_syscall(frames, IDLE_FRAMES);
	for (unsigned int i = 0; i < ARRAY_SIZE(sizes); i++) {
		__u64 count = count_allocations(sizes[i]);

		if (count >= IDLE_ROUNDS / 2)
			ktap_fail(RULE_MEMORY_IDLE
				  "%llu allocations of %u bytes in %u calls; expected none: no event asks for build IDs",
				  count, sizes[i], IDLE_ROUNDS);
	}
}

static const __u64 bits[] = { IP_BIT, CHAIN_BIT, IP_BIT | CHAIN_BIT };
static const char * const names[] = { "address", "chain", "both" };

int main(int argc, char **argv)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(bits); i++) {
		ktap_add(nested, &bits[i], "nested.%s", names[i]);
		ktap_add(whole_cpu, &bits[i], "whole_cpu.%s", names[i]);
		ktap_add(exits, &bits[i], "exits.%s", names[i]);
		ktap_add(forgotten, &bits[i], "forgotten.%s", names[i]);
	}
	ktap_add(leak, NULL, "leak");
	return ktap_main(argc, argv);
}
