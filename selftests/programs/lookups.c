// SPDX-License-Identifier: GPL-2.0
/*
 * What looking build IDs up must not touch: mappings next to each other, other
 * CPUs that look up at the same time, and files that are closed afterwards.
 */
#include "decode.h"
#include "elf_file.h"
#include "event.h"
#include "ktap.h"
#include "made.h"
#include "oracle.h"
#include "scope.h"

#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHAIN_BIT	PERF_SAMPLE_CALLCHAIN_BUILD_ID_OFFSET
#define PAGE		4096
#define HEADER_PAGES	2
#define FILES		4
#define FRAMES		88	/* no other chain here is as long */
#define CALLS		300
#define RING_PAGES	512	/* all calls fit in */
#define OPENED		400	/* more than the counts of CPUs can differ by */

static struct event event;
static struct elf_file files[FILES];
static __u64 frames[FRAMES];
static unsigned int frame_count, answers;

static void open_event(unsigned int pages, bool defer)
{
	struct perf_event_attr attr;
	int error;

	attr_init(&attr, SOURCE_SYSCALLS, CHAIN_BIT | (defer ? 0 : PERF_SAMPLE_CALLCHAIN));
	attr_defer(&attr, defer, defer);
	error = event_open_on(&event, &attr, 0, -1, -1, pages);
	if (error)
		ktap_stop(RULE_OPEN_ACCEPTED "perf_event_open(): %s", strerror(-error));
}

static void make_file(struct elf_file *file, unsigned int id_size,
		      unsigned int first_byte)
{
	file->id_size = id_size;
	file->first_byte = first_byte;
	elf_file_make(file);
	elf_file_headers(file);
}

/* Answers to the made calls: every address is known. */
static void on_answer(struct expect *expect, const struct record *record)
{
	const struct build_id_offset *entry = record->callchain_deferred.entries;
	const char *problem;

	if (record->header->type != PERF_RECORD_CALLCHAIN_DEFERRED || !entry ||
	    record->callchain_deferred.nr != frame_count + 1)
		return;
	answers++;
	for (unsigned int i = 0; i < frame_count; i++) {
		problem = check_build_id(expect, &entry[i + 1], frames[i]);
		if (problem)
			record_fail(record, "%s", problem);
	}
}

/* Make the calls, and check every entry of what comes of them. */
static void check_calls(unsigned int calls, bool defer)
{
	struct expect expect;

	answers = 0;
	expect_begin(&expect, &event, SOURCE_SYSCALLS);
	expect.must_resolve = true;
	event_enable(&event);
	for (unsigned int i = 0; i < calls; i++)
		made_syscall(frames, frame_count);
	event_disable(&event);
	expect_end(&expect);
	check_ring(&expect, on_answer);
	ktap_diag("%u samples, %u answers, %u entries resolved", expect.samples, answers,
		  expect.resolved);
	if (expect.samples < calls)
		ktap_fail(RULE_SAMPLES_COUNT "%u samples; expected %u at least",
			  expect.samples, calls);
	if (defer && answers < calls)
		ktap_fail(RULE_DEFERRED_ANSWER "%u answers; expected %u, one for each call",
			  answers, calls);
}

/* Pages in a row: -1 is memory of no file, others are files of this number. */
static const int row[] = { -1, 0, 2, 1, 0, 3, -1, 1 };

