// SPDX-License-Identifier: GPL-2.0
/*
 * shared/page_faults.build_id: header.size 72
 * Expected: 40, to which sample_type 0x2000000 decodes
 *
 * The rule, header.size: A record has as many bytes as header.size says, for the fields of
 *   its event's sample type and no more.
 * - perf_event_open(2), MMAP layout, size: the size of the record
 * - self-evident: a reader finds the next record no other way
 *
 * kernel/events/core.c:8837: data->dyn_size += sizeof(u64);
 * kernel/events/core.c:9000: data->dyn_size += nr * sizeof(struct
 *   perf_sample_build_id_offset);
 *
 * Seen on the patched kernel, 7.2.9+, with CONFIG_PERF_EVENTS, CONFIG_FTRACE_SYSCALLS,
 *   CONFIG_BPF_SYSCALL, CONFIG_BPF_EVENTS, CONFIG_PROC_FS, CONFIG_FAULT_INJECTION,
 *   CONFIG_FAILSLAB, CONFIG_DEBUG_FS, CONFIG_FAULT_INJECTION_DEBUG_FS.
 * Compile it, and run it as root on that kernel, for example in a guest:
 *
 *   gcc -static -O2 -o r shared-page_faults.build_id.c
 *   vng -r arch/x86/boot/bzImage --user root -- ./r
 *
 * Exit status: 1 the fault is there, 0 it is not, 4 it cannot be told (a bit is refused,
 *   something is missing).
 * Made by reviewbot from its tests: what the case does not need is left out; main() stands
 *   at the end.
 */
#define _GNU_SOURCE
#pragma GCC optimize("no-omit-frame-pointer", "no-optimize-sibling-calls")

#define CASE		"page_faults.build_id"
#define CASE_RULE	"header.size"

#include <asm/byteorder.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/ioctl.h>
#include <linux/types.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))
#define SCOPE_TYPES		4
#define __attr(...)		__attribute__((__VA_ARGS__))
#ifndef __packed
#define __packed		__attr(packed)
#endif
#define SAMPLE_TYPES 27
#define RECORD_MAX	65536
#define BUILD_ID_MAX	20	/* what a record has room for */
#define FACTS		2
/* Proofs that a value never falls. */
#define RISING		1
/* A rule's name stands between these in the text of a failure. */
#define RULE_BEGIN	1
#define RULE_END	2
#define EXPECTED	"; expected "
#define SHOWN_ELEMENTS 12
#ifndef __maybe_unused
#define __maybe_unused		__attr(unused)
#endif
#define HEXDUMP_SIZE	1024
/* IDENTIFIER and ID are the event's, as PERF_EVENT_IOC_ID gives it */
#define RULE_SAMPLE_ID "\001sample.id\002"
/* TID names the task that the sample is of */
#define RULE_SAMPLE_TID "\001sample.tid\002"
#define FACT_UNKNOWN	(~0ULL)
/* The test has what it needs: memory, files, the right to open an event */
#define RULE_TEST_SETUP "\001test.setup\002"
/* TIME lies between the clock's readings before and after, and does not go back */
#define RULE_SAMPLE_TIME "\001sample.time\002"
/* STREAM_ID of an event that is not inherited is its ID */
#define RULE_SAMPLE_STREAM_ID "\001sample.stream-id\002"
/* CPU is the one that the task is bound to; its second half is reserved and 0 */
#define RULE_SAMPLE_CPU "\001sample.cpu\002"
/* PERIOD of an event without a frequency is attr.sample_period */
#define RULE_SAMPLE_PERIOD "\001sample.period\002"
/* READ holds the values that read(2) of the event would give at that time */
#define RULE_SAMPLE_READ "\001sample.read\002"
/* STACK_USER is what lies at the user's stack pointer, up to attr.sample_stack_user bytes; dyn_size of them were readable */
#define RULE_SAMPLE_STACK "\001sample.stack\002"
/* What only hardware can measure is 0, or "not available", in a sample of a software event */
#define RULE_SAMPLE_HARDWARE "\001sample.hardware\002"
/* CGROUP is never 0: every task is in a cgroup */
#define RULE_SAMPLE_CGROUP "\001sample.cgroup\002"
/* The bits in scope. */
#define SCOPE_BITS		0x6000021ULL
/* Every bit that the header defines. */
#define SCOPE_ALL_BITS		0x7ffffffULL
/* The bits that base does not have. */
#define SCOPE_NEW_BITS		0x6000000ULL
#ifndef __noreturn
#define __noreturn		__attr(noreturn)
#endif
#define EXIT_FAULT	1
#define EXIT_UNTOLD	4
#define CLOCK_PERIOD_NS	200000
/* Registers that are asked for, and the number of ip among all. */
#define REGS_MASK	0x3c6ULL
#define PERF_FLAG_FD_CLOEXEC			(1UL << 3)
#define PERF_EVENT_IOC_ID			_IOR ('$', 7, __u64 *)
#define EVENT_PAGES	128		/* data pages of a ring, unless said */
/* perf_event_open() takes a request of which every part is defined in the header and supported by this machine */
#define RULE_OPEN_ACCEPTED "\001open.accepted\002"
#define NOTES_MAX	4096
#define ALIGN4(n)	(((n) + 3UL) & ~3UL)
#define PERF_EVENT_IOC_ENABLE			_IO  ('$', 0)
#define noinline		__attr(noinline)
/* Arguments of the marked system calls, which raw records must show. */
#define WORK_ARG(n)	(0x1122334455667700ULL + (n))
/* As many as fit into a third of that time under emulation, on an idle machine. */
#define CLOCK_WORK_ROUNDS	2000
#define CLOCK_WORK_MS		30
#define SAMPLES	6
#define PERF_EVENT_IOC_DISABLE			_IO  ('$', 1)
/* A ring holds nothing but whole records of types that the header defines */
#define RULE_HEADER_TYPE "\001header.type\002"
/* A record has as many bytes as header.size says, for the fields of its event's sample type and no more */
#define RULE_HEADER_SIZE "\001header.size\002"
#define PERF_RECORD_MISC_MMAP_BUILD_ID		(1 << 14)
#define PERF_RECORD_MISC_CPUMODE_MASK		(7 << 0)
/* header.misc has only bits that are documented for the type of the record */
#define RULE_HEADER_MISC "\001header.misc\002"
#define PERF_RECORD_MISC_EXACT_IP		(1 << 14)
#define END_SIZE	4096	/* bytes that are looked at behind the last record */
#define END_PATIENCE_US	10000
/* What the kernel writes for a record ends with the record: behind the last one of a ring that was never full are zeroes */
#define RULE_RING_END "\001ring.end\002"
/* Every event makes a sample where sample_period is 1, and nothing else does */
#define RULE_SAMPLES_COUNT "\001samples.count\002"
/* A system call returns, and the task that made it lives */
#define RULE_CASE_ENDS "\001case.ends\002"
#define CASE_TIMEOUT_S	40

struct expect;

struct ask {
	const char *name;
	__u64 bits;
	bool no_kernel_chain, no_user_chain, defer;
};

/* What makes samples. */
enum source {
	SOURCE_FAULTS,		/* software page faults: user registers */
	SOURCE_SYSCALLS,	/* raw_syscalls:sys_enter: kernel registers */
	SOURCE_CLOCK,		/* cpu-clock: an interrupt anywhere */
	SOURCE_COUNT,
};

struct shared_case {
	const struct ask *ask;
	enum source source;
};

enum perf_event_sample_format {
	PERF_SAMPLE_IP				= 1U << 0,
	PERF_SAMPLE_CALLCHAIN			= 1U << 5,
	PERF_SAMPLE_RAW				= 1U << 10,
	PERF_SAMPLE_REGS_USER			= 1U << 12,
	PERF_SAMPLE_STACK_USER			= 1U << 13,
	PERF_SAMPLE_REGS_INTR			= 1U << 18,
	PERF_SAMPLE_BUILD_ID_OFFSET		= 1U << 25,
	PERF_SAMPLE_CALLCHAIN_BUILD_ID_OFFSET	= 1U << 26,
};

struct perf_event_header {
	__u32 type;
	__u16 misc;
	__u16 size;
};

/* one branch: struct perf_branch_entry */
struct branch_entry {
	__u64 from;
	__u64 to;
	__u64 flags;
} __packed;

/* a build ID and an offset in its file, or size 0 and an address */
struct build_id_offset {
	__u8 size;
	__u8 reserved_1;
	__u16 reserved_2;
	unsigned char build_id[20];
	__u64 offset;
} __packed;

/* A decoded PERF_RECORD_SAMPLE; only what is in bits has a meaning. */
struct sample {
	const struct perf_event_header *header;
	__u64 bits;		/* attr.sample_type */
	__u64 decoded;		/* bits whose payload was there in full */
	struct {
		__u64 id;
	} identifier;
	struct {
		__u64 ip;
	} ip;
	struct {
		__u32 pid;
		__u32 tid;
	} tid;
	struct {
		__u64 time;
	} time;
	struct {
		__u64 addr;
	} addr;
	struct {
		__u64 id;
	} id;
	struct {
		__u64 stream_id;
	} stream_id;
	struct {
		__u32 cpu;
		__u32 res;
	} cpu;
	struct {
		__u64 period;
	} period;
	struct {
		__u64 nr;
		__u64 value;
		__u64 time_enabled;
		__u64 time_running;
		__u64 id;
		__u64 lost;
		const __u64 *values;
	} read;
	struct {
		__u64 nr;
		const __u64 *ips;
	} callchain;
	struct {
		__u32 size;
		const unsigned char *data;
	} raw;
	struct {
		__u64 nr;
		__u64 hw_idx;
		const struct branch_entry *entries;
		const __u64 *counters;
	} branch_stack;
	struct {
		__u64 abi;
		const __u64 *regs;
	} regs_user;
	struct {
		__u64 size;
		const unsigned char *data;
		__u64 dyn_size;
	} stack_user;
	struct {
		__u64 full;
	} weight;
	struct {
		__u32 var1_dw;
		__u16 var2_w;
		__u16 var3_w;
	} weight_struct;
	struct {
		__u64 data_src;
	} data_src;
	struct {
		__u64 transaction;
	} transaction;
	struct {
		__u64 abi;
		const __u64 *regs;
	} regs_intr;
	struct {
		__u64 phys_addr;
	} phys_addr;
	struct {
		__u64 cgroup;
	} cgroup;
	struct {
		__u64 data_page_size;
	} data_page_size;
	struct {
		__u64 code_page_size;
	} code_page_size;
	struct {
		__u64 size;
		const unsigned char *data;
	} aux;
	struct {
		struct build_id_offset bid;
	} build_id_offset;
	struct {
		__u64 nr;
		const struct build_id_offset *entries;
	} callchain_build_id_offset;
};

struct sample_type {
	const char *name;	/* without PERF_SAMPLE_ */
	__u64 bit;
	__u64 excludes;		/* bits that the kernel refuses with it */
	const char *needs;	/* "", or what the machine must have */
	void (*check)(struct expect *expect, const struct sample *sample);
	void (*prove)(struct expect *expect, const struct sample *sample);
};

struct perf_event_attr {
	__u32			type;
	__u32			size;
	__u64			config;
	union {
		__u64		sample_period;
		__u64		sample_freq;
	};
	__u64			sample_type;
	__u64			read_format;
	__u64			disabled       :  1,
				inherit	       :  1,
				pinned	       :  1,
				exclusive      :  1,
				exclude_user   :  1,
				exclude_kernel :  1,
				exclude_hv     :  1,
				exclude_idle   :  1,
				mmap           :  1,
				comm	       :  1,
				freq           :  1,
				inherit_stat   :  1,
				enable_on_exec :  1,
				task           :  1,
				watermark      :  1,
				precise_ip     :  2,
				mmap_data      :  1,
				sample_id_all  :  1,
				exclude_host   :  1,
				exclude_guest  :  1,
				exclude_callchain_kernel : 1,
				exclude_callchain_user   : 1,
				mmap2          :  1,
				comm_exec      :  1,
				use_clockid    :  1,
				context_switch :  1,
				write_backward :  1,
				namespaces     :  1,
				ksymbol        :  1,
				bpf_event      :  1,
				aux_output     :  1,
				cgroup         :  1,
				text_poke      :  1,
				build_id       :  1,
				inherit_thread :  1,
				remove_on_exec :  1,
				sigtrap        :  1,
				defer_callchain:  1,
				defer_output   :  1,
				__reserved_1   : 24;
	union {
		__u32		wakeup_events;
		__u32		wakeup_watermark;
	};
	__u32			bp_type;
	union {
		__u64		bp_addr;
		__u64		kprobe_func;
		__u64		uprobe_path;
		__u64		config1;
	};
	union {
		__u64		bp_len;
		__u64		kprobe_addr;
		__u64		probe_offset;
		__u64		config2;
	};
	__u64	branch_sample_type;
	__u64	sample_regs_user;
	__u32	sample_stack_user;
	__s32	clockid;
	__u64	sample_regs_intr;
	__u32	aux_watermark;
	__u16	sample_max_stack;
	__u16	__reserved_2;
	__u32	aux_sample_size;
	union {
		__u32	aux_action;
		struct {
			__u32	aux_start_paused :  1,
				aux_pause        :  1,
				aux_resume       :  1,
				__reserved_3     : 29;
		};
	};
	__u64	sig_data;
	__u64	config3;
	__u64	config4;
};

