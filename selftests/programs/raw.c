// SPDX-License-Identifier: GPL-2.0
/* Raw data of tracepoints, whole and filtered. */
#include "decode.h"
#include "event.h"
#include "ktap.h"
#include "oracle.h"
#include "work.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALLS	16
#define WAKES	8
/* sched_waking: where its record holds the task that is woken. */
#define WOKEN_AT	24

static struct event event;

static void open_syscalls(__u64 bits)
{
	struct perf_event_attr attr;
	int error;

	attr_init(&attr, SOURCE_SYSCALLS, bits);
	error = event_open(&event, &attr);
	if (error)
		ktap_stop(RULE_OPEN_ACCEPTED "perf_event_open(): %s", strerror(-error));
}

static void run(unsigned int least, unsigned int most)
{
	struct expect expect;

	expect_begin(&expect, &event, SOURCE_SYSCALLS);
	event_enable(&event);
	work(SOURCE_SYSCALLS, CALLS);
	event_disable(&event);
	expect_end(&expect);
	check_ring(&expect, NULL);
	if (expect.samples < least || expect.samples > most)
		ktap_fail(RULE_SAMPLES_COUNT "%u samples; expected from %u to %u", expect.samples,
			  least, most);
}

static void tracepoint(const void *arg)
{
	(void)arg;
	open_syscalls(PERF_SAMPLE_RAW);
	/* The ioctl that disables the event is one more. */
	run(CALLS + 1, CALLS + 1);
}

/* The same in a ring that holds older records: what fills up is 0 there too. */
static void used_ring(const void *arg)
{
	struct perf_event_attr attr;
	int error;

	(void)arg;
	attr_init(&attr, SOURCE_SYSCALLS, PERF_SAMPLE_RAW);
	error = event_open_on(&event, &attr, 0, -1, -1, 1);
	if (error)
		ktap_stop(RULE_OPEN_ACCEPTED "perf_event_open(): %s", strerror(-error));
	for (unsigned int i = 0; i < 8; i++)
		run(CALLS + 1, CALLS + 1);
}

static void filtered(const void *arg)
{
	char filter[64];

	(void)arg;
	open_syscalls(PERF_SAMPLE_RAW | PERF_SAMPLE_TID);
	snprintf(filter, sizeof(filter), "id == %d", SYS_getppid);
	if (ioctl(event.fd, PERF_EVENT_IOC_SET_FILTER, filter))
		ktap_stop(RULE_TEST_SETUP "PERF_EVENT_IOC_SET_FILTER: %m");
	run(CALLS, CALLS);
}

static void filtered_away(const void *arg)
{
	(void)arg;
	open_syscalls(PERF_SAMPLE_RAW);
	if (ioctl(event.fd, PERF_EVENT_IOC_SET_FILTER, "id < 0"))
		ktap_stop(RULE_TEST_SETUP "PERF_EVENT_IOC_SET_FILTER: %m");
	run(0, 0);
}

/* Who is woken by a byte in the first pipe, and answers in the second. */
struct sleeper {
	pid_t pid;
	int ask[2], answer[2];
};

static void sleeper_start(struct sleeper *sleeper)
{
	char byte;

	if (pipe(sleeper->ask) || pipe(sleeper->answer))
		ktap_stop(RULE_TEST_SETUP "pipe(): %m");
	sleeper->pid = fork();
	if (sleeper->pid < 0)
		ktap_stop(RULE_TEST_SETUP "fork(): %m");
	if (sleeper->pid)
		return;
	close(sleeper->ask[1]);
	while (read(sleeper->ask[0], &byte, 1) == 1)
		if (write(sleeper->answer[1], &byte, 1) != 1)
			break;
	_exit(0);
}

