// SPDX-License-Identifier: GPL-2.0
/*
 * Answers of tasks that come to an end: threads, forks, exit, exec, and events
 * that are disabled or closed, or lose records, between a promise and its
 * answer. The reader is CPU-wide and gets nothing but answers.
 */
#include "decode.h"
#include "event.h"
#include "ktap.h"
#include "made.h"
#include "oracle.h"
#include "promise.h"
#include "scope.h"
#include "work.h"

#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define IP_BIT		PERF_SAMPLE_BUILD_ID_OFFSET
#define CHAIN_BIT	PERF_SAMPLE_CALLCHAIN_BUILD_ID_OFFSET
#define FRAMES		8
#define CALLS		6
#define THREADS		4
#define AGAIN		"sideband-again"	/* argv[1] of what was executed */

struct task_case {
	const char *name;
	void (*act)(void);
	__u64 bits, consumer_bits;
	unsigned int pages;		/* of either ring */
	unsigned int may_miss;		/* answers to the call that ends the event */
	unsigned int may_surprise;	/* answers to samples that could not be read */
	int call;			/* the only system call that is sampled; 0: faults are */
};

static struct event producer, consumer;
static unsigned int unknown;
static __u64 frames[FRAMES], lost_samples, lost_answers;

/* The first entry of the answer is where the sample was taken. */
static void check_first(struct expect *expect, const struct record *record,
			__u64 address)
{
	const struct mapping *map = maps_find(&expect->maps, address);
	const char *problem;

	if (!record->callchain_deferred.nr) {
		record_fail(record, RULE_DEFERRED_ENTRIES
			    "no entry; expected the address where the task was");
	} else if (record->callchain_deferred.ips) {
		if (record->callchain_deferred.ips[0] != address)
			record_fail(record, RULE_DEFERRED_ADDRESS
				    "the first entry is %#llx; expected %#llx, the address of the sample",
				    record->callchain_deferred.ips[0], address);
	} else if (map && map->id_size) {
		problem = check_answer(expect, record->callchain_deferred.entries, address);
		if (problem)
			record_fail(record, "%s", problem);
	}
}

/* Wherever a task is when it is answered: build IDs for the event that asks for them. */
static void check_form(const struct record *record)
{
	bool build_ids = record->header->misc & PERF_RECORD_MISC_MMAP_BUILD_ID;

	if (!record->callchain_deferred.nr ||
	    build_ids == !!(consumer.attr.sample_type & (IP_BIT | CHAIN_BIT)))
		return;
	record_fail(record, "%s", build_ids ?
		    RULE_DEFERRED_FORM "build IDs for an event that did not ask for them" :
		    RULE_DEFERRED_FORM "no build IDs for an event that asked for them");
}

static void note_answer(struct expect *expect, const struct record *record)
{
	struct promise *promise;

	if (record->header->type == PERF_RECORD_LOST)
		return;
	if (record->header->type != PERF_RECORD_CALLCHAIN_DEFERRED) {
		record_fail(record, RULE_DEFERRED_ASKED
			    "a record that nobody asked for; expected answers and LOST alone");
		return;
	}
	check_form(record);
	unknown += !promise_find(record->callchain_deferred.cookie);
	promise = promise_note(record->callchain_deferred.cookie, 0);
	if (promise->answers++)
		record_fail(record, RULE_DEFERRED_ANSWER
			    "a second answer to one cookie; expected 1");
	if (promise->address)
		check_first(expect, record, promise->address);
}

static void read_producer(void)
{
	const struct perf_event_header *header;
	struct sample sample;
	struct record record;
	const char *problem;

	while ((header = event_next(&producer))) {
		if (header->type == PERF_RECORD_SAMPLE) {
			problem = decode_sample(&producer.attr, header, &sample);
			if (!problem)
				promise_note_sample(&sample, in_user(&sample) ? sample.ip.ip : 0);
		} else {
			problem = decode_record(&producer.attr, header, &record);
			if (!problem && header->type == PERF_RECORD_LOST)
				lost_samples += record.lost.lost;
		}
		if (problem && ktap_fail("%s", problem))
			ktap_hexdump(header, header->size);
	}
}

static void stay_on_cpu_0(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		ktap_skip("cannot stay on one CPU: %m");
}

static void open_consumer(const struct task_case *test)
{
	struct perf_event_attr attr;
	int error;

	attr_init(&attr, SOURCE_CLOCK, test->consumer_bits);
	attr.config = PERF_COUNT_SW_DUMMY;
	attr.sample_period = 0;
	attr_defer(&attr, false, true);
	attr.read_format = PERF_FORMAT_LOST;
	/* Kernels that overlook defer_output have a case in deferred.c: here they see a bit. */
	attr.ksymbol = !test->consumer_bits;
	error = event_open_on(&consumer, &attr, -1, 0, -1, test->pages);
	if (error)
		ktap_stop(RULE_OPEN_ACCEPTED "a consumer: %s", strerror(-error));
	event_enable(&consumer);
}