struct perf_event_mmap_page {
	__u32	version;
	__u32	compat_version;
	__u32	lock;
	__u32	index;
	__s64	offset;
	__u64	time_enabled;
	__u64	time_running;
	union {
		__u64	capabilities;
		struct {
			__u64	cap_bit0		: 1,
				cap_bit0_is_deprecated	: 1,
				cap_user_rdpmc		: 1,
				cap_user_time		: 1,
				cap_user_time_zero	: 1,
				cap_user_time_short	: 1,
				cap_____res		: 58;
		};
	};
	__u16	pmc_width;
	__u16	time_shift;
	__u32	time_mult;
	__u64	time_offset;
	__u64	time_zero;
	__u32	size;
	__u32	__reserved_1;
	__u64	time_cycles;
	__u64	time_mask;
	__u8	__reserved[116*8];
	__u64   data_head;
	__u64	data_tail;
	__u64	data_offset;
	__u64	data_size;
	__u64	aux_head;
	__u64	aux_tail;
	__u64	aux_offset;
	__u64	aux_size;
};

struct event {
	struct perf_event_attr attr;
	int fd;
	__u64 id;
	struct perf_event_mmap_page *page;
	size_t data_size;
	__u64 tail;
	__u64 record[RECORD_MAX / sizeof(__u64)];	/* the current record */
};

struct mapping {
	__u64 start, end, offset, inode;
	unsigned int device;
	bool executable;
	bool file;			/* of a file, not [stack] and its like */
	unsigned int id_size;		/* 0: no build ID, or not readable */
	unsigned char id[BUILD_ID_MAX];
	char path[128];
};

struct maps {
	unsigned int count;
	struct mapping *map;
};

struct expect {
	struct event *event;
	struct maps maps;
	enum source source;
	__u32 pid, tid;
	__u64 time_from, time_to;	/* CLOCK_MONOTONIC, ns */
	__u64 before[FACTS], after[FACTS];
	int cpu;			/* -1: any */
	/*
	 * A user address in a file with a build ID must be resolved: the lock
	 * is free, and the pages of its ELF header and notes are in memory.
	 */
	bool must_resolve;
	/*
	 * What lies at the user's stack pointer, and how many bytes of it are
	 * readable; NULL when the test did not make the stack.
	 */
	const char *stack;
	size_t stack_size;
	/* Samples are missing, or not read in the order of writing. */
	bool gaps;
	/* Called for each sample after its values were checked; may be NULL. */
	void (*on_sample)(struct expect *expect, const struct sample *sample);

	/* Counted by check_sample(). */
	unsigned int samples;
	unsigned int resolved;		/* entries with a build ID */
	unsigned int unresolved;	/* user entries without one */
	unsigned int deferred;		/* cookies promised */
	__u64 last_value, last[RISING];
	const struct event *last_event;
	bool shown;
};

enum perf_event_read_format {
	PERF_FORMAT_TOTAL_TIME_ENABLED		= 1U << 0,
	PERF_FORMAT_TOTAL_TIME_RUNNING		= 1U << 1,
	PERF_FORMAT_ID				= 1U << 2,
	PERF_FORMAT_GROUP			= 1U << 3,
	PERF_FORMAT_LOST			= 1U << 4,
};

struct scoped_type {
	const char *name;	/* without PERF_SAMPLE_ */
	__u64 bit;
	bool new;		/* base does not have it */
	const char *comment;	/* what is wrong with the layout in the comment, or NULL */
};

enum kernel {
	KERNEL_PLAIN,		/* no comparison: the headers are this kernel's */
	KERNEL_BASE,		/* without the series */
	KERNEL_PATCHED,		/* with it */
};

enum perf_type_id {
	PERF_TYPE_SOFTWARE			= 1,
	PERF_TYPE_TRACEPOINT			= 2,
};

enum perf_sw_ids {
	PERF_COUNT_SW_CPU_CLOCK			= 0,
	PERF_COUNT_SW_PAGE_FAULTS		= 2,
	PERF_COUNT_SW_DUMMY			= 9,
};

enum perf_branch_sample_type_shift {
	PERF_SAMPLE_BRANCH_USER_SHIFT		=  0,
	PERF_SAMPLE_BRANCH_KERNEL_SHIFT		=  1,
	PERF_SAMPLE_BRANCH_HV_SHIFT		=  2,
	PERF_SAMPLE_BRANCH_ANY_SHIFT		=  3,
	PERF_SAMPLE_BRANCH_ANY_CALL_SHIFT	=  4,
	PERF_SAMPLE_BRANCH_ANY_RETURN_SHIFT	=  5,
	PERF_SAMPLE_BRANCH_IND_CALL_SHIFT	=  6,
	PERF_SAMPLE_BRANCH_ABORT_TX_SHIFT	=  7,
	PERF_SAMPLE_BRANCH_IN_TX_SHIFT		=  8,
	PERF_SAMPLE_BRANCH_NO_TX_SHIFT		=  9,
	PERF_SAMPLE_BRANCH_COND_SHIFT		= 10,
	PERF_SAMPLE_BRANCH_CALL_STACK_SHIFT	= 11,
	PERF_SAMPLE_BRANCH_IND_JUMP_SHIFT	= 12,
	PERF_SAMPLE_BRANCH_CALL_SHIFT		= 13,
	PERF_SAMPLE_BRANCH_NO_FLAGS_SHIFT	= 14,
	PERF_SAMPLE_BRANCH_NO_CYCLES_SHIFT	= 15,
	PERF_SAMPLE_BRANCH_TYPE_SAVE_SHIFT	= 16,
	PERF_SAMPLE_BRANCH_HW_INDEX_SHIFT	= 17,
	PERF_SAMPLE_BRANCH_PRIV_SAVE_SHIFT	= 18,
	PERF_SAMPLE_BRANCH_COUNTERS_SHIFT	= 19,
	PERF_SAMPLE_BRANCH_MAX_SHIFT
};

enum perf_branch_sample_type {
	PERF_SAMPLE_BRANCH_ANY			= 1U << PERF_SAMPLE_BRANCH_ANY_SHIFT,
	PERF_SAMPLE_BRANCH_HW_INDEX		= 1U << PERF_SAMPLE_BRANCH_HW_INDEX_SHIFT,
	PERF_SAMPLE_BRANCH_COUNTERS		= 1U << PERF_SAMPLE_BRANCH_COUNTERS_SHIFT,
};

/* A number that proofs compare with: of a clock, or in a file. */
struct fact {
	const char *name;
	int clock;		/* -1: in the file */
	const char *file;
	unsigned int word;	/* the word of this number, or */
	const char *key;	/* what stands behind this text */
};

/* struct sample_id: what follows other records under attr.sample_id_all. */
struct sample_id {
	struct {
		__u32 pid;
		__u32 tid;
	} tid;
	struct {
		__u64 time;
	} time;
	struct {
		__u64 id;
	} id;
	struct {
		__u64 stream_id;
	} stream_id;
	struct {
		__u32 cpu;
		__u32 res;
	} cpu;
	struct {
		__u64 id;
	} identifier;
};

/* A decoded record that is not a sample. */
struct record {
	const struct perf_event_header *header;
	bool has_id;
	struct sample_id id;
	union {
		struct {
			__u64 id;
			__u64 lost;
		} lost;
		struct {
			__u64 time;
			__u64 id;
			__u64 stream_id;
		} throttle;
		struct {
			__u64 time;
			__u64 id;
			__u64 stream_id;
		} unthrottle;
		struct {
			__u64 cookie;
			__u64 nr;
			const __u64 *ips;
			const struct build_id_offset *entries;
		} callchain_deferred;
	};
};

enum perf_event_type {
	PERF_RECORD_SAMPLE			= 9,
};

/* What is left of a record. what names the field that is being read. */
struct cursor {
	const char *at;
	size_t left;
	bool failed;
	char problem[192];
};

extern const struct sample_type sample_types[SAMPLE_TYPES];

/* What differs the most: every type in scope that is not here is tried with these. */
static const struct ask asks[] = {
	{ "ip", PERF_SAMPLE_IP },
	{ "callchain", PERF_SAMPLE_CALLCHAIN },
	{ "user_callchain", PERF_SAMPLE_CALLCHAIN, .no_kernel_chain = true },
	{ "no_user_callchain", PERF_SAMPLE_CALLCHAIN, .no_user_chain = true },
	{ "raw", PERF_SAMPLE_RAW },
	{ "regs", PERF_SAMPLE_REGS_USER | PERF_SAMPLE_REGS_INTR },
	{ "stack", PERF_SAMPLE_STACK_USER },
	{ "build_id", PERF_SAMPLE_BUILD_ID_OFFSET },
	{ "build_id_chain", PERF_SAMPLE_CALLCHAIN_BUILD_ID_OFFSET },
	{ "user_build_id_chain", PERF_SAMPLE_CALLCHAIN_BUILD_ID_OFFSET,
	  .no_kernel_chain = true },
	{ "deferred_build_id_chain", PERF_SAMPLE_CALLCHAIN_BUILD_ID_OFFSET,
	  .defer = true },
};

static unsigned int faults;	/* against the rule that this file is about */
static unsigned int failures;	/* against any */

void ktap_diag(const char *format, ...)
{
	va_list list;

	printf("# ");
	va_start(list, format);
	vprintf(format, list);
	va_end(list);
	printf("\n");
}

/* Print what fails, and tell a breach of the rule from another. */
static bool fail(const char *format, va_list list)
{
	char text[1024], *begin, *end, *expected;
	bool ours = false, named = false;

	vsnprintf(text, sizeof(text), format, list);
	while ((begin = strchr(text, RULE_BEGIN)) && (end = strchr(begin, RULE_END))) {
		*end = '\0';
		ours |= !named && !strcmp(begin + 1, CASE_RULE);
		named = true;
		memmove(begin, end + 1, strlen(end + 1) + 1);
	}
	faults += ours;
	failures++;
	if (ours ? faults > 1 : failures > 1)
		return false;
	expected = strstr(text, EXPECTED);
	if (expected)
		*expected = '\0';
	ktap_diag("seen: %s", text);
	if (expected)
		ktap_diag("expected: %s", expected + strlen(EXPECTED));
	return true;
}

bool ktap_fail(const char *format, ...)
{
	va_list list;
	bool shown;

	va_start(list, format);
	shown = fail(format, list);
	va_end(list);
	return shown;
}

static void show_sample_identifier(const struct sample *s)
{
	ktap_diag("  IDENTIFIER");
	ktap_diag("    id %#llx", (__u64)s->identifier.id);
}

static void show_sample_ip(const struct sample *s)
{
	ktap_diag("  IP");
	ktap_diag("    ip %#llx", (__u64)s->ip.ip);
}

static void show_sample_tid(const struct sample *s)
{
	ktap_diag("  TID");
	ktap_diag("    pid %#llx", (__u64)s->tid.pid);
	ktap_diag("    tid %#llx", (__u64)s->tid.tid);
}

static void show_sample_time(const struct sample *s)
{
	ktap_diag("  TIME");
	ktap_diag("    time %#llx", (__u64)s->time.time);
}

static void show_sample_addr(const struct sample *s)
{
	ktap_diag("  ADDR");
	ktap_diag("    addr %#llx", (__u64)s->addr.addr);
}

static void show_sample_id(const struct sample *s)
{
	ktap_diag("  ID");
	ktap_diag("    id %#llx", (__u64)s->id.id);
}

