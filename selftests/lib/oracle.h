/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the values in a sample must be. An oracle knows the value from another
 * source (/proc, an ioctl, the test's own doing) or from another field of the
 * same sample; where neither says it, the oracle stays silent.
 */
#ifndef ORACLE_H
#define ORACLE_H

#include "compiler.h"
#include "decode.h"
#include "event.h"
#include "maps.h"

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

/* Begin to expect samples of this task: pins it to a CPU, notes the time. */
void expect_begin(struct expect *expect, struct event *event,
		  enum source source);

/* The samples are made: notes the time and reads the mappings. */
void expect_end(struct expect *expect);

/* Check every value of one decoded sample. */
void check_sample(struct expect *expect, const struct sample *sample);

/*
 * Walk the ring to its end: every record is decoded, every sample checked. A
 * record whose decoded length is not header.size fails the case, and so does
 * what was written behind the last record. on_record, when not NULL, is called
 * for each record that is not a sample.
 */
void check_ring(struct expect *expect,
		void (*on_record)(struct expect *expect,
				  const struct record *record));

/*
 * Fail the case because of sample, and show it: decoded, and as bytes. Use it
 * in an oracle.
 */
void sample_fail(struct expect *expect, const struct sample *sample,
		 const char *format, ...)
	__printf(3, 4);

/* The same for a record that is not a sample. */
void record_fail(const struct record *record, const char *format, ...)
	__printf(2, 3);

/* Check the event and the time that the sample_id behind a record has, if it has one. */
void check_record_id(struct expect *expect, const struct record *record);

/*
 * Check one build ID and offset that stands for a user address. address is 0
 * when no other field tells it. Returns NULL, or what is wrong.
 */
const char *check_build_id(struct expect *expect,
			   const struct build_id_offset *bid, __u64 address);

/*
 * The same for the entry of an answer that stands for the address of a sample;
 * address is 0 when the sample does not tell it.
 */
const char *check_answer(struct expect *expect,
			 const struct build_id_offset *bid, __u64 address);

/* An entry that must have no build ID: of the kernel, or a marker. address: as above. */
const char *check_plain(const struct build_id_offset *bid, __u64 address);

/* Was the CPU in user mode? */
bool in_user(const struct sample *sample);

bool all_zero(const void *data, size_t size);

/*
 * What the proofs of a spec come to: value, of what, is equal to, at least or
 * at most another one. said is how the spec names that.
 */
void prove_equal(struct expect *expect, const struct sample *sample,
		 const char *what, __u64 value, __u64 other, const char *said);
void prove_least(struct expect *expect, const struct sample *sample,
		 const char *what, __u64 value, __u64 other, const char *said);
void prove_most(struct expect *expect, const struct sample *sample,
		const char *what, __u64 value, __u64 other, const char *said);

/* Was the fact read? If not, the case says so. */
bool fact_known(struct expect *expect, const struct sample *sample,
		__u64 value, const char *name);

/* The value is at least what it was in the sample before. */
void prove_rises(struct expect *expect, const struct sample *sample,
		 const char *what, __u64 value, unsigned int number);

/*
 * How many of count entries must have a build ID when expect.must_resolve is
 * set. None on a kernel without bpf(2), whose code looks build IDs up: every
 * entry then has size 0 and keeps its address.
 */
unsigned int least_resolved(unsigned int count);

/* ip among the registers that mask asks for; 0 when it does not. */
__u64 reg_ip(const __u64 *regs, __u64 mask);

/* The oracles, one for each name in the specs. */
typedef void oracle(struct expect *expect, const struct sample *sample);

oracle oracle_ip, oracle_addr, oracle_read, oracle_callchain, oracle_raw;
oracle oracle_stack_user, oracle_regs_user, oracle_regs_intr, oracle_data_src;
oracle oracle_phys_addr, oracle_page_size, oracle_build_id_offset;
oracle oracle_callchain_build_id_offset;

#endif