static void open_producer(const struct task_case *test, pid_t pid)
{
	struct perf_event_attr attr;
	char filter[32];
	int error;

	attr_init(&attr, test->call ? SOURCE_SYSCALLS : SOURCE_FAULTS,
		  test->bits | PERF_SAMPLE_IP);
	attr_defer(&attr, true, false);
	attr.exclude_kernel = !test->call;	/* each such fault returns to the user */
	attr.inherit = 1;
	error = event_open_on(&producer, &attr, pid, 0, -1, test->pages);
	if (error)
		ktap_stop(RULE_OPEN_ACCEPTED "a producer: %s", strerror(-error));
	if (test->call) {
		snprintf(filter, sizeof(filter), "id == %d", test->call);
		if (ioctl(producer.fd, PERF_EVENT_IOC_SET_FILTER, filter))
			ktap_skip("PERF_EVENT_IOC_SET_FILTER: %m");
	}
	event_enable(&producer);
}

static void fault(void)
{
	for (unsigned int i = 0; i < CALLS; i++)
		made_fault(frames, FRAMES);
}

static void *fault_in_thread(void *arg)
{
	fault();
	return arg;
}

static void threads(void)
{
	pthread_t thread[THREADS];

	for (unsigned int i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, fault_in_thread, NULL);
	fault();
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
}

/* The leader ends while its threads run. */
static void leader_first(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, fault_in_thread, NULL);
	fault();
	pthread_exit(NULL);
}

static void forks(void)
{
	for (unsigned int i = 0; i < THREADS; i++) {
		pid_t child = fork();

		fault();
		if (!child)
			_exit(0);
		waitpid(child, NULL, 0);
	}
}

static void exec_again(void)
{
	fault();
	execl("/proc/self/exe", "sideband", AGAIN, NULL);
	_exit(1);
}

/* The call that is sampled returns to another program. */
static void execs(void)
{
	for (unsigned int i = 0; i < CALLS; i++) {
		pid_t child = fork();

		if (!child)
			exec_again();
		waitpid(child, NULL, 0);
	}
}

/* The call that is sampled never returns. */
static void exits(void)
{
	for (unsigned int i = 0; i < CALLS; i++) {
		pid_t child = fork();

		if (!child)
			_exit(0);
		waitpid(child, NULL, 0);
	}
}

/* An exec that ends the other threads. */
static void exec_with_thread(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, fault_in_thread, NULL);
	exec_again();
}

/* Everything that other side-band bits would tell of. */
static void busy(void)
{
	void *map = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	prctl(PR_SET_NAME, "side-band");
	munmap(map, 4096);
	forks();
	exec_again();
}

/* Killed in the middle: the last fault returns to no user. */
static void killed(void)
{
	fault();
	kill(getpid(), SIGKILL);
}

static void many(void)
{
	for (unsigned int i = 0; i < 40; i++)
		fault();
}

static void check_answers(const struct task_case *test, struct expect *expect)
{
	unsigned int missing;
	__u64 count[2];

	if (read(consumer.fd, count, sizeof(count)) != sizeof(count))
		ktap_stop(RULE_TEST_SETUP "read: %m");
	lost_answers = count[1];
	expect->event = &consumer;
	check_ring(expect, note_answer);
	missing = promises_missing();
	ktap_diag("%u promises, %u without an answer, %u answers to others, lost %llu samples and %llu answers",
		  promise_count, missing, unknown, lost_samples, lost_answers);
	if (promise_count < CALLS && !lost_samples)
		ktap_fail(RULE_DEFERRED_COOKIE "%u promises; expected at least %u", promise_count,
			  CALLS);
	if (missing > test->may_miss + lost_answers)
		ktap_fail(RULE_DEFERRED_ANSWER
			  "%u of %u cookies were not answered; expected at most %llu", missing,
			  promise_count, test->may_miss + lost_answers);
	if (unknown > test->may_surprise && test->pages > 1)
		ktap_fail(RULE_DEFERRED_ANSWER
			  "%u answers to cookies that no sample has; expected at most %u",
			  unknown, test->may_surprise);
}

