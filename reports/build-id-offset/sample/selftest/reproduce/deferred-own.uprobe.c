// SPDX-License-Identifier: GPL-2.0
/*
 * deferred/own.uprobe: CALLCHAIN_DEFERRED: the answer is for 0xffffffffffe080
 * Expected: 0x401c6d, the address of the sample that has the cookie
 *
 * The rule, deferred.address: The entry that answers for an address of a sample is that
 *   address.
 * - commit message of "perf/core: Implement BUILD_ID_OFFSET sample type": "When
 *   attr.defer_callchain is set, user-space IPs and callchains request a deferred unwind via
 *   unwind_deferred_request() and emit a PERF_CONTEXT_USER_DEFERRED marker and cookie in the
 *   sample."
 * - the same value elsewhere: the address in the sample that has the cookie
 *
 * kernel/events/core.c:10630: bpf_bids[i].ip = trace->entries[i];
 *
 * Seen on the patched kernel, 7.2.9+, with CONFIG_PERF_EVENTS, CONFIG_FTRACE_SYSCALLS,
 *   CONFIG_BPF_SYSCALL, CONFIG_BPF_EVENTS, CONFIG_PROC_FS, CONFIG_FAULT_INJECTION,
 *   CONFIG_FAILSLAB, CONFIG_DEBUG_FS, CONFIG_FAULT_INJECTION_DEBUG_FS.
 * Compile it, and run it as root on that kernel, for example in a guest:
 *
 *   gcc -static -O2 -o r deferred-own.uprobe.c
 *   vng -r arch/x86/boot/bzImage --user root -- ./r
 *
 * Exit status: 1 the fault is there, 0 it is not, 4 it cannot be told (a bit is refused,
 *   something is missing).
 * Made by reviewbot from its tests: what the case does not need is left out; main() stands
 *   at the end.
 */
#define _GNU_SOURCE
#pragma GCC optimize("no-omit-frame-pointer", "no-optimize-sibling-calls")

#define CASE		"own.uprobe"
#define CASE_RULE	"deferred.address"

