// SPDX-License-Identifier: GPL-2.0
/* Oracles of build IDs with offsets: in place, promised, and answered. */
#include "ktap.h"
#include "oracle.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

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
const char *check_plain(const struct build_id_offset *bid, __u64 address)
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
