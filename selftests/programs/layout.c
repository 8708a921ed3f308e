// SPDX-License-Identifier: GPL-2.0
/*
 * Every sample type in scope, alone and with others, from several kinds of
 * event: each record decodes to exactly header.size bytes, the next one begins
 * there, and every value is what its oracle says.
 */
#include "decode.h"
#include "event.h"
#include "ktap.h"
#include "oracle.h"
#include "scope.h"
#include "work.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define SAMPLES	8

static struct event event;

struct layout_case {
	const struct combination *combination;
	enum source source;
};

static const char *needs(__u64 bits)
{
	for (unsigned int i = 0; i < SAMPLE_TYPES; i++)
		if ((bits & sample_types[i].bit) && sample_types[i].needs[0])
			return sample_types[i].needs;
	return NULL;
}

static void layout(const void *arg)
{
	const struct layout_case *test = arg;
	__u64 bits = test->combination->bits;
	struct perf_event_attr attr;
	struct expect expect;
	unsigned int least;
	int error;

	need_bits(bits);
	attr_init(&attr, test->source, bits);
	error = event_open(&event, &attr);
	if (error && needs(bits))
		ktap_skip("needs %s", needs(bits));
	if (error)
		ktap_stop(RULE_OPEN_ACCEPTED "perf_event_open() with sample_type %#llx: %s", bits,
			  strerror(-error));
	expect_begin(&expect, &event, test->source);
	expect.must_resolve = test->source != SOURCE_CLOCK;
	event_enable(&event);
	least = work_on(&event, test->source, SAMPLES);
	event_disable(&event);
	expect_end(&expect);
	check_ring(&expect, NULL);
	if (expect.samples < least && !ktap_failures())
		ktap_fail(RULE_SAMPLES_COUNT "%u samples; expected at least %u", expect.samples,
			  least);
}

/* Run with attr, and check what comes of it; on_sample may be NULL. */
static void run_with(struct perf_event_attr *attr, enum source source,
		     void (*on_sample)(struct expect *expect, const struct sample *sample))
{
	struct expect expect;
	unsigned int least;
	int error = event_open(&event, attr);

	if (error)
		ktap_stop(RULE_OPEN_ACCEPTED "perf_event_open() with sample_type %#llx: %s",
			  attr->sample_type, strerror(-error));
	expect_begin(&expect, &event, source);
	expect.must_resolve = source != SOURCE_CLOCK;
	expect.on_sample = on_sample;
	event_enable(&event);
	least = work_on(&event, source, SAMPLES);
	event_disable(&event);
	expect_end(&expect);
	check_ring(&expect, NULL);
	if (expect.samples < least && !ktap_failures())
		ktap_fail(RULE_SAMPLES_COUNT "%u samples; expected at least %u", expect.samples,
			  least);
	maps_free(&expect.maps);
	event_close(&event);
}

static void run(struct perf_event_attr *attr, enum source source)
{
	run_with(attr, source, NULL);
}

/* Every read_format of one event behind a type in scope. */
static void read_formats(const void *arg)
{
	const struct scoped_type *type = arg;
	struct perf_event_attr attr;

	need_bits(type->bit);
	if (needs(type->bit))
		ktap_skip("needs %s", needs(type->bit));
	for (__u64 format = 0; format <= attr_formats(); format++) {
		if (format & ~attr_formats())
			continue;
		attr_init(&attr, SOURCE_FAULTS, type->bit | PERF_SAMPLE_READ);
		attr.read_format = format;
		run(&attr, SOURCE_FAULTS);
		if (ktap_failures()) {
			ktap_diag("with attr.read_format %#llx", format);
			return;
		}
	}
}

#define SIBLINGS 3