static char *map_row(void)
{
	char *start = mmap(NULL, (ARRAY_SIZE(row) + 2) * PAGE, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (start == MAP_FAILED)
		ktap_stop(RULE_TEST_SETUP "mmap: %m");
	for (unsigned int i = 0; i < ARRAY_SIZE(row); i++) {
		bool file = row[i] >= 0;
		/* No two neighbours have pages that follow each other in a file. */
		off_t offset = (HEADER_PAGES + (i * 2 + 1) % ELF_CODE_PAGES) * PAGE;

		if (mmap(start + (i + 1) * PAGE, PAGE, PROT_READ | PROT_EXEC,
			 MAP_PRIVATE | MAP_FIXED | (file ? 0 : MAP_ANONYMOUS),
			 file ? files[row[i]].fd : -1, file ? offset : 0) == MAP_FAILED)
			ktap_stop(RULE_TEST_SETUP "mmap: %m");
	}
	return start;
}

/* Last and first bytes of mappings that touch: each is of its own mapping. */
static void neighbours(const void *arg)
{
	const bool *defer = arg;
	char *start;

	need_bits(CHAIN_BIT);
	open_event(RING_PAGES, *defer);
	for (unsigned int i = 0; i < FILES; i++)
		make_file(&files[i], i < 2 ? 20 : 0, 1 + 40 * i);
	start = map_row();
	frame_count = 0;
	for (unsigned int i = 1; i < ARRAY_SIZE(row) + 2; i++) {
		__u64 first = (__u64)start + i * PAGE;
		const __u64 order[] = { first - 1, first, first, first - 1 };

		memcpy(frames + frame_count, order, sizeof(order));
		frame_count += ARRAY_SIZE(order);
	}
	check_calls(4, *defer);
}

/* What two tasks tell each other. */
struct shared {
	bool ready, stop;
};

/* Look up other files on the last CPU, until told to stop. */
static void disturb(struct shared *shared, bool defer)
{
	cpu_set_t set;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	CPU_ZERO(&set);
	CPU_SET(sysconf(_SC_NPROCESSORS_ONLN) - 1, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		_exit(1);
	for (unsigned int i = 0; i < FRAMES; i++)
		frames[i] = (__u64)elf_file_code(&files[2 + i % 2], i % ELF_CODE_PAGES) + i;
	open_event(RING_PAGES, defer);
	event_enable(&event);
	while (!__atomic_load_n(&shared->stop, __ATOMIC_ACQUIRE)) {
		made_syscall(frames, FRAMES);
		event.page->data_tail = event.page->data_head;
		__atomic_store_n(&shared->ready, true, __ATOMIC_RELEASE);
	}
	_exit(0);
}

/* Two CPUs look up at the same time: neither gets what the other finds. */
static void parallel(const void *arg)
{
	const bool *defer = arg;
	struct shared *shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t child;

	need_bits(CHAIN_BIT);
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		ktap_skip("one CPU");
	if (shared == MAP_FAILED)
		ktap_stop(RULE_TEST_SETUP "mmap: %m");
	for (unsigned int i = 0; i < FILES; i++)
		make_file(&files[i], 20, 1 + 40 * i);
	child = fork();
	if (!child)
		disturb(shared, *defer);
	for (frame_count = 0; frame_count < FRAMES; frame_count++)
		frames[frame_count] = (__u64)elf_file_code(&files[frame_count % 2],
							   frame_count % ELF_CODE_PAGES);
	open_event(RING_PAGES, *defer);
	while (child > 0 && !__atomic_load_n(&shared->ready, __ATOMIC_ACQUIRE) &&
	       !waitpid(child, NULL, WNOHANG))
		sched_yield();
	check_calls(CALLS, *defer);
	__atomic_store_n(&shared->stop, true, __ATOMIC_RELEASE);
	waitpid(child, NULL, 0);
	if (child < 0)
		ktap_skip("fork: %m");
}

static long open_files(void)
{
	FILE *file = fopen("/proc/sys/fs/file-nr", "re");
	long count;

	if (!file || fscanf(file, "%ld", &count) != 1)
		ktap_skip("/proc/sys/fs/file-nr: %m");
	fclose(file);
	return count;
}

/* A chain that ends in files, which are unmapped and closed after it. */
static void look_up(unsigned int count, const unsigned int *id_size)
{
	void *code[2], *headers[2];

	for (unsigned int i = 0; i < count; i++) {
		struct elf_file *file = &files[i];

		file->id_size = id_size[i];
		elf_file_make(file);
		headers[i] = (void *)elf_file_headers(file);
		code[i] = elf_file_code(file, 0);
	}
	for (frame_count = 0; frame_count < 4; frame_count++)
		frames[frame_count] = (__u64)code[frame_count % count];
	made_syscall(frames, frame_count);
	for (unsigned int i = 0; i < count; i++) {
		munmap(code[i], PAGE);
		munmap(headers[i], HEADER_PAGES * PAGE);
		close(files[i].fd);
	}
}

struct closed_case {
	const char *name;
	unsigned int count, id_size[2];
};

static const struct closed_case closed_cases[] = {
	{ "build_id", 1, { 20 } },
	{ "no_build_id", 1, { 0 } },
	{ "two_in_turns", 2, { 20, 20 } },
	{ "with_and_without", 2, { 20, 0 } },
};

/* An answer keeps no file open that it has looked into. */
static void keeps_none(const void *arg)
{
	const struct closed_case *test = arg;
	long before, after;

	need_bits(CHAIN_BIT);
	open_event(RING_PAGES, true);
	event_enable(&event);
	look_up(test->count, test->id_size);
	before = open_files();
	for (unsigned int i = 0; i < OPENED; i++) {
		look_up(test->count, test->id_size);
		event.page->data_tail = event.page->data_head;
	}
	after = open_files();
	event_disable(&event);
	ktap_diag("%ld open files, then %ld", before, after);
	if (after - before > OPENED / 2)
		ktap_fail(RULE_MEMORY_LEAK
			  "%ld files more are open; expected no more than before: %u were looked into and closed",
			  after - before, OPENED * test->count);
}

static const bool ways[] = { false, true };
static const char * const names[] = { "in_place", "deferred" };

int main(int argc, char **argv)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(ways); i++) {
		ktap_add(neighbours, &ways[i], "%s.neighbours", names[i]);
		ktap_add(parallel, &ways[i], "%s.parallel", names[i]);
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(closed_cases); i++)
		ktap_add(keeps_none, &closed_cases[i], "closed.%s", closed_cases[i].name);
	return ktap_main(argc, argv);
}
