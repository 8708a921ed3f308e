// SPDX-License-Identifier: GPL-2.0
#include "oracle.h"
#include "ktap.h"
#include "work.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define INSTRUCTION_MAX	15	/* bytes */

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

static bool in_user(const struct sample *sample)
{
	return (sample->header->misc & PERF_RECORD_MISC_CPUMODE_MASK) ==
	       PERF_RECORD_MISC_USER;
}

static bool kernel_address(__u64 address)
{
	return address >> 63;
}

void oracle_ip(struct expect *expect, const struct sample *sample)
{
	const struct mapping *map = maps_find(&expect->maps, sample->ip.ip);

	if (in_user(sample) && !(map && map->executable) &&
	    !kernel_address(sample->ip.ip))
		sample_fail(expect, sample, RULE_SAMPLE_IP
			    "IP %#llx of user space is in no executable mapping",
			    sample->ip.ip);
	if (!in_user(sample) && !kernel_address(sample->ip.ip))
		sample_fail(expect, sample, RULE_SAMPLE_IP
			    "IP %#llx of the kernel is no kernel address",
			    sample->ip.ip);
	if (expect->source == SOURCE_FAULTS && !expect->event->attr.exclude_user &&
	    in_user(sample) && kernel_address(sample->ip.ip))
		sample_fail(expect, sample, RULE_SAMPLE_IP
			    "IP %#llx of a user page fault is a kernel address",
			    sample->ip.ip);
}

void oracle_addr(struct expect *expect, const struct sample *sample)
{
	__u64 addr = sample->addr.addr;

	if (expect->source == SOURCE_FAULTS) {
		if (!maps_find(&expect->maps, addr))
			sample_fail(expect, sample, RULE_SAMPLE_ADDR
				    "ADDR %#llx of a page fault that succeeded; expected an address in a mapping",
				    addr);
	} else if (addr && expect->source != SOURCE_COUNT) {
		sample_fail(expect, sample, RULE_SAMPLE_ADDR
			    "ADDR %#llx of an event that has no address; expected 0",
			    addr);
	}
}

void oracle_read(struct expect *expect, const struct sample *sample)
{
	const struct perf_event_attr *attr = &expect->event->attr;
	__u64 format = attr->read_format, value = sample->read.value;

	if (format & PERF_FORMAT_GROUP)
		return;
	if ((format & PERF_FORMAT_LOST) && sample->read.lost && !expect->gaps)
		sample_fail(expect, sample, RULE_SAMPLE_READ "READ lost %llu; expected 0",
			    sample->read.lost);
	if (attr->sample_period == 1 && !attr->freq && !expect->gaps &&
	    value != expect->last_value + 1)
		sample_fail(expect, sample, RULE_SAMPLE_READ
			    "READ value %llu of an event with period 1; expected 1 more than %llu, as in the sample before",
			    value, expect->last_value);
	if (!expect->gaps && value < expect->last_value)
		sample_fail(expect, sample, RULE_SAMPLE_READ
			    "READ value %llu; expected %llu or more, as in the sample before",
			    value, expect->last_value);
	expect->last_value = value;
}

__u64 reg_ip(const __u64 *regs, __u64 mask)
{
	if (!(mask & (1ULL << REGS_IP)))
		return 0;
	return regs[__builtin_popcountll(mask & ((1ULL << REGS_IP) - 1))];
}

void oracle_regs_user(struct expect *expect, const struct sample *sample)
{
	__u64 ip;

	if (sample->regs_user.abi != PERF_SAMPLE_REGS_ABI_64) {
		sample_fail(expect, sample, RULE_SAMPLE_REGS
			    "REGS_USER abi %llu; expected PERF_SAMPLE_REGS_ABI_64",
			    sample->regs_user.abi);
		return;
	}
	ip = reg_ip(sample->regs_user.regs, expect->event->attr.sample_regs_user);
	if (!ip)
		return;
	if (in_user(sample) && (sample->bits & PERF_SAMPLE_IP) &&
	    ip != sample->ip.ip)
		sample_fail(expect, sample, RULE_SAMPLE_REGS
			    "REGS_USER ip %#llx; expected IP, %#llx",
			    ip, sample->ip.ip);
	if (!maps_find(&expect->maps, ip))
		sample_fail(expect, sample, RULE_SAMPLE_REGS "REGS_USER ip %#llx is in no mapping",
			    ip);
}