static void on_group_sample(struct expect *expect, const struct sample *sample)
{
	__u64 format = expect->event->attr.read_format;
	unsigned int words = 1 + !!(format & PERF_FORMAT_ID) + !!(format & PERF_FORMAT_LOST);

	if (sample->read.nr != SIBLINGS + 1) {
		sample_fail(expect, sample, RULE_SAMPLE_READ "READ nr %llu of a group; expected %u",
			    sample->read.nr, SIBLINGS + 1);
		return;
	}
	/* The leader comes first, and counts one fault a sample. */
	if (sample->read.values[0] != expect->last_value + 1)
		sample_fail(expect, sample, RULE_SAMPLE_READ
			    "READ value %llu of the leader; expected 1 more than %llu, as in the sample before",
			    sample->read.values[0], expect->last_value);
	expect->last_value = sample->read.values[0];
	if ((format & PERF_FORMAT_ID) && sample->read.values[1] != expect->event->id)
		sample_fail(expect, sample, RULE_SAMPLE_READ
			    "READ id %llu of the leader; expected %llu",
			    sample->read.values[1], expect->event->id);
	for (unsigned int i = 0; (format & PERF_FORMAT_LOST) && i <= SIBLINGS; i++)
		if (sample->read.values[i * words + words - 1])
			sample_fail(expect, sample, RULE_SAMPLE_READ
				    "READ lost %llu of member %u; expected 0",
				    sample->read.values[i * words + words - 1], i);
}

static void check_group(void)
{
	struct expect expect;

	expect_begin(&expect, &event, SOURCE_FAULTS);
	expect.must_resolve = true;
	expect.on_sample = on_group_sample;
	event_enable(&event);
	work(SOURCE_FAULTS, SAMPLES);
	event_disable(&event);
	expect_end(&expect);
	check_ring(&expect, NULL);
	if (expect.samples < SAMPLES && !ktap_failures())
		ktap_fail(RULE_SAMPLES_COUNT
			  "%u samples; expected at least %u", expect.samples, SAMPLES);
	maps_free(&expect.maps);
}

/* A group: the leader's samples hold the counts of all. */
static void group(const void *arg)
{
	const struct scoped_type *type = arg;
	struct perf_event_attr attr, other;

	need_bits(type->bit);
	if (needs(type->bit))
		ktap_skip("needs %s", needs(type->bit));
	for (__u64 format = PERF_FORMAT_GROUP; format <= attr_formats(); format++) {
		int sibling[SIBLINGS];

		if (!(format & PERF_FORMAT_GROUP) || (format & ~attr_formats()))
			continue;
		attr_init(&attr, SOURCE_FAULTS, type->bit | PERF_SAMPLE_READ);
		attr.read_format = format;
		if (event_open(&event, &attr))
			ktap_stop(RULE_OPEN_ACCEPTED "perf_event_open() of a leader: %m");
		attr_init(&other, SOURCE_CLOCK, 0);
		other.sample_period = 0;
		other.disabled = 0;
		other.read_format = format;
		for (unsigned int i = 0; i < SIBLINGS; i++) {
			sibling[i] = attr_open_in(&other, event.fd);
			if (sibling[i] < 0)
				ktap_stop(RULE_OPEN_ACCEPTED "perf_event_open() of a sibling: %s",
					  strerror(-sibling[i]));
		}
		check_group();
		for (unsigned int i = 0; i < SIBLINGS; i++)
			close(sibling[i]);
		event_close(&event);
		if (ktap_failures()) {
			ktap_diag("with attr.read_format %#llx", format);
			return;
		}
	}
}

/* User stacks and register sets of several sizes around a type in scope. */
static void sizes(const void *arg)
{
	static const __u32 stacks[] = { 8, 64, 4096, 16384, 65528 };
	static const __u64 masks[] = { 1, 0x1ff, REGS_MASK };
	const struct scoped_type *type = arg;
	struct perf_event_attr attr;

	need_bits(type->bit);
	if (needs(type->bit))
		ktap_skip("needs %s", needs(type->bit));
	for (unsigned int i = 0; i < ARRAY_SIZE(stacks); i++) {
		attr_init(&attr, SOURCE_SYSCALLS, type->bit | PERF_SAMPLE_STACK_USER);
		attr.sample_stack_user = stacks[i];
		run(&attr, SOURCE_SYSCALLS);
		if (ktap_failures()) {
			ktap_diag("with attr.sample_stack_user %u", stacks[i]);
			return;
		}
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(masks); i++) {
		attr_init(&attr, SOURCE_FAULTS, type->bit | PERF_SAMPLE_REGS_INTR |
			  PERF_SAMPLE_REGS_USER);
		attr.sample_regs_user = masks[i];
		attr.sample_regs_intr = REGS_MASK;
		run(&attr, SOURCE_FAULTS);
		if (ktap_failures()) {
			ktap_diag("with attr.sample_regs_user %#llx", masks[i]);
			return;
		}
	}
}

