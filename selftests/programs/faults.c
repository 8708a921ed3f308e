// SPDX-License-Identifier: GPL-2.0
/*
 * Allocations that fail: every answer is right, plain or empty, and the next is
 * whole; an event that could not be opened leaves nothing behind.
 */
#include "decode.h"
#include "event.h"
#include "ktap.h"
#include "made.h"
#include "oracle.h"
#include "scope.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#define IP_BIT		PERF_SAMPLE_BUILD_ID_OFFSET
#define CHAIN_BIT	PERF_SAMPLE_CALLCHAIN_BUILD_ID_OFFSET
#define DEBUGFS		"/sys/kernel/debug"
#define FAILSLAB	DEBUGFS "/failslab"
#define MAX_STACK	"/proc/sys/kernel/perf_event_max_stack"
#define FRAMES		40
#define FORMS		4
#define MOST		300	/* allocations of one system call */

static struct event producer, consumers[FORMS];
static __u64 frames[FRAMES];

struct form {
	const char *name;
	__u64 bits;
	bool id_all, build_ids;
	unsigned int entries;
};

static const struct form forms[FORMS] = {
	{ "plain", PERF_SAMPLE_CALLCHAIN, false, false, FRAMES + 1 },
	{ "address", IP_BIT, true, true, 1 },
	{ "chain", CHAIN_BIT | PERF_SAMPLE_TID, true, true, FRAMES + 1 },
	{ "plain_and_address", PERF_SAMPLE_CALLCHAIN | IP_BIT, false, false, FRAMES + 1 },
};

/* What one consumer got for one call. */
struct got {
	const struct form *form;
	unsigned int answers, entries;
	bool build_ids;
};

static struct got got;

static bool write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "we");
	bool done;

	if (!file)
		return false;
	done = fputs(text, file) >= 0;
	return !fclose(file) && done;
}

/* Let allocations fail that may sleep, and say nothing on the console. */
static void need_failures(void)
{
	if (access(FAILSLAB, F_OK))
		mount("debugfs", DEBUGFS, "debugfs", 0, NULL);
	if (!write_file(FAILSLAB "/ignore-gfp-wait", "N"))
		ktap_skip("%s: %m (CONFIG_FAILSLAB, CONFIG_FAULT_INJECTION_DEBUG_FS)",
			  FAILSLAB);
	write_file(FAILSLAB "/verbose", "0");
}

static int open_nth(void)
{
	int fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		ktap_skip("/proc/thread-self/fail-nth: %m");
	return fd;
}

/* The nth allocation from here on fails; 0: none. */
static void set_nth(int fd, unsigned int nth)
{
	char text[16];
	int size = snprintf(text, sizeof(text), "%u", nth);

	if (pwrite(fd, text, size, 0) != size)
		ktap_skip("/proc/thread-self/fail-nth: %m");
}

/* Has the allocation failed that set_nth() asked for? */
static bool has_failed(int fd)
{
	char text[16] = "";

	if (pread(fd, text, sizeof(text) - 1, 0) < 1)
		ktap_skip("/proc/thread-self/fail-nth: %m");
	set_nth(fd, 0);
	return text[0] == '0';
}

static void check_entries(struct expect *expect, const struct record *record)
{
	const struct build_id_offset *entry = record->callchain_deferred.entries;
	const char *problem;

	for (__u64 i = 1; i < record->callchain_deferred.nr; i++) {
		__u64 address = frames[i - 1];

		problem = entry ? check_build_id(expect, &entry[i], address) : NULL;
		if (problem)
			record_fail(record, "entry %llu, %#llx: %s", i, address, problem);
		if (!entry && record->callchain_deferred.ips[i] != address)
			record_fail(record, RULE_DEFERRED_ENTRIES
				    "entry %llu is %#llx; expected %#llx, the address that was on the stack",
				    i, record->callchain_deferred.ips[i], address);
	}
}

static void on_answer(struct expect *expect, const struct record *record)
{
	__u64 nr = record->callchain_deferred.nr;
	bool build_ids = record->header->misc & PERF_RECORD_MISC_MMAP_BUILD_ID;

	if (record->header->type != PERF_RECORD_CALLCHAIN_DEFERRED)
		return;
	if (got.answers++)
		record_fail(record, RULE_DEFERRED_ANSWER "a second answer; expected 1");
	if (build_ids && !got.form->build_ids)
		record_fail(record, RULE_DEFERRED_FORM
			    "build IDs for an event that did not ask for them");
	if (nr && nr != got.form->entries)
		record_fail(record, RULE_MEMORY_SHORT "%llu entries; expected %u, or none",
			    nr, got.form->entries);
	else
		check_entries(expect, record);
	got.entries = nr;
	got.build_ids = build_ids;
}

/* One call; if an allocation fails, it is the nth. Returns whether one did. */
static bool call(int fd, unsigned int nth)
{
	bool failed;

	event_enable(&producer);
	set_nth(fd, nth);
	made_syscall(frames, FRAMES);
	failed = has_failed(fd) && nth;
	event_disable(&producer);
	return failed;
}

