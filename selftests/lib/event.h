/* SPDX-License-Identifier: GPL-2.0 */
/* Opening an event, and reading the records in its ring buffer. */
#ifndef EVENT_H
#define EVENT_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define EVENT_PAGES	128		/* data pages of a ring, unless said */
#define RECORD_MAX	65536

struct event {
	struct perf_event_attr attr;
	int fd;
	__u64 id;
	struct perf_event_mmap_page *page;
	size_t data_size;
	__u64 tail;
	__u64 record[RECORD_MAX / sizeof(__u64)];	/* the current record */
};

/* What makes samples. */
enum source {
	SOURCE_FAULTS,		/* software page faults: user registers */
	SOURCE_SYSCALLS,	/* raw_syscalls:sys_enter: kernel registers */
	SOURCE_CLOCK,		/* cpu-clock: an interrupt anywhere */
	SOURCE_COUNT,
};

extern const char * const source_names[SOURCE_COUNT];

/*
 * Fill attr for source and sample bits: disabled, period 1 (a clock: 200 us),
 * times from CLOCK_MONOTONIC, and what the bits' specs ask for. Skips the case
 * when the machine has no such source.
 */
void attr_init(struct perf_event_attr *attr, enum source source, __u64 bits);

/* The bits of attr.read_format: all that the header has, on base that it takes. */
__u64 attr_formats(void);

/* Ask for deferred callchains; skips the case when the tree has none. */
void attr_defer(struct perf_event_attr *attr, bool callchain, bool output);

/* Does attr ask for them? */
bool attr_defers(const struct perf_event_attr *attr);

/* perf_event_open() without a group; returns the descriptor or -errno. */
int attr_open(struct perf_event_attr *attr, pid_t pid, int cpu);

/* The same with an attr of size bytes, which may be more or less than ours. */
int attr_open_sized(const void *attr, unsigned int size);

/* The same, as a member of the group that leader leads. */
int attr_open_in(struct perf_event_attr *attr, int leader);

/* Open attr on this task and map its ring. Returns 0 or -errno. */
int event_open(struct event *event, const struct perf_event_attr *attr);

/* The same for any task, CPU and group, with a ring of pages data pages. */
int event_open_on(struct event *event, const struct perf_event_attr *attr,
		  pid_t pid, int cpu, int group, unsigned int pages);

/* Close the event and its ring. */
void event_close(struct event *event);

void event_enable(struct event *event);
void event_disable(struct event *event);

/*
 * Copy the next record out of the ring. Returns NULL at its end, and fails the
 * case when what lies there cannot be a record.
 */
const struct perf_event_header *event_next(struct event *event);

/*
 * Fail the case when something was written behind the last record of a ring that
 * was never full: it lies in the way of the next record, or on the oldest.
 */
void event_check_end(const struct event *event);

/* Id of a tracepoint from tracefs, or -1. */
long tracepoint_id(const char *group, const char *name);

#endif
