// SPDX-License-Identifier: GPL-2.0
/*
 * What events that ask for build IDs cost, and that it ends with the last one.
 * Runs first after boot: a count that is wrong already can hide its fault.
 */
#include "decode.h"
#include "event.h"
#include "ktap.h"
#include "made.h"
#include "oracle.h"
#include "scope.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define IP_BIT		PERF_SAMPLE_BUILD_ID_OFFSET
#define CHAIN_BIT	PERF_SAMPLE_CALLCHAIN_BUILD_ID_OFFSET
#define FRAMES		76	/* no other chain here is as long */
#define ROUNDS		60
#define TIMES		3	/* that another event comes and goes */
#define ENTRY_SIZE	sizeof(struct build_id_offset)

static struct event event, other;
static __u64 frames[FRAMES];
static unsigned int answers;

static void make_frames(void)
{
	for (unsigned int i = 0; i < FRAMES; i++)
		frames[i] = (__u64)made_fault + i % 16;
}

/* An event with answers of its own. */
static void open_event(struct event *event, enum source source, __u64 bits)
{
	struct perf_event_attr attr;
	int error;

	attr_init(&attr, source, bits);
	attr_defer(&attr, true, true);
	error = event_open(event, &attr);
	if (error)
		ktap_stop(RULE_OPEN_ACCEPTED "perf_event_open(): %s", strerror(-error));
}

/* Answers to made calls; page faults of other places may add some. */
static void on_answer(struct expect *expect, const struct record *record)
{
	__u64 expected = expect->event->attr.sample_type & CHAIN_BIT ? FRAMES + 1 : 1;

	if (record->header->type != PERF_RECORD_CALLCHAIN_DEFERRED)
		return;
	if (!record->callchain_deferred.entries)
		record_fail(record, RULE_DEFERRED_FORM
			    "no build IDs for an event that asked for them");
	else if (record->callchain_deferred.nr == expected)
		answers++;
}

/* Another kind of event. */
struct kind {
	const char *name;
	__u64 bits;
	bool inherit;
};

static const struct kind kinds[] = {
	{ "nothing", 0 },
	{ "ip", PERF_SAMPLE_IP },
	{ "callchain", PERF_SAMPLE_CALLCHAIN },
	{ "period", PERF_SAMPLE_PERIOD },
	{ "build_id", IP_BIT },
	{ "build_id_chain", CHAIN_BIT },
	{ "both", IP_BIT | CHAIN_BIT },
	{ "inherited", IP_BIT | CHAIN_BIT, true },
};

/* One event of a kind is opened and closed; a child may inherit it. */
static void come_and_go(const struct kind *kind)
{
	struct perf_event_attr attr;
	int fd;

	attr_init(&attr, SOURCE_CLOCK, kind->bits);
	attr.inherit = kind->inherit;
	fd = attr_open(&attr, 0, -1);
	if (fd < 0)
		ktap_stop(RULE_OPEN_ACCEPTED "perf_event_open() for %s: %s", kind->name,
			  strerror(-fd));
	if (kind->inherit) {
		pid_t child = fork();

		if (!child)
			_exit(0);
		waitpid(child, NULL, 0);
	}
	close(fd);
}

struct keeps_case {
	__u64 bits;
	const struct kind *kind;
};

/* An event gets its build IDs, whatever other events come and go. */
static void keeps(const void *arg)
{
	const struct keeps_case *test = arg;
	struct expect expect;

	need_bits(test->bits | test->kind->bits);
	make_frames();
	open_event(&event, SOURCE_FAULTS, test->bits);
	for (unsigned int i = 0; i <= TIMES && !ktap_failures(); i++) {
		if (i)
			come_and_go(test->kind);
		answers = 0;
		expect_begin(&expect, &event, SOURCE_FAULTS);
		event_enable(&event);
		made_fault(frames, FRAMES);
		event_disable(&event);
		expect_end(&expect);
		check_ring(&expect, on_answer);
		maps_free(&expect.maps);
		if (!answers)
			ktap_fail(RULE_DEFERRED_ENTRIES
				  "no answer with build IDs for what was asked, after %u other events were closed; expected 1",
				  i);
	}
}