/* What every consumer has in its ring is of one call. */
static void check_call(struct expect *expect, const unsigned int *form,
		       unsigned int count, bool failed)
{
	unsigned int empty = 0;

	expect->must_resolve = !failed;
	for (unsigned int i = 0; i < count; i++) {
		got = (struct got){ .form = &forms[form[i]] };
		expect->event = &consumers[i];
		check_ring(expect, on_answer);
		empty += !got.entries;
		if (failed)
			continue;
		if (got.entries != got.form->entries || got.build_ids != got.form->build_ids)
			ktap_fail(RULE_MEMORY_SHORT
				  "consumer %s: %u answers, %u entries, build IDs: %s; expected %u and %s: no allocation failed",
				  got.form->name, got.answers, got.entries,
				  got.build_ids ? "yes" : "no", got.form->entries,
				  got.form->build_ids ? "yes" : "no");
	}
	if (empty && empty != count)
		ktap_fail(RULE_MEMORY_SHORT
			  "%u of %u events got no entries, the others did; expected the same call for all",
			  empty, count);
	expect->event = &producer;
	check_ring(expect, NULL);
}

static void open_all(const unsigned int *form, unsigned int count)
{
	struct perf_event_attr attr;
	char filter[32];

	snprintf(filter, sizeof(filter), "id == %d", SYS_getppid);
	attr_init(&attr, SOURCE_SYSCALLS, PERF_SAMPLE_CALLCHAIN);
	attr_defer(&attr, true, false);
	if (event_open(&producer, &attr) ||
	    ioctl(producer.fd, PERF_EVENT_IOC_SET_FILTER, filter))
		ktap_skip("raw_syscalls:sys_enter: %m");
	for (unsigned int i = 0; i < count; i++) {
		int error;

		attr_init(&attr, SOURCE_CLOCK, forms[form[i]].bits);
		attr.config = PERF_COUNT_SW_DUMMY;
		attr.sample_period = 0;
		attr.sample_id_all = forms[form[i]].id_all;
		attr_defer(&attr, false, true);
		error = event_open_on(&consumers[i], &attr, 0, -1, -1, 8);
		if (error)
			ktap_stop(RULE_OPEN_ACCEPTED "consumer %s: %s", forms[form[i]].name,
				  strerror(-error));
		event_enable(&consumers[i]);
	}
}

struct answers_case {
	const char *name;
	unsigned int form[FORMS], count;
};

/* Each allocation that an answer needs fails once, the first ones of a task too. */
static void answers(const void *arg)
{
	const struct answers_case *test = arg;
	unsigned int nth, failures = 0;
	struct expect expect;
	int fd;

	need_bits(IP_BIT | CHAIN_BIT);
	need_failures();
	for (unsigned int i = 0; i < FRAMES; i++)
		frames[i] = (__u64)made_syscall + i % 16;
	/* The stack is as large as the calls need it: that is no allocation of theirs. */
	made_syscall(frames, FRAMES);
	open_all(test->form, test->count);
	fd = open_nth();
	expect_begin(&expect, &producer, SOURCE_COUNT);
	expect_end(&expect);
	for (nth = 1; nth < MOST; nth++) {
		bool failed = call(fd, nth);

		failures += failed;
		check_call(&expect, test->form, test->count, failed);
		if (!failed)
			break;
		call(fd, 0);
		check_call(&expect, test->form, test->count, false);
	}
	/* The task has what it keeps: the next allocation is for this answer. */
	for (unsigned int i = 0; i < 20; i++) {
		bool failed = call(fd, 1);

		failures += failed;
		check_call(&expect, test->form, test->count, failed);
	}
	call(fd, 0);
	check_call(&expect, test->form, test->count, false);
	ktap_diag("%u allocations failed", failures);
	if (!failures)
		ktap_skip("no allocation failed: an answer needs none here");
}

static bool set_max_stack(unsigned int value)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", value);
	return write_file(MAX_STACK, text);
}

/* Each allocation of perf_event_open() fails once. */
static void opens(const void *arg)
{
	const __u64 *bits = arg;
	struct perf_event_attr attr;
	unsigned int failures = 0;
	int fd, nth = 0, event = -1;
	bool failed = true;

	need_bits(*bits);
	need_failures();
	fd = open_nth();
	attr_init(&attr, SOURCE_CLOCK, *bits);
	for (nth = 1; failed && nth < MOST; nth++) {
		set_nth(fd, nth);
		event = attr_open(&attr, 0, -1);
		failed = has_failed(fd);
		failures += failed;
		if (event >= 0)
			close(event);
		if (event < 0 && !failed)
			ktap_fail(RULE_OPEN_ACCEPTED "perf_event_open(): %s, no allocation failed",
				  strerror(-event));
		if (set_max_stack(PERF_MAX_STACK_DEPTH))
			continue;
		ktap_fail(RULE_SYSCTL_MAX_STACK
			  "%s is held after perf_event_open() failed: %m", MAX_STACK);
		break;
	}
	ktap_diag("%u allocations failed", failures);
	if (failed)
		ktap_skip("more than %u allocations", MOST);
}

static const struct answers_case answers_cases[] = {
	{ "all_forms", { 0, 1, 2, 3 }, 4 },
	{ "all_forms.reverse", { 3, 2, 1, 0 }, 4 },
	{ "address", { 0, 1 }, 2 },
	{ "chain", { 2, 0 }, 2 },
};

static const __u64 open_bits[] = { PERF_SAMPLE_CALLCHAIN, IP_BIT, CHAIN_BIT };
static const char * const open_names[] = { "callchain", "address", "chain" };

int main(int argc, char **argv)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(answers_cases); i++)
		ktap_add(answers, &answers_cases[i], "answers.%s", answers_cases[i].name);
	for (unsigned int i = 0; i < ARRAY_SIZE(open_bits); i++)
		ktap_add(opens, &open_bits[i], "open.%s", open_names[i]);
	return ktap_main(argc, argv);
}
