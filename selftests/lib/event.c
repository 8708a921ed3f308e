// SPDX-License-Identifier: GPL-2.0
#include "event.h"
#include "decode.h"
#include "ktap.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CLOCK_PERIOD_NS	200000
#define END_SIZE	4096	/* bytes that are looked at behind the last record */
#define END_PATIENCE_US	10000

const char * const source_names[SOURCE_COUNT] = {
	[SOURCE_FAULTS] = "page_faults",
	[SOURCE_SYSCALLS] = "sys_enter",
	[SOURCE_CLOCK] = "cpu_clock",
};

long tracepoint_id(const char *group, const char *name)
{
	static const char * const roots[] = {
		"/sys/kernel/tracing", "/sys/kernel/debug/tracing",
	};
	char path[256];
	long id = -1;
	FILE *file;

	for (unsigned int i = 0; i < 2 && id < 0; i++) {
		snprintf(path, sizeof(path), "%s/events/%s/%s/id", roots[i],
			 group, name);
		file = fopen(path, "r");
		if (!file)
			continue;
		if (fscanf(file, "%ld", &id) != 1)
			id = -1;
		fclose(file);
	}
	return id;
}

void attr_init(struct perf_event_attr *attr, enum source source, __u64 bits)
{
	long id;

	memset(attr, 0, sizeof(*attr));
	attr->size = sizeof(*attr);
	attr->type = PERF_TYPE_SOFTWARE;
	attr->sample_period = 1;
	attr->sample_type = bits;
	attr->disabled = 1;
	attr->exclude_hv = 1;
	attr->use_clockid = 1;
	attr->clockid = CLOCK_MONOTONIC;
	switch (source) {
	case SOURCE_FAULTS:
		attr->config = PERF_COUNT_SW_PAGE_FAULTS;
		break;
	case SOURCE_SYSCALLS:
		id = tracepoint_id("raw_syscalls", "sys_enter");
		if (id < 0)
			ktap_skip("no raw_syscalls:sys_enter in /sys/kernel/tracing");
		attr->type = PERF_TYPE_TRACEPOINT;
		attr->config = id;
		break;
	default:
		attr->config = PERF_COUNT_SW_CPU_CLOCK;
		attr->sample_period = CLOCK_PERIOD_NS;
	}
	attr_for_bits(attr, bits);
	attr->read_format &= attr_formats();
}

/* The header is that of the patched kernel: base may not know all of it. */
__u64 attr_formats(void)
{
	static __u64 formats;

	if (formats)
		return formats;
	formats = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING |
		  PERF_FORMAT_ID | PERF_FORMAT_GROUP | PERF_FORMAT_LOST;
	for (__u64 bit = 1; ktap_kernel == KERNEL_BASE && bit <= formats; bit <<= 1) {
		struct perf_event_attr attr = {
			.size = sizeof(attr),
			.type = PERF_TYPE_SOFTWARE,
			.config = PERF_COUNT_SW_DUMMY,
			.read_format = bit,
		};
		int fd = attr_open(&attr, 0, -1);

		if (fd < 0)
			formats &= ~bit;
		else
			close(fd);
	}
	return formats;
}

#if HAVE_DEFER_CALLCHAIN
void attr_defer(struct perf_event_attr *attr, bool callchain, bool output)
{
	attr->defer_callchain = callchain;
	attr->defer_output = output;
}

bool attr_defers(const struct perf_event_attr *attr)
{
	return attr->defer_callchain;
}
#else
void attr_defer(struct perf_event_attr *attr, bool callchain, bool output)
{
	(void)attr;
	if (callchain || output)
		ktap_skip("this tree has no deferred callchains");
}

bool attr_defers(const struct perf_event_attr *attr)
{
	(void)attr;
	return false;
}
#endif

