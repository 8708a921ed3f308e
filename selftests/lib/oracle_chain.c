// SPDX-License-Identifier: GPL-2.0
/* Oracles of callchains, of build IDs with offsets, and of raw data. */
#include "ktap.h"
#include "oracle.h"
#include "work.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DEFAULT_MAX_STACK	PERF_MAX_STACK_DEPTH
#define SHORT_CHAIN		4	/* not worth reading the limit for */

/* The form that promises an answer later, where an ID stands otherwise. */
struct promise {
	__u64 zero;
	__u64 marker;
	__u64 cookie;
	__u64 address;
};

static struct promise read_promise(const struct build_id_offset *bid)
{
	struct promise promise;

	memcpy(&promise, bid, sizeof(promise));
	return promise;
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

/* One chain in either form, or in both: ips or entries may be NULL. */
struct chain {
	const char *name;
	__u64 nr;
	const __u64 *ips;
	const struct build_id_offset *entries;
};

static __u64 chain_value(const struct chain *chain, __u64 i)
{
	return chain->ips ? chain->ips[i] : chain->entries[i].offset;
}

static bool chain_plain(const struct chain *chain, __u64 i)
{
	return !chain->entries || !chain->entries[i].size;
}

static void chain_fail(struct expect *expect, const struct sample *sample,
		       const struct chain *chain, __u64 i, const char *problem)
{
	sample_fail(expect, sample, "%s[%llu]: %s", chain->name, i, problem);
}

static const char *check_context(const struct perf_event_attr *attr,
				 const struct sample *sample, __u64 context,
				 __u64 before)
{
	switch (context) {
	case PERF_CONTEXT_KERNEL:
		if (attr->exclude_callchain_kernel)
			return RULE_CHAIN_EXCLUDED "a kernel part, though it is excluded";
		if (in_user(sample))
			return RULE_CHAIN_CONTEXT "a kernel part in a sample of user space";
		return before ? RULE_CHAIN_CONTEXT "the kernel part is not the first" : NULL;
	case PERF_CONTEXT_USER:
		if (attr->exclude_callchain_user)
			return RULE_CHAIN_EXCLUDED "a user part, though it is excluded";
		return before && before != PERF_CONTEXT_KERNEL ?
		       RULE_CHAIN_CONTEXT "the user part follows no kernel part" : NULL;
	case PERF_CONTEXT_USER_DEFERRED:
		if (attr->exclude_callchain_user)
			return RULE_CHAIN_EXCLUDED "a deferred user part, though it is excluded";
		return attr_defers(attr) ? NULL :
		       RULE_DEFERRED_ASKED
		       "deferred; expected an entry in place: attr.defer_callchain is not set";
	default:
		return RULE_CHAIN_CONTEXT "no known context marker";
	}
}

/* First address of the sample's own part: where it was taken. */
static const char *check_first(const struct sample *sample, __u64 context,
			       const struct chain *chain, __u64 i)
{
	bool own = in_user(sample) ? context == PERF_CONTEXT_USER :
				     context == PERF_CONTEXT_KERNEL;

	if (own && (sample->bits & PERF_SAMPLE_IP) && chain_plain(chain, i) &&
	    chain_value(chain, i) != sample->ip.ip)
		return RULE_CHAIN_FIRST "the first entry is not IP; expected IP";
	return NULL;
}

/* In place, no more than PERF_MAX_STACK_DEPTH entries need be resolved. */
static const char *check_user_entry(struct expect *expect,
				    const struct build_id_offset *bid,
				    __u64 address, __u64 part)
{
	bool must_resolve = expect->must_resolve;
	const char *problem;

	if (part >= PERF_MAX_STACK_DEPTH)
		expect->must_resolve = false;
	problem = check_build_id(expect, bid, address);
	expect->must_resolve = must_resolve;
	return problem;
}

static const char *check_entry(struct expect *expect, const struct chain *chain,
			       __u64 i, __u64 context, __u64 part)
{
	const struct build_id_offset *bid = chain->entries ? &chain->entries[i] : NULL;
	__u64 address = chain->ips ? chain->ips[i] : 0;

	if (context == PERF_CONTEXT_USER)
		return bid ? check_user_entry(expect, bid, address, part) : NULL;
	if (context == PERF_CONTEXT_USER_DEFERRED) {
		expect->deferred++;
		if (!chain_value(chain, i))
			return RULE_DEFERRED_COOKIE "the cookie is 0";
	} else if (!(chain_value(chain, i) >> 63)) {
		return RULE_CHAIN_CONTEXT "an entry of the kernel part is no kernel address";
	}
	return bid ? check_plain(bid, address) : NULL;
}

/* How many entries a chain may have: attr.sample_max_stack, or the sysctl. */
static __u64 max_stack(const struct perf_event_attr *attr)
{
	FILE *file;
	unsigned int limit = DEFAULT_MAX_STACK;

#if HAVE_SAMPLE_MAX_STACK
	if (attr->sample_max_stack)
		return attr->sample_max_stack;
#else
	(void)attr;
#endif
	file = fopen("/proc/sys/kernel/perf_event_max_stack", "re");
	if (file) {
		if (fscanf(file, "%u", &limit) != 1)
			limit = DEFAULT_MAX_STACK;
		fclose(file);
	}
	return limit;
}

static void check_chain(struct expect *expect, const struct sample *sample,
			const struct chain *chain)
{
	const struct perf_event_attr *attr = &expect->event->attr;
	__u64 context = 0, part = 0, depth = 0;
	const char *problem;

	for (__u64 i = 0; i < chain->nr; i++) {
		__u64 value = chain_value(chain, i);
		bool marker = chain_plain(chain, i) && value >= PERF_CONTEXT_MAX;

		if (marker && context != PERF_CONTEXT_USER_DEFERRED) {
			problem = check_context(attr, sample, value, context);
			if (!problem && chain->entries)
				problem = check_plain(&chain->entries[i], value);
			context = value;
			part = 0;
		} else if (!context) {
			problem = RULE_CHAIN_CONTEXT "the first entry is no context marker";
			context = PERF_CONTEXT_KERNEL;
		} else {
			problem = check_entry(expect, chain, i, context, part);
			if (!problem && !part)
				problem = check_first(sample, context, chain, i);
			if (context == PERF_CONTEXT_USER_DEFERRED && part)
				problem = RULE_DEFERRED_COOKIE
					  "more than a cookie in the deferred part";
			part++;
			depth++;
		}
		if (problem)
			chain_fail(expect, sample, chain, i, problem);
	}
	if (context == PERF_CONTEXT_USER_DEFERRED && part != 1)
		sample_fail(expect, sample, RULE_DEFERRED_COOKIE
			    "%s: a deferred part without a cookie",
			    chain->name);
	if (context == PERF_CONTEXT_USER_DEFERRED)
		depth--;		/* the cookie is no entry */
	if (depth > SHORT_CHAIN && depth > max_stack(attr))
		sample_fail(expect, sample, RULE_CHAIN_LIMIT
			    "%s: %llu entries; expected at most %llu",
			    chain->name, depth, max_stack(attr));
}

void oracle_callchain(struct expect *expect, const struct sample *sample)
{
	struct chain chain = {
		.name = "CALLCHAIN",
		.nr = sample->callchain.nr,
		.ips = sample->callchain.ips,
	};

	check_chain(expect, sample, &chain);
}

void oracle_callchain_build_id_offset(struct expect *expect,
				      const struct sample *sample)
{
	struct chain chain = {
		.name = "CALLCHAIN_BUILD_ID_OFFSET",
		.nr = sample->callchain_build_id_offset.nr,
		.entries = sample->callchain_build_id_offset.entries,
	};

	if (sample->bits & PERF_SAMPLE_CALLCHAIN) {
		/* Cut short only where the record would grow too large. */
		bool full = sample->header->size + sizeof(*chain.entries) > 0xffff;

		if (chain.nr != sample->callchain.nr &&
		    !(full && chain.nr < sample->callchain.nr))
			sample_fail(expect, sample, RULE_CHAIN_SAME
				    "CALLCHAIN_BUILD_ID_OFFSET has %llu entries; expected %llu, as CALLCHAIN has",
				    chain.nr, sample->callchain.nr);
		if (chain.nr <= sample->callchain.nr)
			chain.ips = sample->callchain.ips;
	}
	check_chain(expect, sample, &chain);
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