#include <asm/byteorder.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/hw_breakpoint.h>
#include <linux/ioctl.h>
#include <linux/types.h>
#include <pthread.h>
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
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Every bit that the header defines. */
#define SCOPE_ALL_BITS		0x7ffffffULL
#define __attr(...)		__attribute__((__VA_ARGS__))
#ifndef __noreturn
#define __noreturn		__attr(noreturn)
#endif
#define EXIT_FAULT	1
#define EXIT_UNTOLD	4
/* The bits that base does not have. */
#define SCOPE_NEW_BITS		0x6000000ULL
#define IP_BIT		PERF_SAMPLE_BUILD_ID_OFFSET
#define CLOCK_PERIOD_NS	200000
#define PERF_FLAG_FD_CLOEXEC			(1UL << 3)
#define BUILD_ID_MAX	20	/* what a record has room for */
/* A rule's name stands between these in the text of a failure. */
#define RULE_BEGIN	1
#define RULE_END	2
#define EXPECTED	"; expected "
/* The test has what it needs: memory, files, the right to open an event */
#define RULE_TEST_SETUP "\001test.setup\002"
#define NOTES_MAX	4096
#define ALIGN4(n)	(((n) + 3UL) & ~3UL)
#define noinline		__attr(noinline)
#define RECORD_MAX	65536
#ifndef __packed
#define __packed		__attr(packed)
#endif
#define FACTS		2
/* Proofs that a value never falls. */
#define RISING		1
#define PERF_EVENT_IOC_ID			_IOR ('$', 7, __u64 *)
#define EVENT_PAGES	128		/* data pages of a ring, unless said */
#define FACT_UNKNOWN	(~0ULL)
#define PERF_EVENT_IOC_ENABLE			_IO  ('$', 0)
#define CALLS		8
#define PERF_EVENT_IOC_DISABLE			_IO  ('$', 1)
#define PROMISES_MAX	256
#define CHAIN_BIT	PERF_SAMPLE_CALLCHAIN_BUILD_ID_OFFSET
/* A ring holds nothing but whole records of types that the header defines */
#define RULE_HEADER_TYPE "\001header.type\002"
#define HEXDUMP_SIZE	1024
/* A record has as many bytes as header.size says, for the fields of its event's sample type and no more */
#define RULE_HEADER_SIZE "\001header.size\002"
#define PERF_RECORD_MISC_MMAP_BUILD_ID		(1 << 14)
#define PERF_RECORD_MISC_CPUMODE_MASK		(7 << 0)
/* header.misc has only bits that are documented for the type of the record */
#define RULE_HEADER_MISC "\001header.misc\002"
#define SHOWN_ELEMENTS 12
#ifndef __maybe_unused
#define __maybe_unused		__attr(unused)
#endif
#define SAMPLE_TYPES 7
/* TID names the task that the sample is of */
#define RULE_SAMPLE_TID "\001sample.tid\002"
/* TIME lies between the clock's readings before and after, and does not go back */
#define RULE_SAMPLE_TIME "\001sample.time\002"
/* IDENTIFIER and ID are the event's, as PERF_EVENT_IOC_ID gives it */
#define RULE_SAMPLE_ID "\001sample.id\002"
#define PERF_RECORD_MISC_EXACT_IP		(1 << 14)
#define END_SIZE	4096	/* bytes that are looked at behind the last record */
#define END_PATIENCE_US	10000
/* What the kernel writes for a record ends with the record: behind the last one of a ring that was never full are zeroes */
#define RULE_RING_END "\001ring.end\002"
/* A promise is a marker and a cookie that is not 0 */
#define RULE_DEFERRED_COOKIE "\001deferred.cookie\002"
/* Every cookie is answered once in the ring of each event that asks for answers */
#define RULE_DEFERRED_ANSWER "\001deferred.answer\002"
/* An answer has the form that its event asked for: build IDs and the misc bit, or addresses and no bit */
#define RULE_DEFERRED_FORM "\001deferred.form\002"
#define PERF_RECORD_MISC_USER			(2 << 0)
/* An answer has the entries that its event asked for: the address, or the callchain as it is on the stack */
#define RULE_DEFERRED_ENTRIES "\001deferred.entries\002"
/* Reserved fields are 0, and so are the bytes behind the end of a build ID */
#define RULE_BUILD_ID_PADDING "\001build-id.padding\002"
/* The size of a build ID is that of the ID in the ELF note of the file, not that of the field */
#define RULE_BUILD_ID_SIZE "\001build-id.size\002"
/* A build ID is that of the file which is mapped at the address */
#define RULE_BUILD_ID_VALUE "\001build-id.value\002"
/* Only an address inside a mapping [start, end) of a file with a build ID has one; any other has size 0 and keeps its value */
#define RULE_BUILD_ID_MAPPING "\001build-id.mapping\002"
/* The offset is that in the file: address - start of the mapping + its file offset */
#define RULE_BUILD_ID_OFFSET "\001build-id.offset\002"
/* An entry of size 0 has no build ID and holds the virtual address */
#define RULE_BUILD_ID_UNRESOLVED "\001build-id.unresolved\002"
/* A user address in a file is resolved where the lock is free and the note's page is in memory */
#define RULE_BUILD_ID_RESOLVED "\001build-id.resolved\002"
/* The entry that answers for an address of a sample is that address */
#define RULE_DEFERRED_ADDRESS "\001deferred.address\002"
#define FRAMES		29	/* no other chain here is as long */
/* struct sample_id behind a record names its event, its task and the time */
#define RULE_RECORD_SAMPLE_ID "\001record.sample-id\002"
/* A system call returns, and the task that made it lives */
#define RULE_CASE_ENDS "\001case.ends\002"
#define CASE_TIMEOUT_S	40

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

enum kernel {
	KERNEL_PLAIN,		/* no comparison: the headers are this kernel's */
	KERNEL_BASE,		/* without the series */
	KERNEL_PATCHED,		/* with it */
};