static void show_sample_stream_id(const struct sample *s)
{
	ktap_diag("  STREAM_ID");
	ktap_diag("    stream_id %#llx", (__u64)s->stream_id.stream_id);
}

static void show_sample_cpu(const struct sample *s)
{
	ktap_diag("  CPU");
	ktap_diag("    cpu %#llx", (__u64)s->cpu.cpu);
	ktap_diag("    res %#llx", (__u64)s->cpu.res);
}

static void show_sample_period(const struct sample *s)
{
	ktap_diag("  PERIOD");
	ktap_diag("    period %#llx", (__u64)s->period.period);
}

static void show_words(const char *name, const __u64 *word, __u64 count)
{
	for (__u64 i = 0; i < count && i < SHOWN_ELEMENTS; i++)
		ktap_diag("    %s[%llu] %#llx", name, i, word[i]);
}

static void show_sample_read(const struct sample *s)
{
	ktap_diag("  READ");
	ktap_diag("    nr %#llx", (__u64)s->read.nr);
	ktap_diag("    value %#llx", (__u64)s->read.value);
	ktap_diag("    time_enabled %#llx", (__u64)s->read.time_enabled);
	ktap_diag("    time_running %#llx", (__u64)s->read.time_running);
	ktap_diag("    id %#llx", (__u64)s->read.id);
	ktap_diag("    lost %#llx", (__u64)s->read.lost);
	if (s->read.values)
		show_words("values", s->read.values, 0);
}

static void show_sample_callchain(const struct sample *s)
{
	ktap_diag("  CALLCHAIN");
	ktap_diag("    nr %#llx", (__u64)s->callchain.nr);
	if (s->callchain.ips)
		show_words("ips", s->callchain.ips, s->callchain.nr);
}

static void show_bytes(const char *name, const void *data, __u64 size)
{
	const unsigned char *byte = data;
	char text[2 * 32 + 1] = "";

	for (__u64 i = 0; i < size && i < 32; i++)
		sprintf(text + 2 * i, "%02x", byte[i]);
	ktap_diag("    %s: %llu bytes %s%s", name, size, text,
		  size > 32 ? "..." : "");
}

static void show_sample_raw(const struct sample *s)
{
	ktap_diag("  RAW");
	ktap_diag("    size %#llx", (__u64)s->raw.size);
	if (s->raw.data)
		show_bytes("data", s->raw.data, s->raw.size);
}

static __maybe_unused void
show_branch_entry(const char *name, const struct branch_entry *element, __u64 count)
{
	for (__u64 i = 0; i < count && i < SHOWN_ELEMENTS; i++) {
		char text[256];
		int at = 0;

		at += sprintf(text + at, " from=%#llx",
			      (__u64)element[i].from);
		at += sprintf(text + at, " to=%#llx",
			      (__u64)element[i].to);
		at += sprintf(text + at, " flags=%#llx",
			      (__u64)element[i].flags);
		ktap_diag("    %s[%llu]%.*s", name, i, at, text);
	}
}

static void show_sample_branch_stack(const struct sample *s)
{
	ktap_diag("  BRANCH_STACK");
	ktap_diag("    nr %#llx", (__u64)s->branch_stack.nr);
	ktap_diag("    hw_idx %#llx", (__u64)s->branch_stack.hw_idx);
	if (s->branch_stack.entries)
		show_branch_entry("entries", s->branch_stack.entries, s->branch_stack.nr);
	if (s->branch_stack.counters)
		show_words("counters", s->branch_stack.counters, s->branch_stack.nr);
}

static void show_sample_regs_user(const struct sample *s)
{
	ktap_diag("  REGS_USER");
	ktap_diag("    abi %#llx", (__u64)s->regs_user.abi);
	if (s->regs_user.regs)
		show_words("regs", s->regs_user.regs, 0);
}

static void show_sample_stack_user(const struct sample *s)
{
	ktap_diag("  STACK_USER");
	ktap_diag("    size %#llx", (__u64)s->stack_user.size);
	if (s->stack_user.data)
		show_bytes("data", s->stack_user.data, s->stack_user.size);
	ktap_diag("    dyn_size %#llx", (__u64)s->stack_user.dyn_size);
}

static void show_sample_weight(const struct sample *s)
{
	ktap_diag("  WEIGHT");
	ktap_diag("    full %#llx", (__u64)s->weight.full);
}

static void show_sample_weight_struct(const struct sample *s)
{
	ktap_diag("  WEIGHT_STRUCT");
	ktap_diag("    var1_dw %#llx", (__u64)s->weight_struct.var1_dw);
	ktap_diag("    var2_w %#llx", (__u64)s->weight_struct.var2_w);
	ktap_diag("    var3_w %#llx", (__u64)s->weight_struct.var3_w);
}

static void show_sample_data_src(const struct sample *s)
{
	ktap_diag("  DATA_SRC");
	ktap_diag("    data_src %#llx", (__u64)s->data_src.data_src);
}

static void show_sample_transaction(const struct sample *s)
{
	ktap_diag("  TRANSACTION");
	ktap_diag("    transaction %#llx", (__u64)s->transaction.transaction);
}

static void show_sample_regs_intr(const struct sample *s)
{
	ktap_diag("  REGS_INTR");
	ktap_diag("    abi %#llx", (__u64)s->regs_intr.abi);
	if (s->regs_intr.regs)
		show_words("regs", s->regs_intr.regs, 0);
}

static void show_sample_phys_addr(const struct sample *s)
{
	ktap_diag("  PHYS_ADDR");
	ktap_diag("    phys_addr %#llx", (__u64)s->phys_addr.phys_addr);
}

static void show_sample_cgroup(const struct sample *s)
{
	ktap_diag("  CGROUP");
	ktap_diag("    cgroup %#llx", (__u64)s->cgroup.cgroup);
}

static void show_sample_data_page_size(const struct sample *s)
{
	ktap_diag("  DATA_PAGE_SIZE");
	ktap_diag("    data_page_size %#llx", (__u64)s->data_page_size.data_page_size);
}

static void show_sample_code_page_size(const struct sample *s)
{
	ktap_diag("  CODE_PAGE_SIZE");
	ktap_diag("    code_page_size %#llx", (__u64)s->code_page_size.code_page_size);
}

static void show_sample_aux(const struct sample *s)
{
	ktap_diag("  AUX");
	ktap_diag("    size %#llx", (__u64)s->aux.size);
	if (s->aux.data)
		show_bytes("data", s->aux.data, s->aux.size);
}

static __maybe_unused void
show_build_id_offset(const char *name, const struct build_id_offset *element, __u64 count)
{
	for (__u64 i = 0; i < count && i < SHOWN_ELEMENTS; i++) {
		char text[256];
		int at = 0;

		at += sprintf(text + at, " size=%#llx",
			      (__u64)element[i].size);
		at += sprintf(text + at, " reserved_1=%#llx",
			      (__u64)element[i].reserved_1);
		at += sprintf(text + at, " reserved_2=%#llx",
			      (__u64)element[i].reserved_2);
		at += sprintf(text + at, " build_id=");
		for (unsigned int j = 0; j < 20; j++)
			at += sprintf(text + at, "%02x", element[i].build_id[j]);
		at += sprintf(text + at, " offset=%#llx",
			      (__u64)element[i].offset);
		ktap_diag("    %s[%llu]%.*s", name, i, at, text);
	}
}

static void show_sample_build_id_offset(const struct sample *s)
{
	ktap_diag("  BUILD_ID_OFFSET");
	show_build_id_offset("bid", &s->build_id_offset.bid, 1);
}

static void show_sample_callchain_build_id_offset(const struct sample *s)
{
	ktap_diag("  CALLCHAIN_BUILD_ID_OFFSET");
	ktap_diag("    nr %#llx", (__u64)s->callchain_build_id_offset.nr);
	if (s->callchain_build_id_offset.entries)
		show_build_id_offset("entries", s->callchain_build_id_offset.entries, s->callchain_build_id_offset.nr);
}

void print_sample(const struct sample *sample)
{
	static void (* const show[SAMPLE_TYPES])(const struct sample *s) = {
		show_sample_identifier,
		show_sample_ip,
		show_sample_tid,
		show_sample_time,
		show_sample_addr,
		show_sample_id,
		show_sample_stream_id,
		show_sample_cpu,
		show_sample_period,
		show_sample_read,
		show_sample_callchain,
		show_sample_raw,
		show_sample_branch_stack,
		show_sample_regs_user,
		show_sample_stack_user,
		show_sample_weight,
		show_sample_weight_struct,
		show_sample_data_src,
		show_sample_transaction,
		show_sample_regs_intr,
		show_sample_phys_addr,
		show_sample_cgroup,
		show_sample_data_page_size,
		show_sample_code_page_size,
		show_sample_aux,
		show_sample_build_id_offset,
		show_sample_callchain_build_id_offset,
	};

	ktap_diag("sample: misc %#x size %u sample_type %#llx",
		  sample->header->misc, sample->header->size, sample->bits);
	for (unsigned int i = 0; i < SAMPLE_TYPES; i++)
		if (sample->decoded & sample_types[i].bit)
			show[i](sample);
}