#if HAVE_AUX_SAMPLE_SIZE
static void on_aux_sample(struct expect *expect, const struct sample *sample)
{
	if (sample->aux.size)
		sample_fail(expect, sample, RULE_SAMPLE_AUX
			    "AUX of %llu bytes; expected attr.aux_sample_size at most, 0",
			    sample->aux.size);
}

/* AUX data of no bytes: what every event can have. The field has its place. */
static void run_aux(__u64 bits)
{
	struct perf_event_attr attr;

	need_bits(bits | PERF_SAMPLE_AUX);
	for (enum source source = 0; source < SOURCE_COUNT; source++) {
		attr_init(&attr, source, bits | PERF_SAMPLE_AUX);
		attr.aux_sample_size = 0;
		run_with(&attr, source, on_aux_sample);
	}
}

static void aux(const void *arg)
{
	const struct scoped_type *type = arg;

	if (needs(type->bit) && type->bit != PERF_SAMPLE_AUX)
		ktap_skip("needs %s", needs(type->bit));
	run_aux(type->bit);
}

static void aux_all(const void *arg)
{
	const struct combination *all = arg;

	run_aux(all->bits);
}
#endif

static void *run_both(void *attr)
{
	struct perf_event_attr *clock = attr;

	run(clock, SOURCE_CLOCK);
	run(clock + 1, SOURCE_FAULTS);
	return NULL;
}

/* In a thread, which is younger than its process and has run for less long. */
static void thread(const void *arg)
{
	const struct scoped_type *type = arg;
	struct perf_event_attr attr[2];
	pthread_t thread;

	need_bits(type->bit);
	if (needs(type->bit))
		ktap_skip("needs %s", needs(type->bit));
	attr_init(&attr[0], SOURCE_CLOCK, type->bit | PERF_SAMPLE_TID);
	attr_init(&attr[1], SOURCE_FAULTS, type->bit | PERF_SAMPLE_TID);
	for (unsigned int i = 0; i < 5; i++)
		work(SOURCE_CLOCK, 1);
	if (pthread_create(&thread, NULL, run_both, attr))
		ktap_stop(RULE_TEST_SETUP "pthread_create(): %m");
	pthread_join(thread, NULL);
}

static struct layout_case cases[SCOPE_COMBINATIONS][SOURCE_COUNT];

int main(int argc, char **argv)
{
	for (unsigned int source = 0; source < SOURCE_COUNT; source++) {
		for (unsigned int i = 0; i < SCOPE_COMBINATIONS; i++) {
			struct layout_case *test = &cases[i][source];

			test->combination = &combinations[i];
			test->source = source;
			if (source == SOURCE_CLOCK && !test->combination->basic)
				continue;
			ktap_add(layout, test, "%s.%s", source_names[source],
				 test->combination->name);
		}
	}
#if HAVE_AUX_SAMPLE_SIZE
	for (unsigned int i = 0; i < SCOPE_COMBINATIONS; i++)
		if (!strcmp(combinations[i].name, "all"))
			ktap_add(aux_all, &combinations[i], "aux.all");
	for (unsigned int i = 0; i < SCOPE_TYPES; i++)
		ktap_add(aux, &scope_types[i], "aux.%s", scope_types[i].name);
#endif
	for (unsigned int i = 0; i < SCOPE_TYPES; i++) {
		ktap_add(read_formats, &scope_types[i], "read_formats.%s", scope_types[i].name);
		ktap_add(group, &scope_types[i], "group.%s", scope_types[i].name);
		ktap_add(sizes, &scope_types[i], "sizes.%s", scope_types[i].name);
		ktap_add(thread, &scope_types[i], "thread.%s", scope_types[i].name);
	}
	return ktap_main(argc, argv);
}