/* Wake the sleeper once, from this CPU, while it surely sleeps. */
static void sleeper_wake(struct sleeper *sleeper)
{
	char path[64], state = 0, byte = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", sleeper->pid);
	while (state != 'S') {
		sched_yield();
		file = fopen(path, "r");
		if (!file || fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
			ktap_stop(RULE_TEST_SETUP "%s: %m", path);
		fclose(file);
	}
	if (write(sleeper->ask[1], &byte, 1) != 1 ||
	    read(sleeper->answer[0], &byte, 1) != 1)
		ktap_stop(RULE_TEST_SETUP "the woken task does not answer: %m");
}

static void sleeper_stop(struct sleeper *sleeper)
{
	kill(sleeper->pid, SIGKILL);
	waitpid(sleeper->pid, NULL, 0);
	for (unsigned int i = 0; i < 2; i++) {
		close(sleeper->ask[i]);
		close(sleeper->answer[i]);
	}
}

/*
 * A record is of a wake by the task itself, or of one of that task by us; 7.2
 * counts the latter and writes no record, for the event is not active then.
 * Returns how many are of the first kind.
 */
static unsigned int check_wakes(pid_t woken)
{
	const struct perf_event_header *header;
	unsigned int own = 0;

	while ((header = event_next(&event))) {
		struct sample sample;
		const char *problem = decode_sample(&event.attr, header, &sample);
		pid_t waker = 0, pid = 0;
		__u16 type = 0;

		if (!problem && sample.raw.size >= WOKEN_AT + sizeof(pid)) {
			memcpy(&type, sample.raw.data, sizeof(type));
			memcpy(&waker, (char *)sample.raw.data + 4, sizeof(waker));
			memcpy(&pid, (char *)sample.raw.data + WOKEN_AT, sizeof(pid));
		}
		if (!problem && (type != event.attr.config ||
				 (waker != woken && pid != woken)))
			problem = RULE_RAW_DATA "RAW is not of a wake that is of this task";
		if (problem && ktap_fail("%s", problem)) {
			ktap_diag("  tracepoint %u, by %d of %d; expected %llu, and task %d",
				  type, waker, pid, event.attr.config, woken);
			ktap_hexdump(header, header->size < 256 ? header->size : 256);
		}
		own += waker == woken;
	}
	return own;
}

struct target {
	const char *name;
	bool pinned, sibling, filtered;
};

/* What happens to a task is an event of that task, whoever does it. */
static void target_task(const void *arg)
{
	const struct target *target = arg;
	long id = tracepoint_id("sched", "sched_waking");
	struct perf_event_attr attr;
	struct sleeper sleeper;
	int error, leader = -1;
	unsigned int wakes = target->filtered ? 0 : WAKES, own;
	cpu_set_t set;
	__u64 count;

	if (id < 0)
		ktap_skip("no sched:sched_waking in /sys/kernel/tracing");
	CPU_ZERO(&set);
	CPU_SET(0, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		ktap_skip("cannot stay on one CPU: %m");
	sleeper_start(&sleeper);
	attr_init(&attr, SOURCE_SYSCALLS, PERF_SAMPLE_RAW | PERF_SAMPLE_TID);
	attr.pinned = target->pinned;
	attr.read_format = 0;
	if (target->sibling) {
		leader = attr_open(&attr, sleeper.pid, 0);
		if (leader < 0 || ioctl(leader, PERF_EVENT_IOC_ENABLE, 0))
			ktap_stop(RULE_OPEN_ACCEPTED "perf_event_open() of the leader: %m");
		attr.pinned = 0;
	}
	attr.config = id;
	error = event_open_on(&event, &attr, sleeper.pid, 0, leader, 8);
	if (error)
		ktap_stop(RULE_OPEN_ACCEPTED "perf_event_open(): %s", strerror(-error));
	if (target->filtered && ioctl(event.fd, PERF_EVENT_IOC_SET_FILTER, "pid < 0"))
		ktap_stop(RULE_TEST_SETUP "PERF_EVENT_IOC_SET_FILTER: %m");
	event_enable(&event);
	for (unsigned int i = 0; i < WAKES; i++)
		sleeper_wake(&sleeper);
	event_disable(&event);
	/* Before the sleeper is killed, which wakes it once more. */
	if (read(event.fd, &count, sizeof(count)) != sizeof(count))
		ktap_stop(RULE_TEST_SETUP "read() of the event: %m");
	sleeper_stop(&sleeper);
	own = check_wakes(sleeper.pid);
	if (count != own + wakes)
		ktap_fail(RULE_SAMPLES_COUNT
			  "it counted %llu, of which the task itself did %u; expected %u more",
			  count, own, wakes);
}

static const struct target targets[] = {
	{ .name = "tracepoint_of_other_task" },
	{ .name = "tracepoint_of_other_task.pinned", .pinned = true },
	{ .name = "tracepoint_of_other_task.sibling", .sibling = true },
	{ .name = "tracepoint_of_other_task.filtered", .filtered = true },
	{ .name = "tracepoint_of_other_task.pinned_sibling", .pinned = true, .sibling = true },
};

int main(int argc, char **argv)
{
	ktap_add(tracepoint, NULL, "tracepoint");
	ktap_add(used_ring, NULL, "tracepoint_used_ring");
	ktap_add(filtered, NULL, "tracepoint_filtered");
	ktap_add(filtered_away, NULL, "tracepoint_filtered_away");
	for (unsigned int i = 0; i < ARRAY_SIZE(targets); i++)
		ktap_add(target_task, &targets[i], targets[i].name);
	return ktap_main(argc, argv);
}