void ktap_hexdump(const void *data, size_t size)
{
	const unsigned char *byte = data;

	for (size_t at = 0; at < size && at < HEXDUMP_SIZE; at += 16) {
		printf("#   %04zx:", at);
		for (size_t i = at; i < at + 16 && i < size; i++)
			printf("%s%02x", i % 8 ? " " : "  ", byte[i]);
		printf("\n");
	}
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

void prove_equal(struct expect *expect, const struct sample *sample,
		 const char *what, __u64 value, __u64 other, const char *said)
{
	if (value != other)
		sample_fail(expect, sample, "%s %llu, %#llx; expected %llu, %#llx, which is %s",
			    what, value, value, other, other, said);
}

/* PERF_SAMPLE_IDENTIFIER: what its values are proved by */
static void prove_identifier(struct expect *expect, const struct sample *sample)
{
	const struct perf_event_attr *attr = &expect->event->attr;
	const struct perf_event_header *header = sample->header;

	(void)attr;
	(void)header;
	prove_equal(expect, sample, RULE_SAMPLE_ID "IDENTIFIER.id",
		sample->identifier.id, expect->event->id,
		"event.id");
}

/* PERF_SAMPLE_TID: what its values are proved by */
static void prove_tid(struct expect *expect, const struct sample *sample)
{
	const struct perf_event_attr *attr = &expect->event->attr;
	const struct perf_event_header *header = sample->header;

	(void)attr;
	(void)header;
	prove_equal(expect, sample, RULE_SAMPLE_TID "TID.pid",
		sample->tid.pid, expect->pid,
		"task.pid");
	prove_equal(expect, sample, RULE_SAMPLE_TID "TID.tid",
		sample->tid.tid, expect->tid,
		"task.tid");
}

bool fact_known(struct expect *expect, const struct sample *sample,
		__u64 value, const char *name)
{
	if (value != FACT_UNKNOWN)
		return true;
	sample_fail(expect, sample, RULE_TEST_SETUP "%s cannot be read", name);
	return false;
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

/* PERF_SAMPLE_TIME: what its values are proved by */
static void prove_time(struct expect *expect, const struct sample *sample)
{
	const struct perf_event_attr *attr = &expect->event->attr;
	const struct perf_event_header *header = sample->header;

	(void)attr;
	(void)header;
	if (fact_known(expect, sample, expect->before[0], "before.monotonic"))
		prove_least(expect, sample, RULE_SAMPLE_TIME "TIME.time",
			sample->time.time, expect->before[0],
			"before.monotonic");
	if (fact_known(expect, sample, expect->after[0], "after.monotonic"))
		prove_most(expect, sample, RULE_SAMPLE_TIME "TIME.time",
			sample->time.time, expect->after[0],
			"after.monotonic");
	prove_rises(expect, sample, RULE_SAMPLE_TIME "TIME.time",
		    sample->time.time, 0);
}

/* PERF_SAMPLE_ID: what its values are proved by */
static void prove_id(struct expect *expect, const struct sample *sample)
{
	const struct perf_event_attr *attr = &expect->event->attr;
	const struct perf_event_header *header = sample->header;

	(void)attr;
	(void)header;
	prove_equal(expect, sample, RULE_SAMPLE_ID "ID.id",
		sample->id.id, expect->event->id,
		"event.id");
}

/* PERF_SAMPLE_STREAM_ID: what its values are proved by */
static void prove_stream_id(struct expect *expect, const struct sample *sample)
{
	const struct perf_event_attr *attr = &expect->event->attr;
	const struct perf_event_header *header = sample->header;

	(void)attr;
	(void)header;
	prove_equal(expect, sample, RULE_SAMPLE_STREAM_ID "STREAM_ID.stream_id",
		sample->stream_id.stream_id, expect->event->id,
		"event.id");
}

/* PERF_SAMPLE_CPU: what its values are proved by */
static void prove_cpu(struct expect *expect, const struct sample *sample)
{
	const struct perf_event_attr *attr = &expect->event->attr;
	const struct perf_event_header *header = sample->header;

	(void)attr;
	(void)header;
	if ((expect->cpu >= 0))
		prove_equal(expect, sample, RULE_SAMPLE_CPU "CPU.cpu",
			sample->cpu.cpu, (__u64)expect->cpu,
			"task.cpu");
	prove_equal(expect, sample, RULE_SAMPLE_CPU "CPU.res",
		sample->cpu.res, 0,
		"0");
}

/* PERF_SAMPLE_PERIOD: what its values are proved by */
static void prove_period(struct expect *expect, const struct sample *sample)
{
	const struct perf_event_attr *attr = &expect->event->attr;
	const struct perf_event_header *header = sample->header;

	(void)attr;
	(void)header;
	if (!attr->freq)
		prove_equal(expect, sample, RULE_SAMPLE_PERIOD "PERIOD.period",
			sample->period.period, attr->sample_period,
			"attr.sample_period");
}

/* PERF_SAMPLE_READ: what its values are proved by */
static void prove_read(struct expect *expect, const struct sample *sample)
{
	const struct perf_event_attr *attr = &expect->event->attr;
	const struct perf_event_header *header = sample->header;

	(void)attr;
	(void)header;
	if (!(attr->read_format & PERF_FORMAT_GROUP) && (attr->read_format & PERF_FORMAT_ID))
		prove_equal(expect, sample, RULE_SAMPLE_READ "READ.id",
			sample->read.id, expect->event->id,
			"event.id");
	if ((attr->read_format & PERF_FORMAT_TOTAL_TIME_RUNNING) && (attr->read_format & PERF_FORMAT_TOTAL_TIME_ENABLED))
		prove_most(expect, sample, RULE_SAMPLE_READ "READ.time_running",
			sample->read.time_running, sample->read.time_enabled,
			"time_enabled");
}

/* PERF_SAMPLE_STACK_USER: what its values are proved by */
static void prove_stack_user(struct expect *expect, const struct sample *sample)
{
	const struct perf_event_attr *attr = &expect->event->attr;
	const struct perf_event_header *header = sample->header;

	(void)attr;
	(void)header;
	prove_most(expect, sample, RULE_SAMPLE_STACK "STACK_USER.size",
		sample->stack_user.size, attr->sample_stack_user,
		"attr.sample_stack_user");
	if ((sample->stack_user.size) && (sample->stack_user.size))
		prove_most(expect, sample, RULE_SAMPLE_STACK "STACK_USER.dyn_size",
			sample->stack_user.dyn_size, sample->stack_user.size,
			"size");
}

/* PERF_SAMPLE_WEIGHT: what its values are proved by */
static void prove_weight(struct expect *expect, const struct sample *sample)
{
	const struct perf_event_attr *attr = &expect->event->attr;
	const struct perf_event_header *header = sample->header;

	(void)attr;
	(void)header;
	prove_equal(expect, sample, RULE_SAMPLE_HARDWARE "WEIGHT.full",
		sample->weight.full, 0,
		"0");
}

/* PERF_SAMPLE_WEIGHT_STRUCT: what its values are proved by */
static void prove_weight_struct(struct expect *expect, const struct sample *sample)
{
	const struct perf_event_attr *attr = &expect->event->attr;
	const struct perf_event_header *header = sample->header;

	(void)attr;
	(void)header;
	prove_equal(expect, sample, RULE_SAMPLE_HARDWARE "WEIGHT_STRUCT.var1_dw",
		sample->weight_struct.var1_dw, 0,
		"0");
	prove_equal(expect, sample, RULE_SAMPLE_HARDWARE "WEIGHT_STRUCT.var2_w",
		sample->weight_struct.var2_w, 0,
		"0");
	prove_equal(expect, sample, RULE_SAMPLE_HARDWARE "WEIGHT_STRUCT.var3_w",
		sample->weight_struct.var3_w, 0,
		"0");
}

/* PERF_SAMPLE_TRANSACTION: what its values are proved by */
static void prove_transaction(struct expect *expect, const struct sample *sample)
{
	const struct perf_event_attr *attr = &expect->event->attr;
	const struct perf_event_header *header = sample->header;

	(void)attr;
	(void)header;
	prove_equal(expect, sample, RULE_SAMPLE_HARDWARE "TRANSACTION.transaction",
		sample->transaction.transaction, 0,
		"0");
}

/* PERF_SAMPLE_CGROUP: what its values are proved by */
static void prove_cgroup(struct expect *expect, const struct sample *sample)
{
	const struct perf_event_attr *attr = &expect->event->attr;
	const struct perf_event_header *header = sample->header;

	(void)attr;
	(void)header;
	prove_least(expect, sample, RULE_SAMPLE_CGROUP "CGROUP.cgroup",
		sample->cgroup.cgroup, 1,
		"1");
}

const struct sample_type sample_types[SAMPLE_TYPES] = {
	{
		.name = "IDENTIFIER",
		.bit = (1ULL << 16),
		.excludes = 0,
		.needs = "",
		.prove = prove_identifier,
	},
	{
		.name = "IP",
		.bit = (1ULL << 0),
		.excludes = 0,
		.needs = "",
	},
	{
		.name = "TID",
		.bit = (1ULL << 1),
		.excludes = 0,
		.needs = "",
		.prove = prove_tid,
	},
	{
		.name = "TIME",
		.bit = (1ULL << 2),
		.excludes = 0,
		.needs = "",
		.prove = prove_time,
	},
	{
		.name = "ADDR",
		.bit = (1ULL << 3),
		.excludes = 0,
		.needs = "",
	},
	{
		.name = "ID",
		.bit = (1ULL << 6),
		.excludes = 0,
		.needs = "",
		.prove = prove_id,
	},
	{
		.name = "STREAM_ID",
		.bit = (1ULL << 9),
		.excludes = 0,
		.needs = "",
		.prove = prove_stream_id,
	},
	{
		.name = "CPU",
		.bit = (1ULL << 7),
		.excludes = 0,
		.needs = "",
		.prove = prove_cpu,
	},
	{
		.name = "PERIOD",
		.bit = (1ULL << 8),
		.excludes = 0,
		.needs = "",
		.prove = prove_period,
	},
	{
		.name = "READ",
		.bit = (1ULL << 4),
		.excludes = 0,
		.needs = "",
		.prove = prove_read,
	},
	{
		.name = "CALLCHAIN",
		.bit = (1ULL << 5),
		.excludes = 0,
		.needs = "",
	},
	{
		.name = "RAW",
		.bit = (1ULL << 10),
		.excludes = 0,
		.needs = "",
	},
	{
		.name = "BRANCH_STACK",
		.bit = (1ULL << 11),
		.excludes = 0,
		.needs = "hardware branch stack",
	},
	{
		.name = "REGS_USER",
		.bit = (1ULL << 12),
		.excludes = 0,
		.needs = "",
	},
	{
		.name = "STACK_USER",
		.bit = (1ULL << 13),
		.excludes = 0,
		.needs = "",
		.prove = prove_stack_user,
	},
	{
		.name = "WEIGHT",
		.bit = (1ULL << 14),
		.excludes = (1ULL << 24),
		.needs = "",
		.prove = prove_weight,
	},
	{
		.name = "WEIGHT_STRUCT",
		.bit = (1ULL << 24),
		.excludes = (1ULL << 14),
		.needs = "",
		.prove = prove_weight_struct,
	},
	{
		.name = "DATA_SRC",
		.bit = (1ULL << 15),
		.excludes = 0,
		.needs = "",
	},
	{
		.name = "TRANSACTION",
		.bit = (1ULL << 17),
		.excludes = 0,
		.needs = "",
		.prove = prove_transaction,
	},
	{
		.name = "REGS_INTR",
		.bit = (1ULL << 18),
		.excludes = 0,
		.needs = "",
	},
	{
		.name = "PHYS_ADDR",
		.bit = (1ULL << 19),
		.excludes = 0,
		.needs = "",
	},
	{
		.name = "CGROUP",
		.bit = (1ULL << 21),
		.excludes = 0,
		.needs = "CONFIG_CGROUP_PERF",
		.prove = prove_cgroup,
	},
	{
		.name = "DATA_PAGE_SIZE",
		.bit = (1ULL << 22),
		.excludes = 0,
		.needs = "",
	},
	{
		.name = "CODE_PAGE_SIZE",
		.bit = (1ULL << 23),
		.excludes = 0,
		.needs = "",
	},
	{
		.name = "AUX",
		.bit = (1ULL << 20),
		.excludes = 0,
		.needs = "AUX area PMU",
	},
	{
		.name = "BUILD_ID_OFFSET",
		.bit = (1ULL << 25),
		.excludes = 0,
		.needs = "",
	},
	{
		.name = "CALLCHAIN_BUILD_ID_OFFSET",
		.bit = (1ULL << 26),
		.excludes = 0,
		.needs = "",
	},
};

const struct sample_type *sample_type(__u64 bit)
{
	for (unsigned int i = 0; i < SAMPLE_TYPES; i++)
		if (sample_types[i].bit == bit)
			return &sample_types[i];
	return NULL;
}

static const struct scoped_type scope_types[SCOPE_TYPES] __maybe_unused = {
	/* named in an added line */
	{ "IP", 0x1ULL, false,
NULL },
	/* named in an added line */
	{ "CALLCHAIN", 0x20ULL, false,
NULL },
	/* new in the UAPI header */
	{ "BUILD_ID_OFFSET", 0x2000000ULL, true,
NULL },
	/* new in the UAPI header */
	{ "CALLCHAIN_BUILD_ID_OFFSET", 0x4000000ULL, true,
NULL },
};

static bool in_asks(__u64 bit)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(asks); i++)
		if (asks[i].bits & bit)
			return true;
	return false;
}

/* Types in scope that stand in no ask, and that the machine has. */
static unsigned int find_others(struct ask *others)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < SCOPE_TYPES; i++) {
		const struct sample_type *known = sample_type(scope_types[i].bit);

		if (in_asks(scope_types[i].bit) || (known && known->needs[0]))
			continue;
		others[count++] = (struct ask){ scope_types[i].name, scope_types[i].bit };
	}
	return count;
}

static void (*case_run)(const void *arg);
static const void *case_arg;

void ktap_add(void (*run)(const void *arg), const void *arg,
	      const char *format, ...)
{
	char name[256];
	va_list list;

	va_start(list, format);
	vsnprintf(name, sizeof(name), format, list);
	va_end(list);
	if (strcmp(name, CASE))
		return;
	case_run = run;
	case_arg = arg;
}

enum kernel ktap_kernel = KERNEL_PATCHED;

static bool refused(const struct ask *ask)
{
	if (ask->bits & ~SCOPE_ALL_BITS)
		return true;
	return ktap_kernel == KERNEL_BASE && (ask->bits & SCOPE_NEW_BITS);
}

static void __noreturn end_case(const char *why)
{
	if (faults)
		printf("The fault is there: %u times against %s.\n", faults, CASE_RULE);
	else if (why)
		printf("It cannot be told: %s\n", why);
	else
		printf("The fault is not there.\n");
	fflush(stdout);
	_exit(faults ? EXIT_FAULT : why ? EXIT_UNTOLD : 0);
}

void ktap_skip(const char *format, ...)
{
	char why[256];
	va_list list;

	va_start(list, format);
	vsnprintf(why, sizeof(why), format, list);
	va_end(list);
	end_case(why);
}

static struct event event[2];

long tracepoint_id(const char *group, const char *name)
{
	static const char * const roots[] = {
		"/sys/kernel/tracing", "/sys/kernel/debug/tracing",
	};
	char path[256];
	long id = -1;
	FILE *file;

	for (unsigned int i = 0; i < 2 && id < 0; i++) {
		snprintf(path, sizeof(path), "%s/events/%s/%s/id", roots[i],
			 group, name);
		file = fopen(path, "r");
		if (!file)
			continue;
		if (fscanf(file, "%ld", &id) != 1)
			id = -1;
		fclose(file);
	}
	return id;
}

