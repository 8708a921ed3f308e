/* SPDX-License-Identifier: GPL-2.0 */
/* Generated from the sample-type specs: the layout of samples and records. */
#ifndef DECODE_H
#define DECODE_H

#include "compat.h"
#include "compiler.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>

/* a build ID and an offset in its file, or size 0 and an address */
struct build_id_offset {
	__u8 size;
	__u8 reserved_1;
	__u16 reserved_2;
	unsigned char build_id[20];
	__u64 offset;
} __packed;

/* one branch: struct perf_branch_entry */
struct branch_entry {
	__u64 from;
	__u64 to;
	__u64 flags;
} __packed;

/* device and inode of one namespace */
struct namespace_link {
	__u64 dev;
	__u64 inode;
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
			__u32 pid;
			__u32 tid;
			__u64 addr;
			__u64 len;
			__u64 pgoff;
			const char *filename;
		} mmap;
		struct {
			__u64 id;
			__u64 lost;
		} lost;
		struct {
			__u32 pid;
			__u32 tid;
			const char *comm;
		} comm;
		struct {
			__u32 pid;
			__u32 ppid;
			__u32 tid;
			__u32 ptid;
			__u64 time;
		} exit;
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
			__u32 pid;
			__u32 ppid;
			__u32 tid;
			__u32 ptid;
			__u64 time;
		} fork;
		struct {
			__u32 pid;
			__u32 tid;
			__u64 nr;
			__u64 value;
			__u64 time_enabled;
			__u64 time_running;
			__u64 id;
			__u64 lost;
			const __u64 *values;
		} read;
		struct {
			__u32 pid;
			__u32 tid;
			__u64 addr;
			__u64 len;
			__u64 pgoff;
			__u32 maj;
			__u32 min;
			__u64 ino;
			__u64 ino_generation;
			__u8 build_id_size;
			__u8 reserved_1;
			__u16 reserved_2;
			unsigned char build_id[20];
			__u32 prot;
			__u32 flags;
			const char *filename;
		} mmap2;
		struct {
			__u64 aux_offset;
			__u64 aux_size;
			__u64 flags;
		} aux;
		struct {
			__u32 pid;
			__u32 tid;
		} itrace_start;
		struct {
			__u64 lost;
		} lost_samples;
		struct {
			__u32 next_prev_pid;
			__u32 next_prev_tid;
		} switch_cpu_wide;
		struct {
			__u32 pid;
			__u32 tid;
			__u64 nr_namespaces;
			const struct namespace_link *links;
		} namespaces;
		struct {
			__u64 addr;
			__u32 len;
			__u16 ksym_type;
			__u16 flags;
			const char *symbol;
		} ksymbol;
		struct {
			__u16 type;
			__u16 flags;
			__u32 id;
			unsigned char tag[8];
		} bpf_event;
		struct {
			__u64 id;
			const char *path;
		} cgroup;
		struct {
			__u64 addr;
			__u16 old_len;
			__u16 new_len;
			const unsigned char *bytes;
			const char *pad;
		} text_poke;
		struct {
			__u64 hw_id;
		} aux_output_hw_id;
		struct {
			__u64 cookie;
			__u64 nr;
			const __u64 *ips;
			const struct build_id_offset *entries;
		} callchain_deferred;
	};
};

struct expect;

struct sample_type {
	const char *name;	/* without PERF_SAMPLE_ */
	__u64 bit;
	__u64 excludes;		/* bits that the kernel refuses with it */
	const char *needs;	/* "", or what the machine must have */
	void (*check)(struct expect *expect, const struct sample *sample);
};

#define SAMPLE_TYPES 27

/* All sample types that have a spec, in the order of a record. */
extern const struct sample_type sample_types[SAMPLE_TYPES];

/* The type of a bit, or NULL. */
const struct sample_type *sample_type(__u64 bit);

/* Registers that are asked for, and the number of ip among all. */
#define REGS_MASK	0x3c6ULL
#define REGS_IP		8

/* Fill the attr fields that bits need, as their specs say. */
void attr_for_bits(struct perf_event_attr *attr, __u64 bits);

/*
 * Decode a sample whose size bytes lie in one piece. Returns NULL, or what is
 * wrong with it; the text lives until the next call.
 */
const char *decode_sample(const struct perf_event_attr *attr,
			  const struct perf_event_header *header,
			  struct sample *sample);

/* The same for every other record. */
const char *decode_record(const struct perf_event_attr *attr,
			  const struct perf_event_header *header,
			  struct record *record);

/* Size of struct sample_id under attr, in bytes. */
size_t sample_id_size(const struct perf_event_attr *attr);

/* Name of a record type, or "?". */
const char *record_name(__u32 type);

/* Print a decoded sample, one "# " line for each type. */
void print_sample(const struct sample *sample);

#endif
