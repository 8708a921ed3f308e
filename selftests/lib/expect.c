// SPDX-License-Identifier: GPL-2.0
/* What is expected of a ring: every record decodes, and its values are proved. */
#include "ktap.h"
#include "oracle.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static __u64 clock_ns(clockid_t clock)
{
	struct timespec time;

	if (clock_gettime(clock, &time))
		return FACT_UNKNOWN;
	return time.tv_sec * 1000000000ULL + time.tv_nsec;
}

/* The number that a word of text begins with; one in parentheses has none. */
static __u64 word_of(const char *text, unsigned int word)
{
	for (;;) {
		text += strspn(text, " \t\n");
		if (!*text)
			return FACT_UNKNOWN;
		if (!--word)
			break;
		if (*text == '(' && strrchr(text, ')'))
			text = strrchr(text, ')');
		text += strcspn(text, " \t\n");
	}
	return strtoull(text, NULL, 0);
}

static __u64 number_in(const struct fact *fact)
{
	char text[4096];
	const char *at = text;
	size_t size;
	FILE *file = fopen(fact->file, "re");

	if (!file)
		return FACT_UNKNOWN;
	size = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[size] = '\0';
	if (fact->word)
		return word_of(text, fact->word);
	at = strstr(text, fact->key);
	return at ? word_of(at + strlen(fact->key), 1) : FACT_UNKNOWN;
}

/* Clocks are read last before the events, and first after them. */
static void read_facts(__u64 to[FACTS], bool clocks)
{
	for (unsigned int i = 0; i < FACTS; i++)
		if ((facts[i].clock >= 0) == clocks)
			to[i] = clocks ? clock_ns(facts[i].clock) : number_in(&facts[i]);
}

void expect_begin(struct expect *expect, struct event *event,
		  enum source source)
{
	cpu_set_t set;

	memset(expect, 0, sizeof(*expect));
	expect->event = event;
	expect->source = source;
	expect->pid = getpid();
	expect->tid = syscall(SYS_gettid);
	CPU_ZERO(&set);
	CPU_SET(0, &set);
	expect->cpu = sched_setaffinity(0, sizeof(set), &set) ? -1 : 0;
	maps_read(&expect->maps);
	maps_lock_headers(&expect->maps);
	maps_free(&expect->maps);
	read_facts(expect->before, false);
	expect->time_from = clock_ns(CLOCK_MONOTONIC);
	read_facts(expect->before, true);
}

void expect_end(struct expect *expect)
{
	read_facts(expect->after, true);
	expect->time_to = clock_ns(CLOCK_MONOTONIC);
	read_facts(expect->after, false);
	maps_read(&expect->maps);
}

void sample_fail(struct expect *expect, const struct sample *sample,
		 const char *format, ...)
{
	char text[512];
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	if (!ktap_fail("%s", text) || expect->shown)
		return;
	expect->shown = true;
	print_sample(sample);
	ktap_hexdump(sample->header, sample->header->size);
}

void check_sample(struct expect *expect, const struct sample *sample)
{
	expect->samples++;
	expect->shown = false;
	if (sample->header->misc & ~(PERF_RECORD_MISC_CPUMODE_MASK |
				     PERF_RECORD_MISC_EXACT_IP))
		sample_fail(expect, sample, RULE_HEADER_MISC
			    "misc %#x; expected no bits but the mode and PERF_RECORD_MISC_EXACT_IP",
			    sample->header->misc);
	if (expect->last_event != expect->event)
		memset(expect->last, 0, sizeof(expect->last));
	expect->last_event = expect->event;
	for (unsigned int i = 0; i < SAMPLE_TYPES; i++) {
		if (!(sample->bits & sample_types[i].bit))
			continue;
		if (sample_types[i].prove)
			sample_types[i].prove(expect, sample);
		if (sample_types[i].check)
			sample_types[i].check(expect, sample);
	}
	if (expect->on_sample)
		expect->on_sample(expect, sample);
}

bool fact_known(struct expect *expect, const struct sample *sample,
		__u64 value, const char *name)
{
	if (value != FACT_UNKNOWN)
		return true;
	sample_fail(expect, sample, RULE_TEST_SETUP "%s cannot be read", name);
	return false;
}

void prove_equal(struct expect *expect, const struct sample *sample,
		 const char *what, __u64 value, __u64 other, const char *said)
{
	if (value != other)
		sample_fail(expect, sample, "%s %llu, %#llx; expected %llu, %#llx, which is %s",
			    what, value, value, other, other, said);
}

void prove_least(struct expect *expect, const struct sample *sample,
		 const char *what, __u64 value, __u64 other, const char *said)
{
	if (value < other)
		sample_fail(expect, sample, "%s %llu; expected at least %llu, which is %s",
			    what, value, other, said);
}

void prove_most(struct expect *expect, const struct sample *sample,
		const char *what, __u64 value, __u64 other, const char *said)
{
	if (value > other)
		sample_fail(expect, sample, "%s %llu; expected at most %llu, which is %s",
			    what, value, other, said);
}

void prove_rises(struct expect *expect, const struct sample *sample,
		 const char *what, __u64 value, unsigned int number)
{
	if (!expect->gaps && value < expect->last[number])
		sample_fail(expect, sample,
			    "%s %llu; expected %llu or more, as in the sample before",
			    what, value, expect->last[number]);
	expect->last[number] = value;
}

void record_fail(const struct record *record, const char *format, ...)
{
	char text[512];
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	if (!ktap_fail("%s: %s", record_name(record->header->type), text))
		return;
	print_record(record);
	ktap_hexdump(record->header, record->header->size);
}

static void check_record(struct expect *expect,
			 const struct perf_event_header *header,
			 void (*on_record)(struct expect *expect,
					   const struct record *record))
{
	struct record record;
	const char *problem;

	problem = decode_record(&expect->event->attr, header, &record);
	if (problem)
		record_fail(&record, "%s", problem);
	else if (on_record)
		on_record(expect, &record);
}

void check_record_id(struct expect *expect, const struct record *record)
{
	const struct sample_id *id = &record->id;
	__u64 bits = record->has_id ? expect->event->attr.sample_type : 0;

	if ((bits & PERF_SAMPLE_ID) && id->id.id != expect->event->id)
		record_fail(record, RULE_RECORD_SAMPLE_ID "sample_id has another ID");
	if ((bits & PERF_SAMPLE_IDENTIFIER) && id->identifier.id != expect->event->id)
		record_fail(record, RULE_RECORD_SAMPLE_ID "sample_id has another IDENTIFIER");
	if ((bits & PERF_SAMPLE_STREAM_ID) && id->stream_id.stream_id != expect->event->id)
		record_fail(record, RULE_RECORD_SAMPLE_ID "sample_id has another STREAM_ID");
	if ((bits & PERF_SAMPLE_TIME) && (id->time.time < expect->time_from ||
					  id->time.time > expect->time_to))
		record_fail(record, RULE_RECORD_SAMPLE_ID
			    "sample_id has a time before or after the test");
}

void check_ring(struct expect *expect,
		void (*on_record)(struct expect *expect,
				  const struct record *record))
{
	const struct perf_event_header *header;
	struct sample sample;
	const char *problem;

	while ((header = event_next(expect->event))) {
		if (header->type != PERF_RECORD_SAMPLE) {
			check_record(expect, header, on_record);
			continue;
		}
		problem = decode_sample(&expect->event->attr, header, &sample);
		if (problem) {
			expect->shown = false;
			sample_fail(expect, &sample, "%s", problem);
		} else {
			check_sample(expect, &sample);
		}
	}
	event_check_end(expect->event);
}