static void task(const void *arg)
{
	const struct task_case *test = arg;
	struct expect expect;
	int go[2];
	char byte;
	pid_t child;

	need_bits(test->bits | test->consumer_bits);
	for (unsigned int i = 0; i < FRAMES; i++)
		frames[i] = (__u64)check_answers + i;
	stay_on_cpu_0();
	if (pipe(go))
		ktap_stop(RULE_TEST_SETUP "pipe: %m");
	child = fork();
	if (child < 0)
		ktap_stop(RULE_TEST_SETUP "fork: %m");
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (read(go[0], &byte, 1) != 1)
			_exit(1);
		test->act();
		_exit(0);
	}
	open_consumer(test);
	open_producer(test, child);
	expect_begin(&expect, &producer, SOURCE_FAULTS);
	if (write(go[1], "", 1) != 1)
		ktap_stop(RULE_TEST_SETUP "write: %m");
	waitpid(child, NULL, 0);
	event_disable(&producer);
	event_disable(&consumer);
	expect_end(&expect);
	read_producer();
	check_answers(test, &expect);
}

struct end_case {
	const char *name;
	__u64 bits;
	bool close;
};

/* The call that disables or closes an event is sampled, and never answered twice. */
static void ended(const void *arg)
{
	const struct end_case *test = arg;
	const struct task_case wide = {
		.consumer_bits = CHAIN_BIT, .pages = EVENT_PAGES,
		.may_miss = 1, .may_surprise = test->close ? 3 : 0,
	};
	struct perf_event_attr attr;
	struct expect expect;
	int error;

	need_bits(test->bits | CHAIN_BIT);
	for (unsigned int i = 0; i < FRAMES; i++)
		frames[i] = (__u64)check_answers + i;
	stay_on_cpu_0();
	open_consumer(&wide);
	attr_init(&attr, SOURCE_SYSCALLS, test->bits | PERF_SAMPLE_IP);
	attr_defer(&attr, true, false);
	error = event_open(&producer, &attr);
	if (error)
		ktap_stop(RULE_OPEN_ACCEPTED "a producer: %s", strerror(-error));
	expect_begin(&expect, &producer, SOURCE_SYSCALLS);
	event_enable(&producer);
	for (unsigned int i = 0; i < CALLS; i++)
		made_syscall(frames, FRAMES);
	if (test->close) {
		/* The ring goes first: what it gets from now on is not seen. */
		read_producer();
		event_close(&producer);
	} else {
		event_disable(&producer);
		read_producer();
	}
	made_syscall(frames, FRAMES);
	event_disable(&consumer);
	expect_end(&expect);
	check_answers(&wide, &expect);
}

static const struct task_case actions[] = {
	{ "exit", fault, .pages = EVENT_PAGES },
	{ "threads", threads, .pages = EVENT_PAGES },
	{ "leader_first", leader_first, .pages = EVENT_PAGES },
	{ "forks", forks, .pages = EVENT_PAGES },
	{ "exec", exec_again, .pages = EVENT_PAGES },
	{ "exec_call", execs, .pages = EVENT_PAGES, .call = SYS_execve },
	{ "exit_call", exits, .pages = EVENT_PAGES, .call = SYS_exit_group,
	  .may_miss = CALLS + 1 },
	{ "exec_with_thread", exec_with_thread, .pages = EVENT_PAGES, .may_miss = 1 },
	{ "busy", busy, .pages = EVENT_PAGES },
	{ "killed", killed, .pages = EVENT_PAGES, .may_miss = 1 },
	{ "lost", many, .pages = 1 },
};

struct form {
	const char *name;
	__u64 bits, consumer_bits;
};

static const struct form forms[] = {
	{ "callchain", PERF_SAMPLE_CALLCHAIN, 0 },
	{ "address", IP_BIT, IP_BIT },
	{ "chain", CHAIN_BIT, CHAIN_BIT },
	{ "both", IP_BIT | CHAIN_BIT, CHAIN_BIT },
};

static const struct end_case end_cases[] = {
	{ "disabled.callchain", PERF_SAMPLE_CALLCHAIN },
	{ "disabled.chain", CHAIN_BIT },
	{ "closed.callchain", PERF_SAMPLE_CALLCHAIN, true },
	{ "closed.chain", CHAIN_BIT, true },
};

int main(int argc, char **argv)
{
	static struct task_case cases[ARRAY_SIZE(actions)][ARRAY_SIZE(forms)];

	if (argc > 1 && !strcmp(argv[1], AGAIN)) {
		for (unsigned int i = 0; i < FRAMES; i++)
			frames[i] = (__u64)check_answers + i;
		fault();
		return 0;
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(actions); i++) {
		for (unsigned int j = 0; j < ARRAY_SIZE(forms); j++) {
			struct task_case *new = &cases[i][j];

			*new = actions[i];
			new->bits = forms[j].bits;
			new->consumer_bits = forms[j].consumer_bits;
			/* The address of a system call is the kernel's: no promise. */
			if (new->call && new->bits == IP_BIT)
				continue;
			ktap_add(task, new, "%s.%s", new->name, forms[j].name);
		}
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(end_cases); i++)
		ktap_add(ended, &end_cases[i], "%s", end_cases[i].name);
	return ktap_main(argc, argv);
}
