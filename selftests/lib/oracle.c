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

static __u64 now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ULL + time.tv_nsec;
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
	expect->time_from = now();
}

void expect_end(struct expect *expect)
{
	expect->time_to = now();
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
	for (unsigned int i = 0; i < SAMPLE_TYPES; i++)
		if ((sample->bits & sample_types[i].bit) && sample_types[i].check)
			sample_types[i].check(expect, sample);
	if (expect->on_sample)
		expect->on_sample(expect, sample);
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

void oracle_id(struct expect *expect, const struct sample *sample)
{
	__u64 id = expect->event->id;

	if ((sample->bits & PERF_SAMPLE_IDENTIFIER) && sample->identifier.id != id)
		sample_fail(expect, sample, RULE_SAMPLE_ID "IDENTIFIER %llu; expected %llu",
			    sample->identifier.id, id);
	if ((sample->bits & PERF_SAMPLE_ID) && sample->id.id != id)
		sample_fail(expect, sample, RULE_SAMPLE_ID "ID %llu; expected %llu",
			    sample->id.id, id);
}

void oracle_stream_id(struct expect *expect, const struct sample *sample)
{
	if (sample->stream_id.stream_id != expect->event->id)
		sample_fail(expect, sample, RULE_SAMPLE_STREAM_ID "STREAM_ID %llu; expected %llu",
			    sample->stream_id.stream_id, expect->event->id);
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

void oracle_tid(struct expect *expect, const struct sample *sample)
{
	if (sample->tid.pid != expect->pid || sample->tid.tid != expect->tid)
		sample_fail(expect, sample, RULE_SAMPLE_TID "TID %u/%u; expected %u/%u",
			    sample->tid.pid, sample->tid.tid, expect->pid,
			    expect->tid);
}

void oracle_time(struct expect *expect, const struct sample *sample)
{
	if (sample->time.time < expect->time_from ||
	    sample->time.time > expect->time_to)
		sample_fail(expect, sample, RULE_SAMPLE_TIME
			    "TIME %llu; expected from %llu to %llu",
			    sample->time.time, expect->time_from,
			    expect->time_to);
	if (!expect->gaps && sample->time.time < expect->last_time)
		sample_fail(expect, sample, RULE_SAMPLE_TIME
			    "TIME %llu; expected %llu or more, as in the sample before",
			    sample->time.time, expect->last_time);
	expect->last_time = sample->time.time;
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

void oracle_cpu(struct expect *expect, const struct sample *sample)
{
	if (sample->cpu.res)
		sample_fail(expect, sample, RULE_SAMPLE_CPU
			    "the reserved half of CPU is %#x; expected 0",
			    sample->cpu.res);
	if (expect->cpu >= 0 && sample->cpu.cpu != (__u32)expect->cpu)
		sample_fail(expect, sample, RULE_SAMPLE_CPU
			    "CPU %u; expected %d, to which the task is bound",
			    sample->cpu.cpu, expect->cpu);
}

void oracle_period(struct expect *expect, const struct sample *sample)
{
	__u64 period = expect->event->attr.sample_period;

	if (!expect->event->attr.freq && sample->period.period != period)
		sample_fail(expect, sample, RULE_SAMPLE_PERIOD "PERIOD %llu; expected %llu",
			    sample->period.period, period);
}

void oracle_read(struct expect *expect, const struct sample *sample)
{
	const struct perf_event_attr *attr = &expect->event->attr;
	__u64 format = attr->read_format, value = sample->read.value;

	if (format & PERF_FORMAT_GROUP)
		return;
	if ((format & PERF_FORMAT_ID) && sample->read.id != expect->event->id)
		sample_fail(expect, sample, RULE_SAMPLE_READ "READ id %llu; expected %llu",
			    sample->read.id, expect->event->id);
	if ((format & PERF_FORMAT_LOST) && sample->read.lost && !expect->gaps)
		sample_fail(expect, sample, RULE_SAMPLE_READ "READ lost %llu; expected 0",
			    sample->read.lost);
	if ((format & PERF_FORMAT_TOTAL_TIME_ENABLED) &&
	    (format & PERF_FORMAT_TOTAL_TIME_RUNNING) &&
	    sample->read.time_running > sample->read.time_enabled)
		sample_fail(expect, sample, RULE_SAMPLE_READ
			    "READ time_running %llu; expected at most time_enabled, %llu",
			    sample->read.time_running, sample->read.time_enabled);
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

void oracle_stack_user(struct expect *expect, const struct sample *sample)
{
	__u64 size = sample->stack_user.size;

	if (size > expect->event->attr.sample_stack_user)
		sample_fail(expect, sample, RULE_SAMPLE_STACK
			    "STACK_USER size %llu; expected at most attr.sample_stack_user, %u",
			    size, expect->event->attr.sample_stack_user);
	if (size && sample->stack_user.dyn_size > size)
		sample_fail(expect, sample, RULE_SAMPLE_STACK
			    "STACK_USER dyn_size %llu; expected at most size, %llu",
			    sample->stack_user.dyn_size, size);
}

void oracle_zero(struct expect *expect, const struct sample *sample)
{
	__u64 value = 0;

	if (sample->bits & PERF_SAMPLE_TRANSACTION)
		value |= sample->transaction.transaction;
	if (sample->bits & PERF_SAMPLE_WEIGHT)
		value |= sample->weight.full;
	if (sample->bits & PERF_SAMPLE_WEIGHT_STRUCT)
		value |= sample->weight_struct.var1_dw |
			 sample->weight_struct.var2_w |
			 sample->weight_struct.var3_w;
	if (value)
		sample_fail(expect, sample, RULE_SAMPLE_HARDWARE
			    "WEIGHT or TRANSACTION %#llx; expected 0",
			    value);
}

void oracle_nonzero(struct expect *expect, const struct sample *sample)
{
	if ((sample->bits & PERF_SAMPLE_CGROUP) && !sample->cgroup.cgroup)
		sample_fail(expect, sample, RULE_SAMPLE_CGROUP
			    "CGROUP 0; expected the ID of the cgroup of the task");
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

void oracle_phys_addr(struct expect *expect, const struct sample *sample)
{
	__u64 phys = sample->phys_addr.phys_addr;

	if (phys && (sample->bits & PERF_SAMPLE_ADDR) &&
	    (phys ^ sample->addr.addr) & 0xfff)
		sample_fail(expect, sample, RULE_SAMPLE_PHYS_ADDR
			    "PHYS_ADDR %#llx; expected the last 12 bits of ADDR, %#llx",
			    phys, sample->addr.addr);
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
	if (in_user(sample) && sample->code_page_size.code_page_size != 0x1000)
		sample_fail(expect, sample, RULE_SAMPLE_PAGE_SIZE
			    "CODE_PAGE_SIZE %#llx; expected 0x1000",
			    sample->code_page_size.code_page_size);
}
