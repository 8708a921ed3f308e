/* SPDX-License-Identifier: GPL-2.0 */
/* Generated for one series: the sample types that its tests are about. */
#ifndef SCOPE_H
#define SCOPE_H

#include "compiler.h"
#include "ktap.h"

#include <linux/types.h>
#include <stdbool.h>

struct scoped_type {
	const char *name;	/* without PERF_SAMPLE_ */
	__u64 bit;
	bool new;		/* base does not have it */
};

struct combination {
	const char *name;
	__u64 bits;
	bool basic;		/* also tried with events that are slow to fire */
};

/* The lowest bit that no sample type has. */
#define SCOPE_NEXT_BIT		0x8000000ULL
/* The bits that base does not have. */
#define SCOPE_NEW_BITS		0x6000000ULL
/* Every bit that the header defines. */
#define SCOPE_ALL_BITS		0x7ffffffULL
/* The bits in scope. */
#define SCOPE_BITS		0x6000021ULL

#define SCOPE_BUILD_ID_OFFSET
#define SCOPE_CALLCHAIN
#define SCOPE_CALLCHAIN_BUILD_ID_OFFSET
#define SCOPE_IP

#define SCOPE_TYPES		4
#define SCOPE_COMBINATIONS	115

static const struct scoped_type scope_types[SCOPE_TYPES] __maybe_unused = {
	/* named in an added line */
	{ "IP", 0x1ULL, false },
	/* named in an added line */
	{ "CALLCHAIN", 0x20ULL, false },
	/* new in the UAPI header */
	{ "BUILD_ID_OFFSET", 0x2000000ULL, true },
	/* new in the UAPI header */
	{ "CALLCHAIN_BUILD_ID_OFFSET", 0x4000000ULL, true },
};

