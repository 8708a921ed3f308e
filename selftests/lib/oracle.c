// SPDX-License-Identifier: GPL-2.0
/* Oracles of what is one value, of registers, of copied stacks, and of raw data. */
#include "ktap.h"
#include "oracle.h"
#include "work.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define INSTRUCTION_MAX	15	/* bytes */

bool in_user(const struct sample *sample)
{
	return (sample->header->misc & PERF_RECORD_MISC_CPUMODE_MASK) ==
	       PERF_RECORD_MISC_USER;
}

bool all_zero(const void *data, size_t size)
{
	const char *byte = data;

	for (size_t i = 0; i < size; i++)
		if (byte[i])
			return false;
	return true;
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

static void check_syscall_data(struct expect *expect,
			       const struct sample *sample)
{
	const unsigned char *data = sample->raw.data;
	__u32 size = sample->raw.size;
	struct {
		__u16 type;
		__u8 flags, preempt_count;
		__s32 pid;
		__s64 nr;
		__u64 args[6];
	} entry;

	if (size != ((sizeof(entry) + 4 + 7) & ~7UL) - 4) {
		sample_fail(expect, sample, RULE_RAW_SIZE
			    "RAW size %u of sys_enter; expected that its %zu bytes end on 8 bytes, with %zu",
			    size, sizeof(entry), ((sizeof(entry) + 4 + 7) & ~7UL) - 4);
		return;
	}
	memcpy(&entry, data, sizeof(entry));
	if (entry.type != expect->event->attr.config ||
	    entry.pid != (__s32)expect->tid)
		sample_fail(expect, sample, RULE_RAW_DATA
			    "RAW is of tracepoint %u and task %d; expected %llu and %u",
			    entry.type, entry.pid, expect->event->attr.config,
			    expect->tid);
	if (entry.nr == SYS_getppid && entry.args[0] == WORK_ARG(0))
		for (unsigned int i = 0; i < 6; i++)
			if (entry.args[i] != WORK_ARG(i))
				sample_fail(expect, sample, RULE_RAW_DATA
					    "RAW: argument %u is %#llx; expected %#llx",
					    i, entry.args[i], WORK_ARG(i));
	if (!all_zero(data + sizeof(entry), size - sizeof(entry)))
		sample_fail(expect, sample, RULE_RAW_PADDING "RAW: the padding is not zero");
}

void oracle_raw(struct expect *expect, const struct sample *sample)
{
	if ((sample->raw.size + 4) % 8)
		sample_fail(expect, sample, RULE_RAW_SIZE "RAW size %u does not end on 8 bytes",
			    sample->raw.size);
	else if (expect->source == SOURCE_SYSCALLS)
		check_syscall_data(expect, sample);
	else if (expect->source != SOURCE_COUNT &&
		 (sample->raw.size != 4 || !all_zero(sample->raw.data, 4)))
		sample_fail(expect, sample, RULE_RAW_DATA
			    "RAW of an event without raw data; expected 4 bytes of 0");
}
