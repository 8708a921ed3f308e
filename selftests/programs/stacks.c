// SPDX-License-Identifier: GPL-2.0
/*
 * Copies of a user stack that the test made: byte by byte, also where memory ends
 * in the middle, wherever the copy lies in the ring, and what stands behind it.
 */
#include "decode.h"
#include "event.h"
#include "ktap.h"
#include "made.h"
#include "oracle.h"

#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGES	4		/* of the made stack */
#define TIMES	40		/* samples of each kind: the ring's pages end anywhere in them */

static struct event event;

struct stack_case {
	const char *name;
	unsigned int mapped;	/* bytes from the stack pointer to the end of memory */
	unsigned int asked;	/* attr.sample_stack_user */
	__u64 bits;
};

/* Memory with a pattern, and none behind it. */
static char *make_stack(size_t page)
{
	char *memory = mmap(NULL, (PAGES + 1) * page, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED || mprotect(memory + PAGES * page, page, PROT_NONE))
		ktap_stop(RULE_TEST_SETUP "mmap: %m");
	for (size_t i = 0; i < PAGES * page; i++)
		memory[i] = i ^ (i >> 8) * 37;
	return memory + PAGES * page;
}

static void stack(const void *arg)
{
	const struct stack_case *test = arg;
	struct perf_event_attr attr;
	struct expect expect;
	int error;

	attr_init(&attr, SOURCE_FAULTS, PERF_SAMPLE_IP | PERF_SAMPLE_STACK_USER | test->bits);
	attr.sample_stack_user = test->asked;
	attr.exclude_kernel = 1;
	error = event_open_on(&event, &attr, 0, -1, -1, 8);
	if (error)
		ktap_stop(RULE_OPEN_ACCEPTED "perf_event_open(): %s", strerror(-error));
	expect_begin(&expect, &event, SOURCE_FAULTS);
	expect.stack = make_stack(sysconf(_SC_PAGESIZE)) - test->mapped;
	expect.stack_size = test->mapped;
	/* The first time, this program's own text comes in: faults on its own stack. */
	for (unsigned int i = 0; i <= TIMES; i++) {
		event_enable(&event);
		made_fault_on(expect.stack);
		event_disable(&event);
		if (!i) {
			while (event_next(&event))
				;
			continue;
		}
		maps_free(&expect.maps);
		expect_end(&expect);
		check_ring(&expect, NULL);
	}
	if (expect.samples != TIMES)
		ktap_fail(RULE_SAMPLES_COUNT "%u samples; expected %u, one of each fault",
			  expect.samples, TIMES);
}

static const struct stack_case cases[] = {
	{ "whole.8", 4096, 8 },
	{ "whole.1000", 4096, 1000 },
	{ "whole.8192", 8192, 8192 },
	{ "cut.8", 8, 1024 },
	{ "cut.1000", 1000, 8192 },
	{ "cut.5000", 5000, 8192 },
	{ "cut.with_more_behind", 1000, 4096,
	  PERF_SAMPLE_REGS_INTR | PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_WEIGHT },
	{ "whole.with_more_behind", 4096, 1000,
	  PERF_SAMPLE_REGS_INTR | PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_WEIGHT },
};

int main(int argc, char **argv)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++)
		ktap_add(stack, &cases[i], "%s", cases[i].name);
	return ktap_main(argc, argv);
}