static const struct combination combinations[SCOPE_COMBINATIONS] __maybe_unused = {
	{ "IP", 0x1ULL, true },
	{ "CALLCHAIN", 0x20ULL, true },
	{ "BUILD_ID_OFFSET", 0x2000000ULL, true },
	{ "CALLCHAIN_BUILD_ID_OFFSET", 0x4000000ULL, true },
	{ "BUILD_ID_OFFSET+CALLCHAIN_BUILD_ID_OFFSET", 0x6000000ULL, true },
	{ "IP+CALLCHAIN+BUILD_ID_OFFSET+CALLCHAIN_BUILD_ID_OFFSET+TID+TIME+IDENTIFIER", 0x6010027ULL, true },
	{ "IP+TID", 0x3ULL, true },
	{ "IP+TIME", 0x5ULL, true },
	{ "IP+CALLCHAIN", 0x21ULL, true },
	{ "IP+IDENTIFIER", 0x10001ULL, true },
	{ "CALLCHAIN+TID", 0x22ULL, true },
	{ "CALLCHAIN+TIME", 0x24ULL, true },
	{ "CALLCHAIN+IDENTIFIER", 0x10020ULL, true },
	{ "IP+BUILD_ID_OFFSET", 0x2000001ULL, true },
	{ "BUILD_ID_OFFSET+TID", 0x2000002ULL, true },
	{ "BUILD_ID_OFFSET+TIME", 0x2000004ULL, true },
	{ "CALLCHAIN+BUILD_ID_OFFSET", 0x2000020ULL, true },
	{ "BUILD_ID_OFFSET+IDENTIFIER", 0x2010000ULL, true },
	{ "IP+CALLCHAIN_BUILD_ID_OFFSET", 0x4000001ULL, true },
	{ "CALLCHAIN_BUILD_ID_OFFSET+TID", 0x4000002ULL, true },
	{ "CALLCHAIN_BUILD_ID_OFFSET+TIME", 0x4000004ULL, true },
	{ "CALLCHAIN+CALLCHAIN_BUILD_ID_OFFSET", 0x4000020ULL, true },
	{ "CALLCHAIN_BUILD_ID_OFFSET+IDENTIFIER", 0x4010000ULL, true },
	{ "IP+ADDR", 0x9ULL, false },
	{ "IP+READ", 0x11ULL, false },
	{ "IP+ID", 0x41ULL, false },
	{ "IP+CPU", 0x81ULL, false },
	{ "IP+PERIOD", 0x101ULL, false },
	{ "IP+STREAM_ID", 0x201ULL, false },
	{ "IP+RAW", 0x401ULL, false },
	{ "IP+BRANCH_STACK", 0x801ULL, false },
	{ "IP+REGS_USER", 0x1001ULL, false },
	{ "IP+STACK_USER", 0x2001ULL, false },
	{ "IP+WEIGHT", 0x4001ULL, false },
	{ "IP+DATA_SRC", 0x8001ULL, false },
	{ "IP+TRANSACTION", 0x20001ULL, false },
	{ "IP+REGS_INTR", 0x40001ULL, false },
	{ "IP+PHYS_ADDR", 0x80001ULL, false },
	{ "IP+AUX", 0x100001ULL, false },
	{ "IP+CGROUP", 0x200001ULL, false },
	{ "IP+DATA_PAGE_SIZE", 0x400001ULL, false },
	{ "IP+CODE_PAGE_SIZE", 0x800001ULL, false },
	{ "IP+WEIGHT_STRUCT", 0x1000001ULL, false },
	{ "CALLCHAIN+ADDR", 0x28ULL, false },
	{ "CALLCHAIN+READ", 0x30ULL, false },
	{ "CALLCHAIN+ID", 0x60ULL, false },
	{ "CALLCHAIN+CPU", 0xa0ULL, false },
	{ "CALLCHAIN+PERIOD", 0x120ULL, false },
	{ "CALLCHAIN+STREAM_ID", 0x220ULL, false },
	{ "CALLCHAIN+RAW", 0x420ULL, false },
	{ "CALLCHAIN+BRANCH_STACK", 0x820ULL, false },
	{ "CALLCHAIN+REGS_USER", 0x1020ULL, false },
	{ "CALLCHAIN+STACK_USER", 0x2020ULL, false },
	{ "CALLCHAIN+WEIGHT", 0x4020ULL, false },
	{ "CALLCHAIN+DATA_SRC", 0x8020ULL, false },
	{ "CALLCHAIN+TRANSACTION", 0x20020ULL, false },
	{ "CALLCHAIN+REGS_INTR", 0x40020ULL, false },
	{ "CALLCHAIN+PHYS_ADDR", 0x80020ULL, false },
	{ "CALLCHAIN+AUX", 0x100020ULL, false },
	{ "CALLCHAIN+CGROUP", 0x200020ULL, false },
	{ "CALLCHAIN+DATA_PAGE_SIZE", 0x400020ULL, false },
	{ "CALLCHAIN+CODE_PAGE_SIZE", 0x800020ULL, false },
	{ "CALLCHAIN+WEIGHT_STRUCT", 0x1000020ULL, false },
	{ "BUILD_ID_OFFSET+ADDR", 0x2000008ULL, false },
	{ "BUILD_ID_OFFSET+READ", 0x2000010ULL, false },
	{ "BUILD_ID_OFFSET+ID", 0x2000040ULL, false },
	{ "BUILD_ID_OFFSET+CPU", 0x2000080ULL, false },
	{ "BUILD_ID_OFFSET+PERIOD", 0x2000100ULL, false },
	{ "BUILD_ID_OFFSET+STREAM_ID", 0x2000200ULL, false },
	{ "BUILD_ID_OFFSET+RAW", 0x2000400ULL, false },
	{ "BUILD_ID_OFFSET+BRANCH_STACK", 0x2000800ULL, false },
	{ "BUILD_ID_OFFSET+REGS_USER", 0x2001000ULL, false },
	{ "BUILD_ID_OFFSET+STACK_USER", 0x2002000ULL, false },
	{ "BUILD_ID_OFFSET+WEIGHT", 0x2004000ULL, false },
	{ "BUILD_ID_OFFSET+DATA_SRC", 0x2008000ULL, false },
	{ "BUILD_ID_OFFSET+TRANSACTION", 0x2020000ULL, false },
	{ "BUILD_ID_OFFSET+REGS_INTR", 0x2040000ULL, false },
	{ "BUILD_ID_OFFSET+PHYS_ADDR", 0x2080000ULL, false },
	{ "BUILD_ID_OFFSET+AUX", 0x2100000ULL, false },
	{ "BUILD_ID_OFFSET+CGROUP", 0x2200000ULL, false },
	{ "BUILD_ID_OFFSET+DATA_PAGE_SIZE", 0x2400000ULL, false },
	{ "BUILD_ID_OFFSET+CODE_PAGE_SIZE", 0x2800000ULL, false },
	{ "BUILD_ID_OFFSET+WEIGHT_STRUCT", 0x3000000ULL, false },
	{ "CALLCHAIN_BUILD_ID_OFFSET+ADDR", 0x4000008ULL, false },
	{ "CALLCHAIN_BUILD_ID_OFFSET+READ", 0x4000010ULL, false },
	{ "CALLCHAIN_BUILD_ID_OFFSET+ID", 0x4000040ULL, false },
	{ "CALLCHAIN_BUILD_ID_OFFSET+CPU", 0x4000080ULL, false },
	{ "CALLCHAIN_BUILD_ID_OFFSET+PERIOD", 0x4000100ULL, false },
	{ "CALLCHAIN_BUILD_ID_OFFSET+STREAM_ID", 0x4000200ULL, false },
	{ "CALLCHAIN_BUILD_ID_OFFSET+RAW", 0x4000400ULL, false },
	{ "CALLCHAIN_BUILD_ID_OFFSET+BRANCH_STACK", 0x4000800ULL, false },
	{ "CALLCHAIN_BUILD_ID_OFFSET+REGS_USER", 0x4001000ULL, false },
	{ "CALLCHAIN_BUILD_ID_OFFSET+STACK_USER", 0x4002000ULL, false },
	{ "CALLCHAIN_BUILD_ID_OFFSET+WEIGHT", 0x4004000ULL, false },
	{ "CALLCHAIN_BUILD_ID_OFFSET+DATA_SRC", 0x4008000ULL, false },
	{ "CALLCHAIN_BUILD_ID_OFFSET+TRANSACTION", 0x4020000ULL, false },
	{ "CALLCHAIN_BUILD_ID_OFFSET+REGS_INTR", 0x4040000ULL, false },
	{ "CALLCHAIN_BUILD_ID_OFFSET+PHYS_ADDR", 0x4080000ULL, false },
	{ "CALLCHAIN_BUILD_ID_OFFSET+AUX", 0x4100000ULL, false },
	{ "CALLCHAIN_BUILD_ID_OFFSET+CGROUP", 0x4200000ULL, false },
	{ "CALLCHAIN_BUILD_ID_OFFSET+DATA_PAGE_SIZE", 0x4400000ULL, false },
	{ "CALLCHAIN_BUILD_ID_OFFSET+CODE_PAGE_SIZE", 0x4800000ULL, false },
	{ "CALLCHAIN_BUILD_ID_OFFSET+WEIGHT_STRUCT", 0x5000000ULL, false },
	{ "all", 0x6cff7ffULL, true },
	{ "pairwise_01", 0x4c2d339ULL, true },
	{ "pairwise_02", 0x241a444ULL, true },
	{ "pairwise_03", 0x78d34abULL, true },
	{ "pairwise_04", 0x8f47b2ULL, true },
	{ "pairwise_05", 0x64a7146ULL, true },
	{ "pairwise_06", 0x70d81dfULL, true },
	{ "pairwise_07", 0x580b615ULL, true },
	{ "pairwise_08", 0x446195ULL, true },
	{ "pairwise_09", 0xec66dULL, true },
	{ "pairwise_10", 0x2c172caULL, true },
	{ "pairwise_11", 0x702b589ULL, true },
};

/* Skip the case when the kernel that it runs on does not have these types. */
static inline void need_bits(__u64 bits)
{
	if (bits & ~SCOPE_ALL_BITS)
		ktap_skip("this tree has no such sample type");
	if ((bits & SCOPE_NEW_BITS) && ktap_kernel == KERNEL_BASE)
		ktap_skip("the base kernel refuses the bit");
}

#endif
