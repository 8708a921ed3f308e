// SPDX-License-Identifier: GPL-2.0
/*
 * files/in_place.md5_16_bytes: BUILD_ID_OFFSET: build ID size 20
 * Expected: 16, the size of the note of /memfd:made (deleted)
 *
 * The rule, build-id.size: The size of a build ID is that of the ID in the ELF note of the
 *   file, not that of the field.
 * - include/uapi/linux/perf_event.h:1059: "u8 build_id_size;"
 * - the same value elsewhere: PERF_RECORD_MMAP2 of the same mapping (attr.build_id), whose
 *   build_id_size is that of the note; the note in the file
 *
 * kernel/events/core.c:8312: bid->size = size;
 *
 * Seen on the patched kernel, 7.2.9+, with CONFIG_PERF_EVENTS, CONFIG_FTRACE_SYSCALLS,
 *   CONFIG_BPF_SYSCALL, CONFIG_BPF_EVENTS, CONFIG_PROC_FS, CONFIG_FAULT_INJECTION,
 *   CONFIG_FAILSLAB, CONFIG_DEBUG_FS, CONFIG_FAULT_INJECTION_DEBUG_FS.
 * Compile it, and run it as root on that kernel, for example in a guest:
 *
 *   gcc -static -O2 -o r files-in_place.md5_16_bytes.c
 *   vng -r arch/x86/boot/bzImage --user root -- ./r
 *
 * Exit status: 1 the fault is there, 0 it is not, 4 it cannot be told (a bit is refused,
 *   something is missing).
 * Made by reviewbot from its tests: what the case does not need is left out; main() stands
 *   at the end.
 */
#define _GNU_SOURCE
#pragma GCC optimize("no-omit-frame-pointer", "no-optimize-sibling-calls")

#define CASE		"in_place.md5_16_bytes"
#define CASE_RULE	"build-id.size"

#include <asm/byteorder.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
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
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))
#define RECORD_MAX	65536
#define BUILD_ID_MAX	20	/* what a record has room for */
#define __attr(...)		__attribute__((__VA_ARGS__))
#ifndef __packed
#define __packed		__attr(packed)
#endif
#define FACTS		2
/* Proofs that a value never falls. */
#define RISING		1
/* Every bit that the header defines. */
#define SCOPE_ALL_BITS		0x7ffffffULL
#ifndef __noreturn
#define __noreturn		__attr(noreturn)
#endif
#define EXIT_FAULT	1
#define EXIT_UNTOLD	4
/* The bits that base does not have. */
#define SCOPE_NEW_BITS		0x6000000ULL
#define IP_BIT		PERF_SAMPLE_BUILD_ID_OFFSET
#define CLOCK_PERIOD_NS	200000
/* Registers that are asked for, and the number of ip among all. */
#define REGS_MASK	0x3c6ULL
#define PERF_FLAG_FD_CLOEXEC			(1UL << 3)
#define PERF_EVENT_IOC_ID			_IOR ('$', 7, __u64 *)
#define EVENT_PAGES	128		/* data pages of a ring, unless said */
/* A rule's name stands between these in the text of a failure. */
#define RULE_BEGIN	1
#define RULE_END	2
#define EXPECTED	"; expected "
/* perf_event_open() takes a request of which every part is defined in the header and supported by this machine */
#define RULE_OPEN_ACCEPTED "\001open.accepted\002"
#define HEADER_PAGES	2
#define PAGE		4096
#define ELF_CODE_PAGES	4
#define ALIGN4(n)	(((n) + 3UL) & ~3UL)
#define NOTE_OTHER	1	/* NT_GNU_ABI_TAG */
/* The test has what it needs: memory, files, the right to open an event */
#define RULE_TEST_SETUP "\001test.setup\002"
#define NOTES_MAX	4096
#define FACT_UNKNOWN	(~0ULL)
#define COOKIES_MAX	64
#define PERF_EVENT_IOC_ENABLE			_IO  ('$', 0)
#define FAULTS		4
#define PERF_EVENT_IOC_DISABLE			_IO  ('$', 1)
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
#define SAMPLE_TYPES 3
#define REGS_IP		8
#define PERF_RECORD_MISC_USER			(2 << 0)
/* An entry that is no user address, a kernel address or a marker, has size 0 and keeps its value */
#define RULE_BUILD_ID_KERNEL "\001build-id.kernel\002"
/* A promise is a marker and a cookie that is not 0 */
#define RULE_DEFERRED_COOKIE "\001deferred.cookie\002"
/* An answer is promised only where attr.defer_callchain asks for it, and never for a kernel address */
#define RULE_DEFERRED_ASKED "\001deferred.asked\002"
/* An entry of size 0 has no build ID and holds the virtual address */
#define RULE_BUILD_ID_UNRESOLVED "\001build-id.unresolved\002"
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
/* A user address in a file is resolved where the lock is free and the note's page is in memory */
#define RULE_BUILD_ID_RESOLVED "\001build-id.resolved\002"
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