void attr_for_bits(struct perf_event_attr *attr, __u64 bits)
{
	if (bits & (1ULL << 4))
		attr->read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING | PERF_FORMAT_ID | PERF_FORMAT_LOST;
	if (bits & (1ULL << 11))
		attr->branch_sample_type = PERF_SAMPLE_BRANCH_ANY;
	if (bits & (1ULL << 12))
		attr->sample_regs_user = REGS_MASK;
	if (bits & (1ULL << 13))
		attr->sample_stack_user = 512;
	if (bits & (1ULL << 18))
		attr->sample_regs_intr = REGS_MASK;
	if (bits & (1ULL << 20))
		attr->aux_sample_size = 64;
}

static int open_fd(struct perf_event_attr *attr, pid_t pid, int cpu, int group)
{
	long fd = syscall(SYS_perf_event_open, attr, pid, cpu, group,
			  PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

int attr_open(struct perf_event_attr *attr, pid_t pid, int cpu)
{
	return open_fd(attr, pid, cpu, -1);
}

/* The header is that of the patched kernel: base may not know all of it. */
__u64 attr_formats(void)
{
	static __u64 formats;

	if (formats)
		return formats;
	formats = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING |
		  PERF_FORMAT_ID | PERF_FORMAT_GROUP | PERF_FORMAT_LOST;
	for (__u64 bit = 1; ktap_kernel == KERNEL_BASE && bit <= formats; bit <<= 1) {
		struct perf_event_attr attr = {
			.size = sizeof(attr),
			.type = PERF_TYPE_SOFTWARE,
			.config = PERF_COUNT_SW_DUMMY,
			.read_format = bit,
		};
		int fd = attr_open(&attr, 0, -1);

		if (fd < 0)
			formats &= ~bit;
		else
			close(fd);
	}
	return formats;
}

void attr_init(struct perf_event_attr *attr, enum source source, __u64 bits)
{
	long id;

	memset(attr, 0, sizeof(*attr));
	attr->size = sizeof(*attr);
	attr->type = PERF_TYPE_SOFTWARE;
	attr->sample_period = 1;
	attr->sample_type = bits;
	attr->disabled = 1;
	attr->exclude_hv = 1;
	attr->use_clockid = 1;
	attr->clockid = CLOCK_MONOTONIC;
	switch (source) {
	case SOURCE_FAULTS:
		attr->config = PERF_COUNT_SW_PAGE_FAULTS;
		break;
	case SOURCE_SYSCALLS:
		id = tracepoint_id("raw_syscalls", "sys_enter");
		if (id < 0)
			ktap_skip("no raw_syscalls:sys_enter in /sys/kernel/tracing");
		attr->type = PERF_TYPE_TRACEPOINT;
		attr->config = id;
		break;
	default:
		attr->config = PERF_COUNT_SW_CPU_CLOCK;
		attr->sample_period = CLOCK_PERIOD_NS;
	}
	attr_for_bits(attr, bits);
	attr->read_format &= attr_formats();
}

void attr_defer(struct perf_event_attr *attr, bool callchain, bool output)
{
	attr->defer_callchain = callchain;
	attr->defer_output = output;
}

int event_open_on(struct event *event, const struct perf_event_attr *attr,
		  pid_t pid, int cpu, int group, unsigned int pages)
{
	size_t page_size = sysconf(_SC_PAGESIZE);
	void *map;

	event->attr = *attr;
	event->tail = 0;
	event->fd = open_fd(&event->attr, pid, cpu, group);
	if (event->fd < 0)
		return event->fd;
	event->data_size = pages * page_size;
	map = mmap(NULL, page_size + event->data_size, PROT_READ | PROT_WRITE,
		   MAP_SHARED, event->fd, 0);
	if (map == MAP_FAILED || ioctl(event->fd, PERF_EVENT_IOC_ID, &event->id)) {
		int error = -errno;

		close(event->fd);
		return error;
	}
	event->page = map;
	return 0;
}

int event_open(struct event *event, const struct perf_event_attr *attr)
{
	return event_open_on(event, attr, 0, -1, -1, EVENT_PAGES);
}

void ktap_stop(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	fail(format, list);
	va_end(list);
	end_case("it failed before that");
}

static void open_ask(struct event *event, const struct ask *ask,
		     enum source source)
{
	struct perf_event_attr attr;
	int error;

	attr_init(&attr, source, ask->bits);
	attr.exclude_callchain_kernel = ask->no_kernel_chain;
	attr.exclude_callchain_user = ask->no_user_chain;
	attr_defer(&attr, ask->defer, false);
	error = event_open(event, &attr);
	if (error)
		ktap_stop(RULE_OPEN_ACCEPTED "perf_event_open() for %s: %s", ask->name,
			  strerror(-error));
}

/* Find the build ID among the notes of one PT_NOTE segment. */
static unsigned int find_note(const char *note, size_t size,
			      unsigned char id[BUILD_ID_MAX])
{
	size_t at = 0;

	while (at + sizeof(Elf64_Nhdr) <= size) {
		const Elf64_Nhdr *head = (const void *)(note + at);
		size_t name = at + sizeof(*head);
		size_t desc = name + ALIGN4(head->n_namesz);

		if (desc + head->n_descsz > size)
			break;
		if (head->n_type == NT_GNU_BUILD_ID && head->n_namesz == 4 &&
		    !memcmp(note + name, "GNU", 4) &&
		    head->n_descsz && head->n_descsz <= BUILD_ID_MAX) {
			memcpy(id, note + desc, head->n_descsz);
			return head->n_descsz;
		}
		at = desc + ALIGN4(head->n_descsz);
	}
	return 0;
}

static unsigned int find_build_id(int fd, unsigned char id[BUILD_ID_MAX])
{
	static char notes[NOTES_MAX];
	Elf64_Ehdr elf;
	Elf64_Phdr segment;
	unsigned int size = 0;
	ssize_t got;

	if (pread(fd, &elf, sizeof(elf), 0) != sizeof(elf) ||
	    memcmp(elf.e_ident, ELFMAG, SELFMAG) ||
	    elf.e_ident[EI_CLASS] != ELFCLASS64)
		return 0;
	for (unsigned int i = 0; i < elf.e_phnum && !size; i++) {
		if (pread(fd, &segment, sizeof(segment),
			  elf.e_phoff + i * sizeof(segment)) != sizeof(segment))
			break;
		if (segment.p_type != PT_NOTE)
			continue;
		if (segment.p_filesz > NOTES_MAX)
			segment.p_filesz = NOTES_MAX;
		got = pread(fd, notes, segment.p_filesz, segment.p_offset);
		if (got > 0)
			size = find_note(notes, got, id);
	}
	return size;
}

unsigned int build_id_read(const char *path, unsigned char id[BUILD_ID_MAX])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	unsigned int size;

	if (fd < 0)
		return 0;
	size = find_build_id(fd, id);
	close(fd);
	return size;
}

/* The build ID of a mapping: from the mapped file itself, even if deleted. */
static void read_id(struct maps *maps, struct mapping *map)
{
	char path[96];

	for (struct mapping *other = maps->map; other < map; other++) {
		if (other->inode == map->inode && other->device == map->device) {
			map->id_size = other->id_size;
			memcpy(map->id, other->id, sizeof(map->id));
			return;
		}
	}
	snprintf(path, sizeof(path), "/proc/self/map_files/%llx-%llx",
		 map->start, map->end);
	map->id_size = build_id_read(path, map->id);
	if (!map->id_size)
		map->id_size = build_id_read(map->path, map->id);
}

void maps_read(struct maps *maps)
{
	FILE *file = fopen("/proc/self/maps", "re");
	char line[512], prot[8];
	unsigned int major, minor;
	struct mapping *map;
	int at;

	maps->count = 0;
	maps->map = NULL;
	if (!file)
		ktap_stop(RULE_TEST_SETUP "/proc/self/maps: %m");
	while (fgets(line, sizeof(line), file)) {
		maps->map = realloc(maps->map, (maps->count + 1) * sizeof(*map));
		if (!maps->map)
			ktap_stop(RULE_TEST_SETUP "no memory for the mappings");
		map = &maps->map[maps->count];
		memset(map, 0, sizeof(*map));
		at = 0;
		if (sscanf(line, "%llx-%llx %7s %llx %x:%x %llu %n", &map->start,
			   &map->end, prot, &map->offset, &major, &minor,
			   &map->inode, &at) < 7)
			continue;
		map->device = major << 16 | minor;
		line[strcspn(line, "\n")] = '\0';
		snprintf(map->path, sizeof(map->path), "%s", line + at);
		map->executable = prot[2] == 'x';
		map->file = map->inode && map->path[0] == '/';
		maps->count++;
	}
	fclose(file);
	for (map = maps->map; map < maps->map + maps->count; map++)
		if (map->file)
			read_id(maps, map);
}

void maps_lock_headers(const struct maps *maps)
{
	for (unsigned int i = 0; i < maps->count; i++) {
		const struct mapping *map = &maps->map[i];
		const char *byte = (const char *)map->start;

		if (!map->id_size || map->offset)
			continue;
		mlock((const void *)map->start, map->end - map->start);
		__atomic_load_n(byte, __ATOMIC_RELAXED);
	}
}

void maps_free(struct maps *maps)
{
	free(maps->map);
	maps->map = NULL;
	maps->count = 0;
}

const struct fact facts[FACTS] = {
	{ "monotonic", CLOCK_MONOTONIC },
	{ "thread_cputime", CLOCK_THREAD_CPUTIME_ID },
};

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

void event_enable(struct event *event)
{
	ioctl(event->fd, PERF_EVENT_IOC_ENABLE, 0);
}

/* Call function with no frame above it: what a chain finds ends there. */
static void call_without_frames(void (*function)(void))
{
	/* What lies below the stack pointer may be the compiler's. */
	asm volatile("lea -128(%%rsp), %%rsp\n\t"
		     "push %%rbp\n\t"
		     "mov %%rsp, %%rbp\n\t"
		     "and $-16, %%rsp\n\t"
		     "push %%rbp\n\t"
		     "push %%rbp\n\t"
		     "xor %%ebp, %%ebp\n\t"
		     "call *%[function]\n\t"
		     "pop %%rsp\n\t"
		     "pop %%rbp\n\t"
		     "lea 128(%%rsp), %%rsp\n\t"
		     : [function] "+&b" (function)
		     :
		     : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10",
		       "r11", "r12", "r13", "r14", "r15", "memory", "cc");
}

noinline void work_fault(void)
{
	size_t size = sysconf(_SC_PAGESIZE);
	char *page;

	page = mmap(NULL, size, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		ktap_stop(RULE_TEST_SETUP "mmap: %m");
	__atomic_store_n(page, 1, __ATOMIC_RELAXED);
}

noinline void work_syscall(void)
{
	register __u64 r10 asm("r10") = WORK_ARG(3);
	register __u64 r8 asm("r8") = WORK_ARG(4);
	register __u64 r9 asm("r9") = WORK_ARG(5);
	long result;

	asm volatile("syscall"
		     : "=a" (result)
		     : "0" ((long)SYS_getppid), "D" (WORK_ARG(0)),
		       "S" (WORK_ARG(1)), "d" (WORK_ARG(2)), "r" (r10),
		       "r" (r8), "r" (r9)
		     : "rcx", "r11", "memory");
}

/* For ms, and longer where the machine was busy with others: time alone is no work. */
static noinline void spin(unsigned int ms)
{
	unsigned int rounds = 0;
	struct timespec from, to;

	clock_gettime(CLOCK_MONOTONIC, &from);
	do {
		for (unsigned int i = 0; i < 2000; i++)
			asm volatile("" : : : "memory");
		clock_gettime(CLOCK_MONOTONIC, &to);
	} while (++rounds < CLOCK_WORK_ROUNDS ||
		 (to.tv_sec - from.tv_sec) * 1000 +
		 (to.tv_nsec - from.tv_nsec) / 1000000 < ms);
}

static noinline void spin_some(void)
{
	spin(CLOCK_WORK_MS);
}

unsigned int work(enum source source, unsigned int count)
{
	switch (source) {
	case SOURCE_FAULTS:
		for (unsigned int i = 0; i < count; i++)
			call_without_frames(work_fault);
		return count;
	case SOURCE_SYSCALLS:
		for (unsigned int i = 0; i < count; i++)
			call_without_frames(work_syscall);
		return count;
	default:
		call_without_frames(spin_some);
		return 1;
	}
}

void event_disable(struct event *event)
{
	ioctl(event->fd, PERF_EVENT_IOC_DISABLE, 0);
}

void expect_end(struct expect *expect)
{
	read_facts(expect->after, true);
	expect->time_to = clock_ns(CLOCK_MONOTONIC);
	read_facts(expect->after, false);
	maps_read(&expect->maps);
}

unsigned int ktap_failures(void)
{
	return failures;
}

static void copy_out(const struct event *event, void *to, size_t size)
{
	const char *data = (const char *)event->page + event->page->data_offset;
	size_t at = event->tail % event->data_size;
	size_t first = event->data_size - at;

	if (first > size)
		first = size;
	memcpy(to, data + at, first);
	memcpy((char *)to + first, data, size - first);
}

const struct perf_event_header *event_next(struct event *event)
{
	__u64 head = __atomic_load_n(&event->page->data_head, __ATOMIC_ACQUIRE);
	struct perf_event_header header;

	if (event->tail == head)
		return NULL;
	copy_out(event, &header, sizeof(header));
	if (header.size < sizeof(header) || header.size % 8 ||
	    header.size > head - event->tail || !header.type) {
		ktap_fail(RULE_HEADER_TYPE "no record at %llu of %llu: type %u misc %#x size %u",
			  event->tail, head, header.type, header.misc, header.size);
		copy_out(event, event->record,
			 head - event->tail < 128 ? head - event->tail : 128);
		ktap_hexdump(event->record,
			     head - event->tail < 128 ? head - event->tail : 128);
		event->tail = head;
		return NULL;
	}
	copy_out(event, event->record, header.size);
	event->tail += header.size;
	__atomic_store_n(&event->page->data_tail, event->tail, __ATOMIC_RELEASE);
	return (const struct perf_event_header *)event->record;
}

size_t sample_id_size(const struct perf_event_attr *attr)
{
	size_t size = 0;

	if (!attr->sample_id_all)
		return 0;
	if (attr->sample_type & (1ULL << 1))
		size += 8;
	if (attr->sample_type & (1ULL << 2))
		size += 8;
	if (attr->sample_type & (1ULL << 6))
		size += 8;
	if (attr->sample_type & (1ULL << 9))
		size += 8;
	if (attr->sample_type & (1ULL << 7))
		size += 8;
	if (attr->sample_type & (1ULL << 16))
		size += 8;
	return size;
}

static const void *take(struct cursor *c, __u64 count, size_t size,
			const char *what)
{
	const void *at = c->at;

	if (c->failed)
		return NULL;
	if (size && count > c->left / size) {
		snprintf(c->problem, sizeof(c->problem),
			 RULE_HEADER_SIZE "%s needs %llu times %zu bytes, %zu are left",
			 what, count, size, c->left);
		c->failed = true;
		return NULL;
	}
	c->at += count * size;
	c->left -= count * size;
	return at;
}

static void get(struct cursor *c, void *to, size_t size, const char *what)
{
	const void *from = take(c, 1, size, what);

	if (from)
		memcpy(to, from, size);
}

/* PERF_RECORD_LOST: Records were dropped because the ring was full. */
static void decode_record_lost(struct cursor *c, size_t reserved,
	const struct perf_event_attr *attr,
	const struct perf_event_header *header, struct record *r)
{
	(void)attr;
	(void)header;
	(void)reserved;
	get(c, &r->lost.id, sizeof(r->lost.id), "LOST.id");
	get(c, &r->lost.lost, sizeof(r->lost.lost), "LOST.lost");
}

/* PERF_RECORD_THROTTLE: Sampling was stopped for being too frequent. */
static void decode_record_throttle(struct cursor *c, size_t reserved,
	const struct perf_event_attr *attr,
	const struct perf_event_header *header, struct record *r)
{
	(void)attr;
	(void)header;
	(void)reserved;
	get(c, &r->throttle.time, sizeof(r->throttle.time), "THROTTLE.time");
	get(c, &r->throttle.id, sizeof(r->throttle.id), "THROTTLE.id");
	get(c, &r->throttle.stream_id, sizeof(r->throttle.stream_id), "THROTTLE.stream_id");
}

/* PERF_RECORD_UNTHROTTLE: Sampling goes on. */
static void decode_record_unthrottle(struct cursor *c, size_t reserved,
	const struct perf_event_attr *attr,
	const struct perf_event_header *header, struct record *r)
{
	(void)attr;
	(void)header;
	(void)reserved;
	get(c, &r->unthrottle.time, sizeof(r->unthrottle.time), "UNTHROTTLE.time");
	get(c, &r->unthrottle.id, sizeof(r->unthrottle.id), "UNTHROTTLE.id");
	get(c, &r->unthrottle.stream_id, sizeof(r->unthrottle.stream_id), "UNTHROTTLE.stream_id");
}

/* PERF_RECORD_CALLCHAIN_DEFERRED: The user callchain of the samples that carry this cookie. */
static void decode_record_callchain_deferred(struct cursor *c, size_t reserved,
	const struct perf_event_attr *attr,
	const struct perf_event_header *header, struct record *r)
{
	(void)attr;
	(void)header;
	(void)reserved;
	get(c, &r->callchain_deferred.cookie, sizeof(r->callchain_deferred.cookie), "CALLCHAIN_DEFERRED.cookie");
	get(c, &r->callchain_deferred.nr, sizeof(r->callchain_deferred.nr), "CALLCHAIN_DEFERRED.nr");
	if (!(header->misc & PERF_RECORD_MISC_MMAP_BUILD_ID))
		r->callchain_deferred.ips = take(c, r->callchain_deferred.nr, 8, "CALLCHAIN_DEFERRED.ips");
	if (header->misc & PERF_RECORD_MISC_MMAP_BUILD_ID)
		r->callchain_deferred.entries = take(c, r->callchain_deferred.nr, 32, "CALLCHAIN_DEFERRED.entries");
}

static void decode_sample_id(struct cursor *c,
			     const struct perf_event_attr *attr,
			     struct sample_id *id)
{
	if (attr->sample_type & (1ULL << 1))
		get(c, &id->tid.pid, sizeof(id->tid.pid), "sample_id.pid");
	if (attr->sample_type & (1ULL << 1))
		get(c, &id->tid.tid, sizeof(id->tid.tid), "sample_id.tid");
	if (attr->sample_type & (1ULL << 2))
		get(c, &id->time.time, sizeof(id->time.time), "sample_id.time");
	if (attr->sample_type & (1ULL << 6))
		get(c, &id->id.id, sizeof(id->id.id), "sample_id.id");
	if (attr->sample_type & (1ULL << 9))
		get(c, &id->stream_id.stream_id, sizeof(id->stream_id.stream_id), "sample_id.stream_id");
	if (attr->sample_type & (1ULL << 7))
		get(c, &id->cpu.cpu, sizeof(id->cpu.cpu), "sample_id.cpu");
	if (attr->sample_type & (1ULL << 7))
		get(c, &id->cpu.res, sizeof(id->cpu.res), "sample_id.res");
	if (attr->sample_type & (1ULL << 16))
		get(c, &id->identifier.id, sizeof(id->identifier.id), "sample_id.id");
}

/* The bits that a record of this type can have in misc. */
static __u16 misc_bits(__u32 type)
{
	switch (type) {
	case 2:
		return PERF_RECORD_MISC_CPUMODE_MASK;
	case 5:
		return PERF_RECORD_MISC_CPUMODE_MASK;
	case 6:
		return PERF_RECORD_MISC_CPUMODE_MASK;
	case 22:
		return PERF_RECORD_MISC_CPUMODE_MASK | PERF_RECORD_MISC_MMAP_BUILD_ID;
	default:
		return PERF_RECORD_MISC_CPUMODE_MASK;
	}
}

const char *record_name(__u32 type)
{
	switch (type) {
	case PERF_RECORD_SAMPLE:
		return "SAMPLE";
	case 2:
		return "LOST";
	case 5:
		return "THROTTLE";
	case 6:
		return "UNTHROTTLE";
	case 22:
		return "CALLCHAIN_DEFERRED";
	default:
		return "?";
	}
}

const char *decode_record(const struct perf_event_attr *attr,
			  const struct perf_event_header *header,
			  struct record *record)
{
	size_t reserved = sample_id_size(attr);
	static struct cursor c;

	memset(record, 0, sizeof(*record));
	record->header = header;
	c.at = (const char *)(header + 1);
	c.left = header->size - sizeof(*header);
	c.failed = false;
	switch (header->type) {
	case 2:
		decode_record_lost(&c, reserved, attr, header, record);
		break;
	case 5:
		decode_record_throttle(&c, reserved, attr, header, record);
		break;
	case 6:
		decode_record_unthrottle(&c, reserved, attr, header, record);
		break;
	case 22:
		decode_record_callchain_deferred(&c, reserved, attr, header, record);
		break;
	default:
		return RULE_HEADER_TYPE "no known record type";
	}
	record->has_id = reserved;
	if (reserved)
		decode_sample_id(&c, attr, &record->id);
	if (c.failed)
		return c.problem;
	if (header->misc & ~misc_bits(header->type)) {
		snprintf(c.problem, sizeof(c.problem),
			 RULE_HEADER_MISC "misc %#x; expected no bits but %#x, which a %s can have",
			 header->misc, misc_bits(header->type), record_name(header->type));
		return c.problem;
	}
	if (!c.left)
		return NULL;
	snprintf(c.problem, sizeof(c.problem),
		 RULE_HEADER_SIZE "header.size %u; expected %zu, to which the record decodes",
		 header->size, header->size - c.left);
	return c.problem;
}

static void show_record_lost(const struct perf_event_header *header,
					  const struct record *r)
{
	(void)header;
	ktap_diag("    id %#llx", (__u64)r->lost.id);
	ktap_diag("    lost %#llx", (__u64)r->lost.lost);
}

static void show_record_throttle(const struct perf_event_header *header,
					  const struct record *r)
{
	(void)header;
	ktap_diag("    time %#llx", (__u64)r->throttle.time);
	ktap_diag("    id %#llx", (__u64)r->throttle.id);
	ktap_diag("    stream_id %#llx", (__u64)r->throttle.stream_id);
}

static void show_record_unthrottle(const struct perf_event_header *header,
					  const struct record *r)
{
	(void)header;
	ktap_diag("    time %#llx", (__u64)r->unthrottle.time);
	ktap_diag("    id %#llx", (__u64)r->unthrottle.id);
	ktap_diag("    stream_id %#llx", (__u64)r->unthrottle.stream_id);
}

static void show_record_callchain_deferred(const struct perf_event_header *header,
					  const struct record *r)
{
	(void)header;
	ktap_diag("    cookie %#llx", (__u64)r->callchain_deferred.cookie);
	ktap_diag("    nr %#llx", (__u64)r->callchain_deferred.nr);
	if (r->callchain_deferred.ips)
		show_words("ips", r->callchain_deferred.ips, r->callchain_deferred.nr);
	if (r->callchain_deferred.entries)
		show_build_id_offset("entries", r->callchain_deferred.entries, r->callchain_deferred.nr);
}

void print_record(const struct record *record)
{
	const struct perf_event_header *header = record->header;

	ktap_diag("%s: misc %#x size %u", record_name(header->type), header->misc,
		  header->size);
	switch (header->type) {
	case 2:
		show_record_lost(header, record);
		break;
	case 5:
		show_record_throttle(header, record);
		break;
	case 6:
		show_record_unthrottle(header, record);
		break;
	case 22:
		show_record_callchain_deferred(header, record);
		break;
	}
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

/* PERF_SAMPLE_IDENTIFIER: The event id at a place that does not depend on the other bits. */
static void decode_identifier(struct cursor *c,
	const struct perf_event_attr *attr,
	const struct perf_event_header *header, struct sample *s)
{
	const size_t reserved = 0;

	(void)attr;
	(void)header;
	(void)reserved;
	get(c, &s->identifier.id, sizeof(s->identifier.id), "IDENTIFIER.id");
	if (!c->failed)
		s->decoded |= (1ULL << 16);
}

/* PERF_SAMPLE_IP: The instruction pointer; user or kernel as header.misc says. */
static void decode_ip(struct cursor *c,
	const struct perf_event_attr *attr,
	const struct perf_event_header *header, struct sample *s)
{
	const size_t reserved = 0;

	(void)attr;
	(void)header;
	(void)reserved;
	get(c, &s->ip.ip, sizeof(s->ip.ip), "IP.ip");
	if (!c->failed)
		s->decoded |= (1ULL << 0);
}

/* PERF_SAMPLE_TID: Process and thread, in the pid namespace of the event. */
static void decode_tid(struct cursor *c,
	const struct perf_event_attr *attr,
	const struct perf_event_header *header, struct sample *s)
{
	const size_t reserved = 0;

	(void)attr;
	(void)header;
	(void)reserved;
	get(c, &s->tid.pid, sizeof(s->tid.pid), "TID.pid");
	get(c, &s->tid.tid, sizeof(s->tid.tid), "TID.tid");
	if (!c->failed)
		s->decoded |= (1ULL << 1);
}

/* PERF_SAMPLE_TIME: The time in ns of attr.clockid, or of the perf clock. */
static void decode_time(struct cursor *c,
	const struct perf_event_attr *attr,
	const struct perf_event_header *header, struct sample *s)
{
	const size_t reserved = 0;

	(void)attr;
	(void)header;
	(void)reserved;
	get(c, &s->time.time, sizeof(s->time.time), "TIME.time");
	if (!c->failed)
		s->decoded |= (1ULL << 2);
}

/* PERF_SAMPLE_ADDR: The address that the event is about: of the fault, of the watched data. */
static void decode_addr(struct cursor *c,
	const struct perf_event_attr *attr,
	const struct perf_event_header *header, struct sample *s)
{
	const size_t reserved = 0;

	(void)attr;
	(void)header;
	(void)reserved;
	get(c, &s->addr.addr, sizeof(s->addr.addr), "ADDR.addr");
	if (!c->failed)
		s->decoded |= (1ULL << 3);
}

/* PERF_SAMPLE_ID: The id of the event, which PERF_EVENT_IOC_ID gives too. */
static void decode_id(struct cursor *c,
	const struct perf_event_attr *attr,
	const struct perf_event_header *header, struct sample *s)
{
	const size_t reserved = 0;

	(void)attr;
	(void)header;
	(void)reserved;
	get(c, &s->id.id, sizeof(s->id.id), "ID.id");
	if (!c->failed)
		s->decoded |= (1ULL << 6);
}

/* PERF_SAMPLE_STREAM_ID: The id of the event that wrote the record: the child, for an inherited one. */
static void decode_stream_id(struct cursor *c,
	const struct perf_event_attr *attr,
	const struct perf_event_header *header, struct sample *s)
{
	const size_t reserved = 0;

	(void)attr;
	(void)header;
	(void)reserved;
	get(c, &s->stream_id.stream_id, sizeof(s->stream_id.stream_id), "STREAM_ID.stream_id");
	if (!c->failed)
		s->decoded |= (1ULL << 9);
}

/* PERF_SAMPLE_CPU: The CPU that wrote the record. */
static void decode_cpu(struct cursor *c,
	const struct perf_event_attr *attr,
	const struct perf_event_header *header, struct sample *s)
{
	const size_t reserved = 0;

	(void)attr;
	(void)header;
	(void)reserved;
	get(c, &s->cpu.cpu, sizeof(s->cpu.cpu), "CPU.cpu");
	get(c, &s->cpu.res, sizeof(s->cpu.res), "CPU.res");
	if (!c->failed)
		s->decoded |= (1ULL << 7);
}

/* PERF_SAMPLE_PERIOD: The sampling period in effect. */
static void decode_period(struct cursor *c,
	const struct perf_event_attr *attr,
	const struct perf_event_header *header, struct sample *s)
{
	const size_t reserved = 0;

	(void)attr;
	(void)header;
	(void)reserved;
	get(c, &s->period.period, sizeof(s->period.period), "PERIOD.period");
	if (!c->failed)
		s->decoded |= (1ULL << 8);
}

/* PERF_SAMPLE_READ: struct read_format: the count, times, ids and lost samples that attr.read_format asks for. */
static void decode_read(struct cursor *c,
	const struct perf_event_attr *attr,
	const struct perf_event_header *header, struct sample *s)
{
	const size_t reserved = 0;

	(void)attr;
	(void)header;
	(void)reserved;
	if (attr->read_format & PERF_FORMAT_GROUP)
		get(c, &s->read.nr, sizeof(s->read.nr), "READ.nr");
	if (!(attr->read_format & PERF_FORMAT_GROUP))
		get(c, &s->read.value, sizeof(s->read.value), "READ.value");
	if (attr->read_format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		get(c, &s->read.time_enabled, sizeof(s->read.time_enabled), "READ.time_enabled");
	if (attr->read_format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		get(c, &s->read.time_running, sizeof(s->read.time_running), "READ.time_running");
	if (!(attr->read_format & PERF_FORMAT_GROUP) && (attr->read_format & PERF_FORMAT_ID))
		get(c, &s->read.id, sizeof(s->read.id), "READ.id");
	if (!(attr->read_format & PERF_FORMAT_GROUP) && (attr->read_format & PERF_FORMAT_LOST))
		get(c, &s->read.lost, sizeof(s->read.lost), "READ.lost");
	if (attr->read_format & PERF_FORMAT_GROUP)
		s->read.values = take(c, s->read.nr * (1 + !!(attr->read_format & PERF_FORMAT_ID) + !!(attr->read_format & PERF_FORMAT_LOST)), 8, "READ.values");
	if (!c->failed)
		s->decoded |= (1ULL << 4);
}

/* PERF_SAMPLE_CALLCHAIN: Kernel and user return addresses, each part behind its context marker. */
static void decode_callchain(struct cursor *c,
	const struct perf_event_attr *attr,
	const struct perf_event_header *header, struct sample *s)
{
	const size_t reserved = 0;

	(void)attr;
	(void)header;
	(void)reserved;
	get(c, &s->callchain.nr, sizeof(s->callchain.nr), "CALLCHAIN.nr");
	s->callchain.ips = take(c, s->callchain.nr, 8, "CALLCHAIN.ips");
	if (!c->failed)
		s->decoded |= (1ULL << 5);
}

/* PERF_SAMPLE_RAW: Opaque data of the event; size counts the padding that ends it on 8 bytes. */
static void decode_raw(struct cursor *c,
	const struct perf_event_attr *attr,
	const struct perf_event_header *header, struct sample *s)
{
	const size_t reserved = 0;

	(void)attr;
	(void)header;
	(void)reserved;
	get(c, &s->raw.size, sizeof(s->raw.size), "RAW.size");
	s->raw.data = take(c, s->raw.size, 1, "RAW.data");
	if (!c->failed)
		s->decoded |= (1ULL << 10);
}

/* PERF_SAMPLE_BRANCH_STACK: The last branches that the hardware took. */
static void decode_branch_stack(struct cursor *c,
	const struct perf_event_attr *attr,
	const struct perf_event_header *header, struct sample *s)
{
	const size_t reserved = 0;

	(void)attr;
	(void)header;
	(void)reserved;
	get(c, &s->branch_stack.nr, sizeof(s->branch_stack.nr), "BRANCH_STACK.nr");
	if (s->branch_stack.nr && (attr->branch_sample_type & PERF_SAMPLE_BRANCH_HW_INDEX))
		get(c, &s->branch_stack.hw_idx, sizeof(s->branch_stack.hw_idx), "BRANCH_STACK.hw_idx");
	s->branch_stack.entries = take(c, s->branch_stack.nr, 24, "BRANCH_STACK.entries");
	if (attr->branch_sample_type & PERF_SAMPLE_BRANCH_COUNTERS)
		s->branch_stack.counters = take(c, s->branch_stack.nr, 8, "BRANCH_STACK.counters");
	if (!c->failed)
		s->decoded |= (1ULL << 11);
}

static __u64 hweight64(__u64 word)
{
	return __builtin_popcountll(word);
}

/* PERF_SAMPLE_REGS_USER: The registers of user space when it entered the kernel. */
static void decode_regs_user(struct cursor *c,
	const struct perf_event_attr *attr,
	const struct perf_event_header *header, struct sample *s)
{
	const size_t reserved = 0;

	(void)attr;
	(void)header;
	(void)reserved;
	get(c, &s->regs_user.abi, sizeof(s->regs_user.abi), "REGS_USER.abi");
	if (s->regs_user.abi)
		s->regs_user.regs = take(c, hweight64(attr->sample_regs_user), 8, "REGS_USER.regs");
	if (!c->failed)
		s->decoded |= (1ULL << 12);
}

/* PERF_SAMPLE_STACK_USER: A copy of the top of the user stack; dyn_size of its size bytes are real. */
static void decode_stack_user(struct cursor *c,
	const struct perf_event_attr *attr,
	const struct perf_event_header *header, struct sample *s)
{
	const size_t reserved = 0;

	(void)attr;
	(void)header;
	(void)reserved;
	get(c, &s->stack_user.size, sizeof(s->stack_user.size), "STACK_USER.size");
	s->stack_user.data = take(c, s->stack_user.size, 1, "STACK_USER.data");
	if (s->stack_user.size)
		get(c, &s->stack_user.dyn_size, sizeof(s->stack_user.dyn_size), "STACK_USER.dyn_size");
	if (!c->failed)
		s->decoded |= (1ULL << 13);
}

/* PERF_SAMPLE_WEIGHT: The cost of the event as the hardware saw it; 0 for software events. */
static void decode_weight(struct cursor *c,
	const struct perf_event_attr *attr,
	const struct perf_event_header *header, struct sample *s)
{
	const size_t reserved = 0;

	(void)attr;
	(void)header;
	(void)reserved;
	get(c, &s->weight.full, sizeof(s->weight.full), "WEIGHT.full");
	if (!c->failed)
		s->decoded |= (1ULL << 14);
}

/* PERF_SAMPLE_WEIGHT_STRUCT: The same 8 bytes as WEIGHT, in three parts; the two bits exclude each other. */
static void decode_weight_struct(struct cursor *c,
	const struct perf_event_attr *attr,
	const struct perf_event_header *header, struct sample *s)
{
	const size_t reserved = 0;

	(void)attr;
	(void)header;
	(void)reserved;
	get(c, &s->weight_struct.var1_dw, sizeof(s->weight_struct.var1_dw), "WEIGHT_STRUCT.var1_dw");
	get(c, &s->weight_struct.var2_w, sizeof(s->weight_struct.var2_w), "WEIGHT_STRUCT.var2_w");
	get(c, &s->weight_struct.var3_w, sizeof(s->weight_struct.var3_w), "WEIGHT_STRUCT.var3_w");
	if (!c->failed)
		s->decoded |= (1ULL << 24);
}

/* PERF_SAMPLE_DATA_SRC: Where the data came from; PERF_MEM_NA for software events. */
static void decode_data_src(struct cursor *c,
	const struct perf_event_attr *attr,
	const struct perf_event_header *header, struct sample *s)
{
	const size_t reserved = 0;

	(void)attr;
	(void)header;
	(void)reserved;
	get(c, &s->data_src.data_src, sizeof(s->data_src.data_src), "DATA_SRC.data_src");
	if (!c->failed)
		s->decoded |= (1ULL << 15);
}

/* PERF_SAMPLE_TRANSACTION: Why a transaction aborted; 0 for software events. */
static void decode_transaction(struct cursor *c,
	const struct perf_event_attr *attr,
	const struct perf_event_header *header, struct sample *s)
{
	const size_t reserved = 0;

	(void)attr;
	(void)header;
	(void)reserved;
	get(c, &s->transaction.transaction, sizeof(s->transaction.transaction), "TRANSACTION.transaction");
	if (!c->failed)
		s->decoded |= (1ULL << 17);
}

/* PERF_SAMPLE_REGS_INTR: The registers where the event hit, user or kernel. */
static void decode_regs_intr(struct cursor *c,
	const struct perf_event_attr *attr,
	const struct perf_event_header *header, struct sample *s)
{
	const size_t reserved = 0;

	(void)attr;
	(void)header;
	(void)reserved;
	get(c, &s->regs_intr.abi, sizeof(s->regs_intr.abi), "REGS_INTR.abi");
	if (s->regs_intr.abi)
		s->regs_intr.regs = take(c, hweight64(attr->sample_regs_intr), 8, "REGS_INTR.regs");
	if (!c->failed)
		s->decoded |= (1ULL << 18);
}

/* PERF_SAMPLE_PHYS_ADDR: The physical address of ADDR, 0 when it has none. */
static void decode_phys_addr(struct cursor *c,
	const struct perf_event_attr *attr,
	const struct perf_event_header *header, struct sample *s)
{
	const size_t reserved = 0;

	(void)attr;
	(void)header;
	(void)reserved;
	get(c, &s->phys_addr.phys_addr, sizeof(s->phys_addr.phys_addr), "PHYS_ADDR.phys_addr");
	if (!c->failed)
		s->decoded |= (1ULL << 19);
}

/* PERF_SAMPLE_CGROUP: The id of the perf_event cgroup of the task. */
static void decode_cgroup(struct cursor *c,
	const struct perf_event_attr *attr,
	const struct perf_event_header *header, struct sample *s)
{
	const size_t reserved = 0;

	(void)attr;
	(void)header;
	(void)reserved;
	get(c, &s->cgroup.cgroup, sizeof(s->cgroup.cgroup), "CGROUP.cgroup");
	if (!c->failed)
		s->decoded |= (1ULL << 21);
}

/* PERF_SAMPLE_DATA_PAGE_SIZE: The size of the page that ADDR lies in, 0 when it is not mapped. */
static void decode_data_page_size(struct cursor *c,
	const struct perf_event_attr *attr,
	const struct perf_event_header *header, struct sample *s)
{
	const size_t reserved = 0;

	(void)attr;
	(void)header;
	(void)reserved;
	get(c, &s->data_page_size.data_page_size, sizeof(s->data_page_size.data_page_size), "DATA_PAGE_SIZE.data_page_size");
	if (!c->failed)
		s->decoded |= (1ULL << 22);
}

/* PERF_SAMPLE_CODE_PAGE_SIZE: The size of the page that IP lies in, 0 when it is not mapped. */
static void decode_code_page_size(struct cursor *c,
	const struct perf_event_attr *attr,
	const struct perf_event_header *header, struct sample *s)
{
	const size_t reserved = 0;

	(void)attr;
	(void)header;
	(void)reserved;
	get(c, &s->code_page_size.code_page_size, sizeof(s->code_page_size.code_page_size), "CODE_PAGE_SIZE.code_page_size");
	if (!c->failed)
		s->decoded |= (1ULL << 23);
}

/* PERF_SAMPLE_AUX: A snapshot of the AUX area; software events have none. */
static void decode_aux(struct cursor *c,
	const struct perf_event_attr *attr,
	const struct perf_event_header *header, struct sample *s)
{
	const size_t reserved = 0;

	(void)attr;
	(void)header;
	(void)reserved;
	get(c, &s->aux.size, sizeof(s->aux.size), "AUX.size");
	s->aux.data = take(c, s->aux.size, 1, "AUX.data");
	if (!c->failed)
		s->decoded |= (1ULL << 20);
}

/* PERF_SAMPLE_BUILD_ID_OFFSET: Build ID of the file that IP lies in, and the offset in that file; size 0 with the address where that is not known. */
static void decode_build_id_offset(struct cursor *c,
	const struct perf_event_attr *attr,
	const struct perf_event_header *header, struct sample *s)
{
	const size_t reserved = 0;

	(void)attr;
	(void)header;
	(void)reserved;
	get(c, &s->build_id_offset.bid, sizeof(s->build_id_offset.bid), "BUILD_ID_OFFSET.bid");
	if (!c->failed)
		s->decoded |= (1ULL << 25);
}

/* PERF_SAMPLE_CALLCHAIN_BUILD_ID_OFFSET: The callchain, every user entry as build ID and file offset where that is known. */
static void decode_callchain_build_id_offset(struct cursor *c,
	const struct perf_event_attr *attr,
	const struct perf_event_header *header, struct sample *s)
{
	const size_t reserved = 0;

	(void)attr;
	(void)header;
	(void)reserved;
	get(c, &s->callchain_build_id_offset.nr, sizeof(s->callchain_build_id_offset.nr), "CALLCHAIN_BUILD_ID_OFFSET.nr");
	s->callchain_build_id_offset.entries = take(c, s->callchain_build_id_offset.nr, 32, "CALLCHAIN_BUILD_ID_OFFSET.entries");
	if (!c->failed)
		s->decoded |= (1ULL << 26);
}

const char *decode_sample(const struct perf_event_attr *attr,
			  const struct perf_event_header *header,
			  struct sample *sample)
{
	static struct cursor c;
	static void (* const decode[SAMPLE_TYPES])(struct cursor *c,
		const struct perf_event_attr *attr,
		const struct perf_event_header *header, struct sample *s) = {
		decode_identifier,
		decode_ip,
		decode_tid,
		decode_time,
		decode_addr,
		decode_id,
		decode_stream_id,
		decode_cpu,
		decode_period,
		decode_read,
		decode_callchain,
		decode_raw,
		decode_branch_stack,
		decode_regs_user,
		decode_stack_user,
		decode_weight,
		decode_weight_struct,
		decode_data_src,
		decode_transaction,
		decode_regs_intr,
		decode_phys_addr,
		decode_cgroup,
		decode_data_page_size,
		decode_code_page_size,
		decode_aux,
		decode_build_id_offset,
		decode_callchain_build_id_offset,
	};

	memset(sample, 0, sizeof(*sample));
	sample->header = header;
	sample->bits = attr->sample_type;
	c.at = (const char *)(header + 1);
	c.left = header->size - sizeof(*header);
	c.failed = false;
	for (unsigned int i = 0; i < SAMPLE_TYPES; i++)
		if (attr->sample_type & sample_types[i].bit)
			decode[i](&c, attr, header, sample);
	if (c.failed)
		return c.problem;
	if (!c.left)
		return NULL;
	snprintf(c.problem, sizeof(c.problem),
		 RULE_HEADER_SIZE "header.size %u; expected %zu, to which sample_type %#llx decodes",
		 header->size, header->size - c.left, sample->bits);
	return c.problem;
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

void event_check_end(const struct event *event)
{
	__u64 head = __atomic_load_n(&event->page->data_head, __ATOMIC_ACQUIRE);
	const char *end = (const char *)event->page + event->page->data_offset + head;
	size_t written = 0;

	for (size_t i = 0; i < END_SIZE && head + i < event->data_size; i++)
		if (end[i])
			written = i + 1;
	if (!written)
		return;
	/* Of an event that runs on another CPU, a record may be on its way. */
	usleep(END_PATIENCE_US);
	if (head == __atomic_load_n(&event->page->data_head, __ATOMIC_ACQUIRE) &&
	    ktap_fail(RULE_RING_END
		      "%zu bytes are written behind the end of the last record; expected none",
		      written))
		ktap_hexdump(end, written);
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

void event_close(struct event *event)
{
	munmap(event->page, sysconf(_SC_PAGESIZE) + event->data_size);
	close(event->fd);
}

/* Samples of two events, the first of which was opened first. */
static void pair(const struct ask *first, const struct ask *second,
		 enum source source)
{
	const struct ask *ask[2] = { first, second };
	struct expect expect;
	unsigned int least;

	for (unsigned int i = 0; i < 2; i++)
		open_ask(&event[i], ask[i], source);
	expect_begin(&expect, &event[0], source);
	for (unsigned int i = 0; i < 2; i++)
		event_enable(&event[i]);
	least = work(source, SAMPLES);
	for (unsigned int i = 0; i < 2; i++)
		event_disable(&event[i]);
	expect_end(&expect);
	expect.must_resolve = true;
	for (unsigned int i = 0; i < 2; i++) {
		unsigned int failed = ktap_failures();

		expect.event = &event[i];
		expect.samples = 0;
		expect.last_value = 0;
		check_ring(&expect, NULL);
		if (expect.samples < least && ktap_failures() == failed)
			ktap_fail(RULE_SAMPLES_COUNT
				  "%u samples; expected %u", expect.samples, least);
		if (ktap_failures() > failed)
			ktap_diag("%s opened first, %s second: in the one for %s",
				  first->name, second->name, ask[i]->name);
		event_close(&event[i]);
	}
	maps_free(&expect.maps);
}

/* One kind of event with each other kind, in both orders. */
static void shared(const void *arg)
{
	const struct shared_case *test = arg;

	if (refused(test->ask))
		ktap_skip("the base kernel refuses the bit");
	for (unsigned int i = 0; i < ARRAY_SIZE(asks); i++) {
		if (refused(&asks[i]))
			continue;
		pair(test->ask, &asks[i], test->source);
		if (&asks[i] != test->ask)
			pair(&asks[i], test->ask, test->source);
	}
}

const char * const source_names[SOURCE_COUNT] = {
	[SOURCE_FAULTS] = "page_faults",
	[SOURCE_SYSCALLS] = "sys_enter",
	[SOURCE_CLOCK] = "cpu_clock",
};

/* Skip the case when the kernel that it runs on does not have these types. */
static inline void need_bits(__u64 bits)
{
	if (bits & ~SCOPE_ALL_BITS)
		ktap_skip("this tree has no such sample type");
	if ((bits & SCOPE_NEW_BITS) && ktap_kernel == KERNEL_BASE)
		ktap_skip("the base kernel refuses the bit");
}

/*
 * Does an event that asks for IP alone get records of a wrong size next to ask? What
 * another type gets in its place says nothing about that type then.
 */
static bool spoils(const struct ask *ask, bool opened_first, enum source source)
{
	static const struct ask ip = { "ip", PERF_SAMPLE_IP };
	struct event *spoiled = &event[opened_first];
	const struct perf_event_header *header;
	struct sample sample;
	bool wrong = false;

	open_ask(&event[0], opened_first ? ask : &ip, source);
	open_ask(&event[1], opened_first ? &ip : ask, source);
	for (unsigned int i = 0; i < 2; i++)
		event_enable(&event[i]);
	work(source, 1);
	for (unsigned int i = 0; i < 2; i++)
		event_disable(&event[i]);
	while (!wrong && (header = event_next(spoiled)))
		wrong = decode_sample(&spoiled->attr, header, &sample);
	for (unsigned int i = 0; i < 2; i++)
		event_close(&event[i]);
	return wrong;
}

static void try_next_to(const struct ask *ask, bool opened_first, const struct shared_case *test)
{
	if (spoils(ask, opened_first, test->source))
		ktap_diag("not tried next to %s, which was opened %s: IP is of a wrong size there",
			  ask->name, opened_first ? "first" : "second");
	else if (opened_first)
		pair(ask, test->ask, test->source);
	else
		pair(test->ask, ask, test->source);
}

/* A type that stands in no ask, with each of them in both orders. */
static void other(const void *arg)
{
	const struct shared_case *test = arg;

	need_bits(test->ask->bits);
	for (unsigned int i = 0; i < ARRAY_SIZE(asks); i++) {
		if (refused(&asks[i]))
			continue;
		try_next_to(&asks[i], true, test);
		try_next_to(&asks[i], false, test);
	}
}

static void late(int number)
{
	(void)number;
	ktap_stop(RULE_CASE_ENDS "not done after %d s", CASE_TIMEOUT_S);
}

int ktap_main(int argc, char **argv)
{
	(void)argv;
	if (argc > 1) {
		printf("%s: %s\n", CASE, CASE_RULE);
		return 0;
	}
	if (!case_run)
		end_case("this file has no such case");
	signal(SIGALRM, late);
	alarm(CASE_TIMEOUT_S);
	case_run(case_arg);
	end_case(failures && !faults ? "another rule is broken" : NULL);
}

int main(int argc, char **argv)
{
	static struct shared_case cases[2][ARRAY_SIZE(asks) + SCOPE_TYPES];
	static struct ask others[SCOPE_TYPES];
	unsigned int other_count = find_others(others);

	for (unsigned int source = 0; source < 2; source++) {
		for (unsigned int i = 0; i < ARRAY_SIZE(asks); i++) {
			struct shared_case *test = &cases[source][i];

			if (!(asks[i].bits & SCOPE_BITS))
				continue;
			test->ask = &asks[i];
			test->source = source;
			ktap_add(shared, test, "%s.%s", source_names[source],
				 asks[i].name);
		}
		for (unsigned int i = 0; i < other_count; i++) {
			struct shared_case *test = &cases[source][ARRAY_SIZE(asks) + i];

			test->ask = &others[i];
			test->source = source;
			ktap_add(other, test, "%s.%s", source_names[source],
				 others[i].name);
		}
	}
	return ktap_main(argc, argv);
}