enum perf_event_sample_format {
	PERF_SAMPLE_IP				= 1U << 0,
	PERF_SAMPLE_TID				= 1U << 1,
	PERF_SAMPLE_TIME			= 1U << 2,
	PERF_SAMPLE_CALLCHAIN			= 1U << 5,
	PERF_SAMPLE_ID				= 1U << 6,
	PERF_SAMPLE_BUILD_ID_OFFSET		= 1U << 25,
	PERF_SAMPLE_CALLCHAIN_BUILD_ID_OFFSET	= 1U << 26,
};

/* What makes samples. */
enum source {
	SOURCE_FAULTS,		/* software page faults: user registers */
	SOURCE_SYSCALLS,	/* raw_syscalls:sys_enter: kernel registers */
	SOURCE_CLOCK,		/* cpu-clock: an interrupt anywhere */
	SOURCE_COUNT,
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

enum perf_event_read_format {
	PERF_FORMAT_TOTAL_TIME_ENABLED		= 1U << 0,
	PERF_FORMAT_TOTAL_TIME_RUNNING		= 1U << 1,
	PERF_FORMAT_ID				= 1U << 2,
	PERF_FORMAT_GROUP			= 1U << 3,
	PERF_FORMAT_LOST			= 1U << 4,
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

struct perf_event_header {
	__u32 type;
	__u16 misc;
	__u16 size;
};

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
		__u64 id;
	} id;
	struct {
		__u64 nr;
		const __u64 *ips;
	} callchain;
	struct {
		struct build_id_offset bid;
	} build_id_offset;
	struct {
		__u64 nr;
		const struct build_id_offset *entries;
	} callchain_build_id_offset;
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

/* A number that proofs compare with: of a clock, or in a file. */
struct fact {
	const char *name;
	int clock;		/* -1: in the file */
	const char *file;
	unsigned int word;	/* the word of this number, or */
	const char *key;	/* what stands behind this text */
};

enum perf_callchain_context {
	PERF_CONTEXT_USER_DEFERRED		= (__u64)-640,
};

/* One cookie: what the producer's samples say about it. */
struct promise {
	__u64 cookie;
	__u64 address;		/* of the sample, 0 when it does not tell */
	unsigned int answers;
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
	PERF_RECORD_CALLCHAIN_DEFERRED		= 22,
};

/* What is left of a record. what names the field that is being read. */
struct cursor {
	const char *at;
	size_t left;
	bool failed;
	char problem[192];
};

struct sample_type {
	const char *name;	/* without PERF_SAMPLE_ */
	__u64 bit;
	__u64 excludes;		/* bits that the kernel refuses with it */
	const char *needs;	/* "", or what the machine must have */
	void (*check)(struct expect *expect, const struct sample *sample);
	void (*prove)(struct expect *expect, const struct sample *sample);
};

extern const struct sample_type sample_types[SAMPLE_TYPES];
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

static unsigned int faults;	/* against the rule that this file is about */

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

enum kernel ktap_kernel = KERNEL_PATCHED;

/* Skip the case when the kernel that it runs on does not have these types. */
static inline void need_bits(__u64 bits)
{
	if (bits & ~SCOPE_ALL_BITS)
		ktap_skip("this tree has no such sample type");
	if ((bits & SCOPE_NEW_BITS) && ktap_kernel == KERNEL_BASE)
		ktap_skip("the base kernel refuses the bit");
}

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

void ktap_stop(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	fail(format, list);
	va_end(list);
	end_case("it failed before that");
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

const struct mapping *maps_find(const struct maps *maps, __u64 address)
{
	for (unsigned int i = 0; i < maps->count; i++)
		if (address >= maps->map[i].start && address < maps->map[i].end)
			return &maps->map[i];
	return NULL;
}

void maps_free(struct maps *maps)
{
	free(maps->map);
	maps->map = NULL;
	maps->count = 0;
}

/* Offset of a function in the file of this program. */
static __u64 file_offset(const void *function)
{
	const struct mapping *map;
	struct maps maps;
	__u64 offset = 0;

	maps_read(&maps);
	map = maps_find(&maps, (__u64)function);
	if (map)
		offset = (__u64)function - map->start + map->offset;
	maps_free(&maps);
	return offset;
}

static int watched;

static noinline void touch_watched(void)
{
	__atomic_store_n(&watched, watched + 1, __ATOMIC_RELAXED);
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

static struct event producer;

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

static unsigned int promise_count;
static struct promise promises[PROMISES_MAX];

static struct promise *find_promise(__u64 cookie)
{
	for (unsigned int i = 0; i < promise_count; i++)
		if (promises[i].cookie == cookie)
			return &promises[i];
	return NULL;
}

static void note_promise(__u64 cookie, __u64 address)
{
	struct promise *promise = find_promise(cookie);

	if (!promise) {
		if (promise_count == PROMISES_MAX)
			ktap_stop(RULE_TEST_SETUP "more cookies than this test can hold");
		promise = &promises[promise_count++];
		promise->cookie = cookie;
		promise->address = 0;
		promise->answers = 0;
	}
	if (address)
		promise->address = address;
}

static void note_sample(struct expect *expect, const struct sample *sample)
{
	__u64 words[4];

	(void)expect;
	if (sample->bits & IP_BIT) {
		memcpy(words, &sample->build_id_offset.bid, sizeof(words));
		if (!words[0] && words[1] == PERF_CONTEXT_USER_DEFERRED)
			note_promise(words[2], words[3]);
	}
	if (sample->bits & PERF_SAMPLE_CALLCHAIN) {
		for (__u64 i = 0; i + 1 < sample->callchain.nr; i++)
			if (sample->callchain.ips[i] == PERF_CONTEXT_USER_DEFERRED)
				note_promise(sample->callchain.ips[i + 1], 0);
	}
	if (sample->bits & CHAIN_BIT) {
		const struct build_id_offset *entry = sample->callchain_build_id_offset.entries;

		for (__u64 i = 0; i + 1 < sample->callchain_build_id_offset.nr; i++)
			if (entry[i].offset == PERF_CONTEXT_USER_DEFERRED)
				note_promise(entry[i + 1].offset, 0);
	}
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

bool ktap_fail(const char *format, ...)
{
	va_list list;
	bool shown;

	va_start(list, format);
	shown = fail(format, list);
	va_end(list);
	return shown;
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

static void show_words(const char *name, const __u64 *word, __u64 count)
{
	for (__u64 i = 0; i < count && i < SHOWN_ELEMENTS; i++)
		ktap_diag("    %s[%llu] %#llx", name, i, word[i]);
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

static void show_sample_id(const struct sample *s)
{
	ktap_diag("  ID");
	ktap_diag("    id %#llx", (__u64)s->id.id);
}

static void show_sample_callchain(const struct sample *s)
{
	ktap_diag("  CALLCHAIN");
	ktap_diag("    nr %#llx", (__u64)s->callchain.nr);
	if (s->callchain.ips)
		show_words("ips", s->callchain.ips, s->callchain.nr);
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
		show_sample_ip,
		show_sample_tid,
		show_sample_time,
		show_sample_id,
		show_sample_callchain,
		show_sample_build_id_offset,
		show_sample_callchain_build_id_offset,
	};

	ktap_diag("sample: misc %#x size %u sample_type %#llx",
		  sample->header->misc, sample->header->size, sample->bits);
	for (unsigned int i = 0; i < SAMPLE_TYPES; i++)
		if (sample->decoded & sample_types[i].bit)
			show[i](sample);
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

const struct sample_type sample_types[SAMPLE_TYPES] = {
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
		.name = "ID",
		.bit = (1ULL << 6),
		.excludes = 0,
		.needs = "",
		.prove = prove_id,
	},
	{
		.name = "CALLCHAIN",
		.bit = (1ULL << 5),
		.excludes = 0,
		.needs = "",
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

const char *decode_sample(const struct perf_event_attr *attr,
			  const struct perf_event_header *header,
			  struct sample *sample)
{
	static struct cursor c;
	static void (* const decode[SAMPLE_TYPES])(struct cursor *c,
		const struct perf_event_attr *attr,
		const struct perf_event_header *header, struct sample *s) = {
		decode_ip,
		decode_tid,
		decode_time,
		decode_id,
		decode_callchain,
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

/* The form that an event gets: build IDs only where it asks for no plain chain. */
static bool wants_build_ids(const struct perf_event_attr *attr)
{
	return (attr->sample_type & CHAIN_BIT) ||
	       ((attr->sample_type & IP_BIT) &&
		!(attr->sample_type & PERF_SAMPLE_CALLCHAIN));
}

static bool all_zero(const void *data, size_t size)
{
	const char *byte = data;

	for (size_t i = 0; i < size; i++)
		if (byte[i])
			return false;
	return true;
}

/* The same ID, whatever its size is said to be. */
static bool same_id(const struct build_id_offset *bid,
		    const struct mapping *map)
{
	return map->id_size && bid->size >= map->id_size &&
	       !memcmp(bid->build_id, map->id, map->id_size) &&
	       all_zero(bid->build_id + map->id_size,
			sizeof(bid->build_id) - map->id_size);
}

/* Any mapping of a file with this ID that holds this offset. */
static const struct mapping *find_anywhere(const struct expect *expect,
					   const struct build_id_offset *bid)
{
	for (unsigned int i = 0; i < expect->maps.count; i++) {
		const struct mapping *map = &expect->maps.map[i];

		if (same_id(bid, map) && bid->offset >= map->offset &&
		    bid->offset - map->offset < map->end - map->start)
			return map;
	}
	return NULL;
}

static const char *check_resolved(struct expect *expect,
				  const struct build_id_offset *bid,
				  __u64 address)
{
	static char text[320];
	const struct mapping *map = address ? maps_find(&expect->maps, address) :
				    find_anywhere(expect, bid);

	expect->resolved++;
	if (bid->size > sizeof(bid->build_id))
		return RULE_BUILD_ID_SIZE "a build ID larger than its field";
	if (!all_zero(bid->build_id + bid->size,
		      sizeof(bid->build_id) - bid->size))
		return RULE_BUILD_ID_PADDING "something behind the build ID's end; expected zeros";
	if (!address && !map)
		return RULE_BUILD_ID_VALUE "no mapped file has this build ID and this offset";
	if (!map || !map->file) {
		snprintf(text, sizeof(text), RULE_BUILD_ID_MAPPING
			 "a build ID for %#llx, which is in no mapping of a file; expected size 0 and that address",
			 address);
		return text;
	}
	if (!map->id_size)
		return RULE_BUILD_ID_MAPPING
		       "a build ID for a file that has none; expected size 0 and the address";
	if (bid->size != map->id_size) {
		snprintf(text, sizeof(text), RULE_BUILD_ID_SIZE
			 "build ID size %u; expected %u, the size of the note of %s",
			 bid->size, map->id_size, map->path);
		return text;
	}
	if (!same_id(bid, map))
		return RULE_BUILD_ID_VALUE
		       "another build ID; expected that of the file which is mapped there";
	if (!address || bid->offset == address - map->start + map->offset)
		return NULL;
	snprintf(text, sizeof(text), RULE_BUILD_ID_OFFSET
		 "offset %#llx; expected %#llx - %#llx + %#llx = %#llx",
		 bid->offset, address, map->start, map->offset,
		 address - map->start + map->offset);
	return text;
}

unsigned int least_resolved(unsigned int count)
{
	static int there = -1;

	if (there < 0)
		there = syscall(SYS_bpf, -1, NULL, 0) == 0 || errno != ENOSYS;
	return there ? count : 0;
}

const char *check_build_id(struct expect *expect,
			   const struct build_id_offset *bid, __u64 address)
{
	static char text[320];
	const struct mapping *map;

	if (bid->reserved_1 || bid->reserved_2)
		return RULE_BUILD_ID_PADDING "a reserved field is not zero; expected 0";
	if (bid->size)
		return check_resolved(expect, bid, address);
	expect->unresolved++;
	if (!all_zero(bid->build_id, sizeof(bid->build_id)))
		return RULE_BUILD_ID_UNRESOLVED "a build ID with size 0; expected zeros";
	if (address && bid->offset != address) {
		snprintf(text, sizeof(text), RULE_BUILD_ID_UNRESOLVED
			 "size 0 and offset %#llx; expected the address, %#llx",
			 bid->offset, address);
		return text;
	}
	map = maps_find(&expect->maps, bid->offset);
	if (!expect->must_resolve || !map || !map->id_size || !least_resolved(1))
		return NULL;
	snprintf(text, sizeof(text), RULE_BUILD_ID_RESOLVED
		 "%#llx is not resolved; expected the build ID of %s, whose note is in memory: no lock is held",
		 bid->offset, map->path);
	return text;
}

const char *check_answer(struct expect *expect,
			 const struct build_id_offset *bid, __u64 address)
{
	static char text[160];

	if (!address || bid->size || bid->offset == address)
		return check_build_id(expect, bid, address);
	snprintf(text, sizeof(text), RULE_DEFERRED_ADDRESS
		 "the answer is for %#llx; expected %#llx, the address of the sample that has the cookie",
		 bid->offset, address);
	return text;
}

/* Entry i of an answer is a known address: in either form, it must be that. */
static void check_entry(struct expect *expect, const struct record *record,
			__u64 i, __u64 address)
{
	const struct build_id_offset *entry = record->callchain_deferred.entries;
	const char *problem;

	if (entry) {
		problem = i ? check_build_id(expect, &entry[i], address) :
			  check_answer(expect, &entry[i], address);
		if (problem)
			record_fail(record, "%s", problem);
	} else if (address && record->callchain_deferred.ips[i] != address) {
		record_fail(record, RULE_DEFERRED_ENTRIES
			    "entry %llu is %#llx; expected %#llx, the address that was on the stack",
			    i, record->callchain_deferred.ips[i], address);
	}
}

static __u64 frames[FRAMES];

static void check_made_entries(struct expect *expect, const struct record *record)
{
	__u64 nr = record->callchain_deferred.nr;

	/* Only the made calls have this many frames. */
	if (nr != FRAMES + 1)
		return;
	for (unsigned int i = 0; i < FRAMES; i++)
		check_entry(expect, record, i + 1, frames[i]);
	expect->deferred++;
}

static void on_answer(struct expect *expect, const struct record *record)
{
	const struct perf_event_attr *attr = &expect->event->attr;
	bool build_ids = record->header->misc & PERF_RECORD_MISC_MMAP_BUILD_ID;
	struct promise *promise;

	if (record->header->type != PERF_RECORD_CALLCHAIN_DEFERRED)
		return;
	promise = find_promise(record->callchain_deferred.cookie);
	if (promise && promise->answers++)
		record_fail(record, RULE_DEFERRED_ANSWER
			    "a second answer to one cookie; expected 1");
	if (build_ids != wants_build_ids(attr))
		record_fail(record, "%s", build_ids ?
			    RULE_DEFERRED_FORM "build IDs for an event that did not ask for them" :
			    RULE_DEFERRED_FORM "no build IDs for an event that asked for them");
	if ((record->header->misc & ~PERF_RECORD_MISC_MMAP_BUILD_ID) !=
	    PERF_RECORD_MISC_USER)
		record_fail(record, RULE_HEADER_MISC
			    "misc is %#x; expected PERF_RECORD_MISC_USER, and no bit but the one of build IDs",
			    record->header->misc);
	if (!record->callchain_deferred.nr)
		record_fail(record, RULE_DEFERRED_ENTRIES
			    "no entry; expected the address where the task was");
	else if (promise && promise->address)
		check_entry(expect, record, 0, promise->address);
	if ((attr->sample_type & IP_BIT) &&
	    !(attr->sample_type & (CHAIN_BIT | PERF_SAMPLE_CALLCHAIN)) &&
	    record->callchain_deferred.nr > 1)
		record_fail(record, RULE_DEFERRED_ENTRIES
			    "more than one entry for an event without a callchain; expected 1");
	check_made_entries(expect, record);
	if (record->has_id && (attr->sample_type & PERF_SAMPLE_TID) &&
	    record->id.tid.tid != expect->tid)
		record_fail(record, RULE_RECORD_SAMPLE_ID "sample_id names another task");
	if (record->has_id && (attr->sample_type & PERF_SAMPLE_ID) &&
	    record->id.id.id != expect->event->id)
		record_fail(record, RULE_RECORD_SAMPLE_ID "sample_id names another event");
	if (record->has_id && (attr->sample_type & PERF_SAMPLE_TIME) &&
	    (record->id.time.time < expect->time_from ||
	     record->id.time.time > expect->time_to))
		record_fail(record, RULE_RECORD_SAMPLE_ID
			    "sample_id has a time before or after the test");
}

unsigned int ktap_failures(void)
{
	return failures;
}

/* Every promise has one answer in the ring of each consumer. */
static void check_consumer(struct expect *expect, struct event *event,
			   const char *name)
{
	unsigned int missing = 0;

	for (unsigned int i = 0; i < promise_count; i++)
		promises[i].answers = 0;
	expect->event = event;
	expect->must_resolve = true;
	expect->deferred = 0;
	check_ring(expect, on_answer);
	for (unsigned int i = 0; i < promise_count; i++)
		missing += !promises[i].answers;
	if (missing)
		ktap_fail(RULE_DEFERRED_ANSWER
			  "%s: %u of %u cookies were not answered; expected all", name, missing,
			  promise_count);
	if (ktap_failures())
		ktap_diag("consumer: %s, sample_type %#llx", name,
			  event->attr.sample_type);
}

/* Samples of a breakpoint, or of a uprobe, and their own answers. */
static void own_answers(struct perf_event_attr *attr, void (*trigger)(void))
{
	struct expect expect;
	int error;

	attr_defer(attr, true, true);
	error = event_open(&producer, attr);
	if (error)
		ktap_skip("perf_event_open(): %s", strerror(-error));
	expect_begin(&expect, &producer, SOURCE_COUNT);
	event_enable(&producer);
	for (unsigned int i = 0; i < CALLS; i++)
		trigger();
	event_disable(&producer);
	expect_end(&expect);
	expect.on_sample = note_sample;
	check_ring(&expect, NULL);
	producer.tail = 0;
	expect.on_sample = NULL;
	if (promise_count < CALLS)
		ktap_fail(RULE_DEFERRED_COOKIE "%u cookies in %u samples", promise_count,
			  expect.samples);
	check_consumer(&expect, &producer, "itself");
}

static void user_probe(const void *arg)
{
	FILE *file = fopen("/sys/bus/event_source/devices/uprobe/type", "re");
	struct perf_event_attr attr;
	static char path[256];
	unsigned int type;

	(void)arg;
	need_bits(IP_BIT);
	if (!file || fscanf(file, "%u", &type) != 1)
		ktap_skip("no uprobe PMU");
	if (readlink("/proc/self/exe", path, sizeof(path) - 1) < 0)
		ktap_skip("/proc/self/exe: %m");
	attr_init(&attr, SOURCE_FAULTS, IP_BIT | PERF_SAMPLE_IP);
	attr.type = type;
	attr.config = 0;
	attr.uprobe_path = (__u64)path;
	attr.probe_offset = file_offset(touch_watched);
	own_answers(&attr, touch_watched);
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
	ktap_add(user_probe, NULL, "own.uprobe");
	return ktap_main(argc, argv);
}
