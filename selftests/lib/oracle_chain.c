// SPDX-License-Identifier: GPL-2.0
/* Oracles of callchains, in either form. */
#include "ktap.h"
#include "oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_MAX_STACK	PERF_MAX_STACK_DEPTH
#define SHORT_CHAIN		4	/* not worth reading the limit for */

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