static int open_fd(struct perf_event_attr *attr, pid_t pid, int cpu, int group)
{
	long fd = syscall(SYS_perf_event_open, attr, pid, cpu, group,
			  PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

int attr_open(struct perf_event_attr *attr, pid_t pid, int cpu)
{
	return open_fd(attr, pid, cpu, -1);
}

int attr_open_sized(const void *attr, unsigned int size)
{
	static struct {
		struct perf_event_attr attr;
		char more[256];
	} copy;

	memset(&copy, 0, sizeof(copy));
	memcpy(&copy, attr, size < sizeof(copy) ? size : sizeof(copy));
	copy.attr.size = size;
	return open_fd(&copy.attr, 0, -1, -1);
}

int attr_open_in(struct perf_event_attr *attr, int leader)
{
	return open_fd(attr, 0, -1, leader);
}

int event_open(struct event *event, const struct perf_event_attr *attr)
{
	return event_open_on(event, attr, 0, -1, -1, EVENT_PAGES);
}

int event_open_on(struct event *event, const struct perf_event_attr *attr,
		  pid_t pid, int cpu, int group, unsigned int pages)
{
	size_t page_size = sysconf(_SC_PAGESIZE);
	void *map;

	event->attr = *attr;
	event->tail = 0;
	event->fd = open_fd(&event->attr, pid, cpu, group);
	if (event->fd < 0)
		return event->fd;
	event->data_size = pages * page_size;
	map = mmap(NULL, page_size + event->data_size, PROT_READ | PROT_WRITE,
		   MAP_SHARED, event->fd, 0);
	if (map == MAP_FAILED || ioctl(event->fd, PERF_EVENT_IOC_ID, &event->id)) {
		int error = -errno;

		close(event->fd);
		return error;
	}
	event->page = map;
	return 0;
}

void event_close(struct event *event)
{
	munmap(event->page, sysconf(_SC_PAGESIZE) + event->data_size);
	close(event->fd);
}

void event_enable(struct event *event)
{
	ioctl(event->fd, PERF_EVENT_IOC_ENABLE, 0);
}

void event_disable(struct event *event)
{
	ioctl(event->fd, PERF_EVENT_IOC_DISABLE, 0);
}

static void copy_out(const struct event *event, void *to, size_t size)
{
	const char *data = (const char *)event->page + event->page->data_offset;
	size_t at = event->tail % event->data_size;
	size_t first = event->data_size - at;

	if (first > size)
		first = size;
	memcpy(to, data + at, first);
	memcpy((char *)to + first, data, size - first);
}

const struct perf_event_header *event_next(struct event *event)
{
	__u64 head = __atomic_load_n(&event->page->data_head, __ATOMIC_ACQUIRE);
	struct perf_event_header header;

	if (event->tail == head)
		return NULL;
	copy_out(event, &header, sizeof(header));
	if (header.size < sizeof(header) || header.size % 8 ||
	    header.size > head - event->tail || !header.type) {
		ktap_fail(RULE_HEADER_TYPE "no record at %llu of %llu: type %u misc %#x size %u",
			  event->tail, head, header.type, header.misc, header.size);
		copy_out(event, event->record,
			 head - event->tail < 128 ? head - event->tail : 128);
		ktap_hexdump(event->record,
			     head - event->tail < 128 ? head - event->tail : 128);
		event->tail = head;
		return NULL;
	}
	copy_out(event, event->record, header.size);
	event->tail += header.size;
	__atomic_store_n(&event->page->data_tail, event->tail, __ATOMIC_RELEASE);
	return (const struct perf_event_header *)event->record;
}

void event_check_end(const struct event *event)
{
	__u64 head = __atomic_load_n(&event->page->data_head, __ATOMIC_ACQUIRE);
	const char *end = (const char *)event->page + event->page->data_offset + head;
	size_t written = 0;

	for (size_t i = 0; i < END_SIZE && head + i < event->data_size; i++)
		if (end[i])
			written = i + 1;
	if (!written)
		return;
	/* Of an event that runs on another CPU, a record may be on its way. */
	usleep(END_PATIENCE_US);
	if (head == __atomic_load_n(&event->page->data_head, __ATOMIC_ACQUIRE) &&
	    ktap_fail(RULE_RING_END
		      "%zu bytes are written behind the end of the last record; expected none",
		      written))
		ktap_hexdump(end, written);
}
