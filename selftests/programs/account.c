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
#define LEAK_ROUNDS	40000	/* 1,250 KiB of the smallest answers */
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

/* Begin to count what this task takes, or gives back, as filter says. */
static int count_begin(const char *name, const char *filter)
{
	long id = tracepoint_id("kmem", name);
	struct perf_event_attr attr;
	int fd;

	if (id < 0)
		ktap_skip("no kmem:%s", name);
	attr_init(&attr, SOURCE_SYSCALLS, 0);
	attr.config = id;
	attr.sample_period = 0;
	fd = attr_open(&attr, 0, -1);
	if (fd < 0 || ioctl(fd, PERF_EVENT_IOC_SET_FILTER, filter))
		ktap_skip("kmem:%s: %m", name);
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	return fd;
}

static __u64 count_end(int fd)
{
	__u64 count = 0;

	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	if (read(fd, &count, sizeof(count)) != sizeof(count))
		ktap_skip("a count of kmem: %m");
	close(fd);
	return count;
}

/* How many allocations that filter names the made calls of this task need. */
static __u64 count_allocations(const char *filter)
{
	int fd = count_begin("kmalloc", filter);

	for (unsigned int i = 0; i < ROUNDS; i++)
		made_syscall(frames, FRAMES);
	return count_end(fd);
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

/* How many allocations of size that made calls took are not given back by their end. */
static __u64 count_kept(size_t size)
{
	char filter[64];
	__u64 taken, given;
	int take, give;

	snprintf(filter, sizeof(filter), "bytes_req == %zu", size);
	take = count_begin("kmalloc", filter);
	give = count_begin("kfree", "ptr != 0");
	for (unsigned int i = 0; i < ROUNDS; i++)
		made_syscall(frames, FRAMES);
	taken = count_end(take);
	given = count_end(give);
	return taken > given ? taken - given : 0;
}

/* Memory of the kernel that cannot be reclaimed, in KiB. */
static long kernel_memory(void)
{
	FILE *file = fopen("/proc/meminfo", "re");
	char line[128];
	long slab = -1;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "SUnreclaim: %ld kB", &slab) == 1)
			break;
	if (file)
		fclose(file);
	if (slab < 0)
		ktap_skip("no SUnreclaim in /proc/meminfo");
	return slab;
}

/* Memory that is given back late is none that is lost. */
static void check_memory(size_t size)
{
	long grown, least = LEAK_ROUNDS * size / 1024 / 2;

	grown = -kernel_memory();
	for (unsigned int i = 0; i < LEAK_ROUNDS; i++)
		made_syscall(NULL, 0);
	usleep(200000);
	grown += kernel_memory();
	ktap_diag("the kernel holds %ld KiB more", grown);
	if (grown > least)
		ktap_fail(RULE_MEMORY_LEAK
			  "%u answers: the kernel holds %ld KiB more, and what they took was not freed; expected less than %ld KiB",
			  LEAK_ROUNDS, grown, least);
}

/*
 * What an answer takes is given back, be it for one address. Interrupts may
 * free what is of others: they do not always.
 */
static void given_back(const void *arg)
{
	const __u64 *bits = arg;
	size_t size = *bits & CHAIN_BIT ? ENTRY_SIZE * (FRAMES + 1) : ENTRY_SIZE;
	__u64 kept, most = 0;

	need_bits(*bits);
	make_frames();
	open_event(&other, SOURCE_CLOCK, *bits);
	open_event(&event, SOURCE_SYSCALLS, PERF_SAMPLE_CALLCHAIN);
	event_enable(&event);
	made_syscall(frames, FRAMES);
	for (unsigned int i = 0; i < TIMES; i++) {
		kept = count_kept(size);
		if (kept > most)
			most = kept;
	}
	ktap_diag("%llu allocations of %zu bytes kept, of %u", most, size, ROUNDS);
	if (most >= ROUNDS / 2)
		check_memory(ENTRY_SIZE);
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
	for (unsigned int i = 0; i < ARRAY_SIZE(bits); i++)
		ktap_add(given_back, &bits[i], "given_back.%s", names[i]);
	return ktap_main(argc, argv);
}