struct elf_file {
	unsigned int id_size;	/* of the build ID; 0: no such note */
	unsigned int first_byte; /* of the build ID; 0: id_size + 1 */
	unsigned int other;	/* bytes in a note of another kind before it */
	bool second_segment;	/* another PT_NOTE segment comes first */
	bool across_pages;	/* the build ID begins in one page, ends in the next */
	bool no_magic;		/* no ELF file at all */
	__u64 hole;		/* bytes between the headers and the code; whole pages */
	const char *path;	/* NULL: in memory, with no name */
	int fd;			/* set by elf_file_make() */
};

struct file_case {
	const char *name;
	struct elf_file file;
	bool unresolved;	/* no build ID may come of it */
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

/* What makes samples. */
enum source {
	SOURCE_FAULTS,		/* software page faults: user registers */
	SOURCE_SYSCALLS,	/* raw_syscalls:sys_enter: kernel registers */
	SOURCE_CLOCK,		/* cpu-clock: an interrupt anywhere */
	SOURCE_COUNT,
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
		__u64 abi;
		const __u64 *regs;
	} regs_intr;
	struct {
		struct build_id_offset bid;
	} build_id_offset;
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

enum kernel {
	KERNEL_PLAIN,		/* no comparison: the headers are this kernel's */
	KERNEL_BASE,		/* without the series */
	KERNEL_PATCHED,		/* with it */
};

enum perf_event_sample_format {
	PERF_SAMPLE_IP				= 1U << 0,
	PERF_SAMPLE_REGS_INTR			= 1U << 18,
	PERF_SAMPLE_BUILD_ID_OFFSET		= 1U << 25,
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

/* What stands in a code page: a write to *address, and a return. */
typedef void elf_code(char *address);

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

/* struct sample_id: what follows other records under attr.sample_id_all. */
struct sample_id {
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

/* The form that promises an answer later, where an ID stands otherwise. */
struct promise {
	__u64 zero;
	__u64 marker;
	__u64 cookie;
	__u64 address;
};

extern const struct sample_type sample_types[SAMPLE_TYPES];

static const struct file_case file_cases[] = {
	{ "sha1_20_bytes", { .id_size = 20 } },
	{ "md5_16_bytes", { .id_size = 16 } },
	{ "8_bytes", { .id_size = 8 } },
	{ "1_byte", { .id_size = 1 } },
	{ "none", { .id_size = 0 }, true },
	{ "21_bytes", { .id_size = 21 }, true },
	{ "other_note_first", { .id_size = 20, .other = 13 } },
	{ "second_segment", { .id_size = 20, .second_segment = true } },
	{ "across_pages", { .id_size = 20, .across_pages = true } },
	{ "no_elf", { .id_size = 20, .no_magic = true }, true },
	{ "beyond_4_gib", { .id_size = 20, .hole = 5ULL << 30 } },
	{ "beyond_16_tib", { .id_size = 20, .hole = 1ULL << 45 } },
};

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
	if (bits & (1ULL << 18))
		attr->sample_regs_intr = REGS_MASK;
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

static struct event event;
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

static void open_faults(bool defer)
{
	struct perf_event_attr attr;
	int error;

	need_bits(IP_BIT);
	attr_init(&attr, SOURCE_FAULTS, IP_BIT | PERF_SAMPLE_IP);
	attr_defer(&attr, defer, defer);
	error = event_open(&event, &attr);
	if (error)
		ktap_stop(RULE_OPEN_ACCEPTED "perf_event_open(): %s", strerror(-error));
}

/* Append one note of "GNU" and return the size of what is there now. */
static size_t add_note(char *notes, size_t at, unsigned int type,
		       unsigned int size, unsigned int first)
{
	Elf64_Nhdr head = { .n_namesz = 4, .n_descsz = size, .n_type = type };

	memcpy(notes + at, &head, sizeof(head));
	memcpy(notes + at + sizeof(head), "GNU", 4);
	at += sizeof(head) + 4;
	for (unsigned int i = 0; i < size; i++)
		notes[at + i] = (first ? first : size + 1) + i;
	return at + ALIGN4(size);
}

static void fill_headers(const struct elf_file *file, char *image)
{
	Elf64_Ehdr *elf = (Elf64_Ehdr *)image;
	Elf64_Phdr *segment = (Elf64_Phdr *)(elf + 1);
	size_t at = file->across_pages ? PAGE - 24 : 1024, first = at;

	memcpy(elf->e_ident, ELFMAG, SELFMAG);
	elf->e_ident[EI_CLASS] = ELFCLASS64;
	elf->e_ident[EI_DATA] = ELFDATA2LSB;
	elf->e_ident[EI_VERSION] = EV_CURRENT;
	elf->e_type = ET_DYN;
	elf->e_machine = EM_X86_64;
	elf->e_version = EV_CURRENT;
	elf->e_phoff = sizeof(*elf);
	elf->e_ehsize = sizeof(*elf);
	elf->e_phentsize = sizeof(*segment);
	if (file->second_segment) {
		segment->p_type = PT_NOTE;
		segment->p_offset = 512;
		segment->p_filesz = add_note(image + 512, 0, NOTE_OTHER, 16, 0);
		segment++;
		elf->e_phnum++;
	}
	if (file->other)
		at += add_note(image + at, 0, NOTE_OTHER, file->other, 0);
	if (file->id_size)
		at += add_note(image + at, 0, NT_GNU_BUILD_ID, file->id_size,
			       file->first_byte);
	segment->p_type = PT_NOTE;
	segment->p_offset = first;
	segment->p_filesz = at - first;
	elf->e_phnum++;
	if (file->no_magic)
		image[0] = 0;
}

void elf_file_make(struct elf_file *file)
{
	static const char code[] = { 0xc6, 0x07, 0x01, 0xc3 };
	static char headers[HEADER_PAGES * PAGE], pages[ELF_CODE_PAGES * PAGE];

	memset(headers, 0, sizeof(headers));
	fill_headers(file, headers);
	for (unsigned int i = 0; i < ELF_CODE_PAGES; i++)
		memcpy(pages + i * PAGE, code, sizeof(code));
	file->fd = file->path ? open(file->path, O_RDWR | O_CREAT | O_TRUNC, 0700) :
				memfd_create("made", MFD_CLOEXEC);
	if (file->fd < 0)
		ktap_skip("no file to make: %m");
	if (pwrite(file->fd, headers, sizeof(headers), 0) != sizeof(headers) ||
	    pwrite(file->fd, pages, sizeof(pages), sizeof(headers) + file->hole) != sizeof(pages))
		ktap_skip("cannot write the made file: %m");
}

const char *elf_file_headers(const struct elf_file *file)
{
	char *map = mmap(NULL, HEADER_PAGES * PAGE, PROT_READ, MAP_PRIVATE,
			 file->fd, 0);

	if (map == MAP_FAILED)
		ktap_stop(RULE_TEST_SETUP "mmap: %m");
	for (unsigned int i = 0; i < HEADER_PAGES; i++)
		__atomic_load_n(map + i * PAGE, __ATOMIC_RELAXED);
	return map;
}

static __u64 code_start;
static __u64 code_end;
static unsigned int from_code;
static unsigned int from_code_resolved;

void elf_code_fault(elf_code *code)
{
	char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		ktap_stop(RULE_TEST_SETUP "mmap: %m");
	code(page);
	munmap(page, PAGE);
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

static unsigned int promise_count;

/* What the samples say of the answers to come: whose address has which cookie. */
static struct {
	__u64 cookie, address;
} promises[COOKIES_MAX];

static void note_promise(const struct sample *sample)
{
	__u64 words[4];

	memcpy(words, &sample->build_id_offset.bid, sizeof(words));
	if (words[0] || words[1] != PERF_CONTEXT_USER_DEFERRED || promise_count == COOKIES_MAX)
		return;
	promises[promise_count].cookie = words[2];
	promises[promise_count++].address = sample->ip.ip;
}

/* Count the samples that the made code took, and how they were answered. */
static void on_sample(struct expect *expect, const struct sample *sample)
{
	(void)expect;
	note_promise(sample);
	if (sample->ip.ip < code_start || sample->ip.ip >= code_end)
		return;
	from_code++;
	from_code_resolved += !!sample->build_id_offset.bid.size;
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

static __u64 hweight64(__u64 word)
{
	return __builtin_popcountll(word);
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

__u64 reg_ip(const __u64 *regs, __u64 mask)
{
	if (!(mask & (1ULL << REGS_IP)))
		return 0;
	return regs[__builtin_popcountll(mask & ((1ULL << REGS_IP) - 1))];
}

static bool in_user(const struct sample *sample)
{
	return (sample->header->misc & PERF_RECORD_MISC_CPUMODE_MASK) ==
	       PERF_RECORD_MISC_USER;
}

static bool all_zero(const void *data, size_t size)
{
	const char *byte = data;

	for (size_t i = 0; i < size; i++)
		if (byte[i])
			return false;
	return true;
}

/* An entry that must not have a build ID: of the kernel, or a marker. */
static const char *check_plain(const struct build_id_offset *bid, __u64 address)
{
	static char text[160];

	if (bid->size || bid->reserved_1 || bid->reserved_2 ||
	    !all_zero(bid->build_id, sizeof(bid->build_id)))
		return RULE_BUILD_ID_KERNEL
		       "an entry that is no user address has a build ID; expected size 0";
	if (address && bid->offset != address) {
		snprintf(text, sizeof(text), RULE_BUILD_ID_KERNEL
			 "%#llx stands in a kernel part or for a marker; expected %#llx, as the callchain has it",
			 bid->offset, address);
		return text;
	}
	return NULL;
}

static struct promise read_promise(const struct build_id_offset *bid)
{
	struct promise promise;

	memcpy(&promise, bid, sizeof(promise));
	return promise;
}

bool attr_defers(const struct perf_event_attr *attr)
{
	return attr->defer_callchain;
}

static const char *check_promise(struct expect *expect,
				 const struct build_id_offset *bid,
				 __u64 address)
{
	struct promise promise = read_promise(bid);

	if (promise.zero)
		return RULE_DEFERRED_COOKIE
		       "a deferred entry has a size, or something in its first 8 bytes; expected 0";
	if (!attr_defers(&expect->event->attr))
		return RULE_DEFERRED_ASKED
		       "deferred; expected an entry in place: attr.defer_callchain is not set";
	if (!promise.cookie)
		return RULE_DEFERRED_COOKIE "deferred, with the cookie 0; expected another";
	if (address && promise.address != address)
		return RULE_BUILD_ID_UNRESOLVED "deferred, and the last word is not the address";
	expect->deferred++;
	return NULL;
}

const struct mapping *maps_find(const struct maps *maps, __u64 address)
{
	for (unsigned int i = 0; i < maps->count; i++)
		if (address >= maps->map[i].start && address < maps->map[i].end)
			return &maps->map[i];
	return NULL;
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

static void show_sample_ip(const struct sample *s)
{
	ktap_diag("  IP");
	ktap_diag("    ip %#llx", (__u64)s->ip.ip);
}

static void show_sample_regs_intr(const struct sample *s)
{
	ktap_diag("  REGS_INTR");
	ktap_diag("    abi %#llx", (__u64)s->regs_intr.abi);
	if (s->regs_intr.regs)
		show_words("regs", s->regs_intr.regs, 0);
}

static void show_sample_build_id_offset(const struct sample *s)
{
	ktap_diag("  BUILD_ID_OFFSET");
	show_build_id_offset("bid", &s->build_id_offset.bid, 1);
}

void print_sample(const struct sample *sample)
{
	static void (* const show[SAMPLE_TYPES])(const struct sample *s) = {
		show_sample_ip,
		show_sample_regs_intr,
		show_sample_build_id_offset,
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

void oracle_build_id_offset(struct expect *expect, const struct sample *sample)
{
	const struct build_id_offset *bid = &sample->build_id_offset.bid;
	__u64 address = sample->bits & PERF_SAMPLE_IP ? sample->ip.ip : 0;
	const char *problem;

	if (!address && (sample->bits & PERF_SAMPLE_REGS_INTR) &&
	    sample->regs_intr.abi)
		address = reg_ip(sample->regs_intr.regs,
				 expect->event->attr.sample_regs_intr);
	if (!in_user(sample)) {
		problem = check_plain(bid, address);
		if (!problem && !(bid->offset >> 63))
			problem = RULE_BUILD_ID_KERNEL
				  "the address of a kernel sample is no kernel address";
	} else if (read_promise(bid).marker == PERF_CONTEXT_USER_DEFERRED) {
		problem = check_promise(expect, bid, address);
	} else {
		problem = check_build_id(expect, bid, address);
	}
	if (problem)
		sample_fail(expect, sample, "BUILD_ID_OFFSET: %s", problem);
}

const struct sample_type sample_types[SAMPLE_TYPES] = {
	{
		.name = "IP",
		.bit = (1ULL << 0),
		.excludes = 0,
		.needs = "",
	},
	{
		.name = "REGS_INTR",
		.bit = (1ULL << 18),
		.excludes = 0,
		.needs = "",
	},
	{
		.name = "BUILD_ID_OFFSET",
		.bit = (1ULL << 25),
		.excludes = 0,
		.needs = "",
		.check = oracle_build_id_offset,
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
		decode_regs_intr,
		decode_build_id_offset,
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

static const struct build_id_offset *answer(const struct record *record)
{
	if (record->header->type != PERF_RECORD_CALLCHAIN_DEFERRED ||
	    !record->callchain_deferred.nr)
		return NULL;
	return record->callchain_deferred.entries;
}

/* The address that a cookie stands for, or 0. */
static __u64 promised(__u64 cookie)
{
	for (unsigned int i = 0; i < promise_count; i++)
		if (promises[i].cookie == cookie)
			return promises[i].address;
	return 0;
}

/* The same for answers: each stands for the address of its sample. */
static void on_answer(struct expect *expect, const struct record *record)
{
	const struct build_id_offset *entry = answer(record);
	const char *problem;
	__u64 address;

	if (!entry)
		return;
	address = promised(record->callchain_deferred.cookie);
	problem = check_build_id(expect, entry, address);
	if (problem)
		record_fail(record, "%s", problem);
	if (address >= code_start && address < code_end)
		from_code_resolved += !!entry->size;
}

/* Fault from the code, and check what the samples say. */
static void fault(void *code, struct expect *expect, bool must, bool defer)
{
	code_start = (__u64)code;
	code_end = code_start + 4096;
	from_code = 0;
	from_code_resolved = 0;
	elf_code_fault(code);		/* its own page is there now */
	expect_begin(expect, &event, SOURCE_FAULTS);
	expect->must_resolve = must;
	expect->on_sample = on_sample;
	event_enable(&event);
	for (unsigned int i = 0; i < FAULTS; i++)
		elf_code_fault(code);
	event_disable(&event);
	expect_end(expect);
	check_ring(expect, defer ? on_answer : NULL);
	ktap_diag("%u samples from the made code, %u resolved", from_code,
		  from_code_resolved);
	if (from_code != FAULTS)
		ktap_fail(RULE_SAMPLES_COUNT "%u samples from the made code; expected %u",
			  from_code, FAULTS);
}

void *elf_file_code(const struct elf_file *file, unsigned int page)
{
	void *map = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE,
			 file->fd, (HEADER_PAGES + page) * PAGE + file->hole);

	if (map == MAP_FAILED)
		ktap_stop(RULE_TEST_SETUP "mmap: %m");
	return map;
}

static void one_file(const struct file_case *test, bool defer)
{
	struct elf_file file = test->file;
	struct expect expect;

	open_faults(defer);
	elf_file_make(&file);
	elf_file_headers(&file);
	fault(elf_file_code(&file, 1), &expect, true, defer);
	if (!test->unresolved && from_code_resolved < least_resolved(FAULTS))
		ktap_fail(RULE_BUILD_ID_RESOLVED
			  "%u of %u samples from the made code have a build ID; expected all",
			  from_code_resolved, FAULTS);
}

static void in_place(const void *arg)
{
	one_file(arg, false);
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
	for (unsigned int i = 0; i < ARRAY_SIZE(file_cases); i++) {
		ktap_add(in_place, &file_cases[i], "in_place.%s", file_cases[i].name);
	}
	return ktap_main(argc, argv);
}