void oracle_regs_intr(struct expect *expect, const struct sample *sample)
{
	__u64 ip;

	if (sample->regs_intr.abi != PERF_SAMPLE_REGS_ABI_64) {
		sample_fail(expect, sample, RULE_SAMPLE_REGS
			    "REGS_INTR abi %llu; expected PERF_SAMPLE_REGS_ABI_64",
			    sample->regs_intr.abi);
		return;
	}
	ip = reg_ip(sample->regs_intr.regs, expect->event->attr.sample_regs_intr);
	if (ip && (sample->bits & PERF_SAMPLE_IP) && ip != sample->ip.ip)
		sample_fail(expect, sample, RULE_SAMPLE_REGS
			    "REGS_INTR ip %#llx; expected IP, %#llx",
			    ip, sample->ip.ip);
}

void oracle_data_src(struct expect *expect, const struct sample *sample)
{
	union perf_mem_data_src none = { .val = 0 }, seen __maybe_unused;

	none.mem_op = PERF_MEM_OP_NA;
	none.mem_lvl = PERF_MEM_LVL_NA;
	none.mem_snoop = PERF_MEM_SNOOP_NA;
	none.mem_lock = PERF_MEM_LOCK_NA;
	none.mem_dtlb = PERF_MEM_TLB_NA;
#if HAVE_MEM_LVL_NUM
	/* 0 names no level either: kernels before 6.2 write it. */
	seen.val = sample->data_src.data_src;
	none.mem_lvl_num = seen.mem_lvl_num ? PERF_MEM_LVLNUM_NA : 0;
#endif
	if (sample->data_src.data_src != none.val)
		sample_fail(expect, sample, RULE_SAMPLE_HARDWARE
			    "DATA_SRC %#llx; expected \"not available\", %#llx",
			    sample->data_src.data_src, none.val);
}

/* The copy begins at the stack pointer, and ends where it was asked to or memory does. */
void oracle_stack_user(struct expect *expect, const struct sample *sample)
{
	__u64 real = sample->stack_user.size;

	if (!expect->stack || !in_user(sample))
		return;
	if (real > expect->stack_size)
		real = expect->stack_size;
	if (!real || sample->stack_user.dyn_size != real)
		sample_fail(expect, sample, RULE_SAMPLE_STACK
			    "STACK_USER: %llu of %llu bytes are real; expected %llu, %zu are mapped",
			    sample->stack_user.dyn_size, sample->stack_user.size, real,
			    expect->stack_size);
	else if (memcmp(sample->stack_user.data, expect->stack, real))
		sample_fail(expect, sample, RULE_SAMPLE_STACK
			    "STACK_USER: other bytes; expected those at the stack pointer");
}

void oracle_phys_addr(struct expect *expect, const struct sample *sample)
{
	__u64 phys = sample->phys_addr.phys_addr;

	if (phys && (sample->bits & PERF_SAMPLE_ADDR) &&
	    (phys ^ sample->addr.addr) & 0xfff)
		sample_fail(expect, sample, RULE_SAMPLE_PHYS_ADDR
			    "PHYS_ADDR %#llx; expected the last 12 bits of ADDR, %#llx",
			    phys, sample->addr.addr);
}

/*
 * A fault because the code itself is not there is at its own address, or in the same
 * instruction: its page is not mapped, and has no size yet.
 */
static bool may_be_fetch(const struct expect *expect, const struct sample *sample)
{
	const __u64 both = PERF_SAMPLE_IP | PERF_SAMPLE_ADDR;

	return expect->source == SOURCE_FAULTS &&
	       ((sample->bits & both) != both ||
		sample->addr.addr - sample->ip.ip < INSTRUCTION_MAX);
}

void oracle_page_size(struct expect *expect, const struct sample *sample)
{
	__u64 size = 0;

	if (sample->bits & PERF_SAMPLE_DATA_PAGE_SIZE)
		size |= sample->data_page_size.data_page_size;
	if (sample->bits & PERF_SAMPLE_CODE_PAGE_SIZE)
		size |= sample->code_page_size.code_page_size;
	if (size & ~(0x1000ULL | 0x200000ULL | 0x40000000ULL))
		sample_fail(expect, sample, RULE_SAMPLE_PAGE_SIZE "%#llx is no page size", size);
	if (!(sample->bits & PERF_SAMPLE_CODE_PAGE_SIZE))
		return;
	if (!sample->code_page_size.code_page_size && may_be_fetch(expect, sample))
		return;
	if (in_user(sample) && sample->code_page_size.code_page_size != 0x1000)
		sample_fail(expect, sample, RULE_SAMPLE_PAGE_SIZE
			    "CODE_PAGE_SIZE %#llx; expected 0x1000",
			    sample->code_page_size.code_page_size);
}