/* How many allocations that filter names the made calls of this task need. */
static __u64 count_allocations(const char *filter)
{
	long id = tracepoint_id("kmem", "kmalloc");
	struct perf_event_attr attr;
	__u64 count = 0;
	int fd;

	if (id < 0)
		ktap_skip("no kmem:kmalloc");
	attr_init(&attr, SOURCE_SYSCALLS, 0);
	attr.config = id;
	attr.sample_period = 0;
	fd = attr_open(&attr, 0, -1);
	if (fd < 0 || ioctl(fd, PERF_EVENT_IOC_SET_FILTER, filter))
		ktap_skip("kmem:kmalloc: %m");
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	for (unsigned int i = 0; i < ROUNDS; i++)
		made_syscall(frames, FRAMES);
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	if (read(fd, &count, sizeof(count)) != sizeof(count))
		ktap_skip("kmem:kmalloc: %m");
	close(fd);
	return count;
}

static __u64 count_of_size(size_t size)
{
	char filter[64];

	snprintf(filter, sizeof(filter), "bytes_req == %zu", size);
	return count_allocations(filter);
}

/*
 * Once the last event that asks for build IDs is gone, answers to others cost
 * nothing: no memory is taken for one build ID, or for one of each entry.
 */
static void forgotten(const void *arg)
{
	static const size_t sizes[] = { ENTRY_SIZE, ENTRY_SIZE * (FRAMES + 1) };
	const __u64 *bits = arg;

	need_bits(*bits);
	make_frames();
	for (unsigned int i = 0; i < TIMES; i++) {
		open_event(&other, SOURCE_SYSCALLS, *bits);
		event_close(&other);
	}
	open_event(&event, SOURCE_SYSCALLS, PERF_SAMPLE_CALLCHAIN);
	event_enable(&event);
	made_syscall(frames, FRAMES);
	for (unsigned int i = 0; i < ARRAY_SIZE(sizes); i++) {
		__u64 count = count_of_size(sizes[i]);

		if (count >= ROUNDS / 2)
			ktap_fail(RULE_MEMORY_IDLE
				  "%llu allocations of %zu bytes in %u calls; expected none: no event asks for build IDs",
				  count, sizes[i], ROUNDS);
	}
}

/* One address needs no memory for a whole chain. */
static void one_address(const void *arg)
{
	__u64 count;

	(void)arg;
	need_bits(IP_BIT);
	make_frames();
	open_event(&other, SOURCE_CLOCK, IP_BIT);
	open_event(&event, SOURCE_SYSCALLS, PERF_SAMPLE_CALLCHAIN);
	event_enable(&event);
	made_syscall(frames, FRAMES);
	count = count_of_size(ENTRY_SIZE * (FRAMES + 1));
	if (count >= ROUNDS / 2)
		ktap_fail(RULE_MEMORY_SIZE
			  "%llu allocations for %u entries in %u calls; expected none: the one event asks for one address",
			  count, FRAMES + 1, ROUNDS);
}

/* A chain needs no more memory than its entries. */
static void one_chain(const void *arg)
{
	char filter[64];
	__u64 count;

	(void)arg;
	need_bits(CHAIN_BIT);
	make_frames();
	open_event(&event, SOURCE_SYSCALLS, CHAIN_BIT);
	event_enable(&event);
	made_syscall(frames, FRAMES);
	snprintf(filter, sizeof(filter), "bytes_req > %zu", 2 * ENTRY_SIZE * (FRAMES + 1));
	count = count_allocations(filter);
	if (count >= ROUNDS / 2)
		ktap_fail(RULE_MEMORY_SIZE
			  "%llu allocations of more than twice the entries' size in %u calls; expected none",
			  count, ROUNDS);
}

static const __u64 bits[] = { IP_BIT, CHAIN_BIT, IP_BIT | CHAIN_BIT };
static const char * const names[] = { "address", "chain", "both" };

int main(int argc, char **argv)
{
	static struct keeps_case cases[2][ARRAY_SIZE(kinds)];

	for (unsigned int i = 0; i < 2; i++) {
		for (unsigned int j = 0; j < ARRAY_SIZE(kinds); j++) {
			cases[i][j] = (struct keeps_case){ bits[i], &kinds[j] };
			ktap_add(keeps, &cases[i][j], "keeps.%s.after_%s", names[i],
				 kinds[j].name);
		}
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(bits); i++)
		ktap_add(forgotten, &bits[i], "forgotten.%s", names[i]);
	ktap_add(one_address, NULL, "cost.address");
	ktap_add(one_chain, NULL, "cost.chain");
	return ktap_main(argc, argv);
}
