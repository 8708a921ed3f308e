// SPDX-License-Identifier: GPL-2.0
/* Generated from the sample-type specs: the layout of samples and records. */
#include "decode.h"
#include "ktap.h"
#include "oracle.h"

#include <stdio.h>
#include <string.h>

#define SHOWN_ELEMENTS 12

/* What is left of a record. what names the field that is being read. */
struct cursor {
	const char *at;
	size_t left;
	bool failed;
	char problem[160];
};

static const void *take(struct cursor *c, __u64 count, size_t size,
			const char *what)
{
	const void *at = c->at;

	if (c->failed)
		return NULL;
	if (size && count > c->left / size) {
		snprintf(c->problem, sizeof(c->problem),
			 "%s needs %llu times %zu bytes, %zu are left", what,
			 count, size, c->left);
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

/* A string ends in a NUL byte, and its padding ends on 8 bytes. */
static const char *take_string(struct cursor *c, size_t reserved,
			       const char *what)
{
	const char *text = c->at;
	size_t size = c->left > reserved ? c->left - reserved : 0;

	if (c->failed || (size && memchr(text, '\0', size)))
		return take(c, size, 1, what);
	snprintf(c->problem, sizeof(c->problem), "%s does not end", what);
	c->failed = true;
	return NULL;
}

static __u64 hweight64(__u64 word)
{
	return __builtin_popcountll(word);
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

static __maybe_unused void
show_namespace_link(const char *name, const struct namespace_link *element, __u64 count)
{
	for (__u64 i = 0; i < count && i < SHOWN_ELEMENTS; i++) {
		char text[256];
		int at = 0;

		at += sprintf(text + at, " dev=%#llx",
			      (__u64)element[i].dev);
		at += sprintf(text + at, " inode=%#llx",
			      (__u64)element[i].inode);
		ktap_diag("    %s[%llu]%.*s", name, i, at, text);
	}
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

static void show_sample_identifier(const struct sample *s)
{
	ktap_diag("  IDENTIFIER");
	ktap_diag("    id %#llx", (__u64)s->identifier.id);
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

static void show_sample_ip(const struct sample *s)
{
	ktap_diag("  IP");
	ktap_diag("    ip %#llx", (__u64)s->ip.ip);
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

static void show_sample_tid(const struct sample *s)
{
	ktap_diag("  TID");
	ktap_diag("    pid %#llx", (__u64)s->tid.pid);
	ktap_diag("    tid %#llx", (__u64)s->tid.tid);
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

static void show_sample_time(const struct sample *s)
{
	ktap_diag("  TIME");
	ktap_diag("    time %#llx", (__u64)s->time.time);
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

static void show_sample_addr(const struct sample *s)
{
	ktap_diag("  ADDR");
	ktap_diag("    addr %#llx", (__u64)s->addr.addr);
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

static void show_sample_id(const struct sample *s)
{
	ktap_diag("  ID");
	ktap_diag("    id %#llx", (__u64)s->id.id);
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

static void show_sample_stream_id(const struct sample *s)
{
	ktap_diag("  STREAM_ID");
	ktap_diag("    stream_id %#llx", (__u64)s->stream_id.stream_id);
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

static void show_sample_cpu(const struct sample *s)
{
	ktap_diag("  CPU");
	ktap_diag("    cpu %#llx", (__u64)s->cpu.cpu);
	ktap_diag("    res %#llx", (__u64)s->cpu.res);
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

static void show_sample_period(const struct sample *s)
{
	ktap_diag("  PERIOD");
	ktap_diag("    period %#llx", (__u64)s->period.period);
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

static void show_sample_callchain(const struct sample *s)
{
	ktap_diag("  CALLCHAIN");
	ktap_diag("    nr %#llx", (__u64)s->callchain.nr);
	if (s->callchain.ips)
		show_words("ips", s->callchain.ips, s->callchain.nr);
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

static void show_sample_raw(const struct sample *s)
{
	ktap_diag("  RAW");
	ktap_diag("    size %#llx", (__u64)s->raw.size);
	if (s->raw.data)
		show_bytes("data", s->raw.data, s->raw.size);
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

static void show_sample_regs_user(const struct sample *s)
{
	ktap_diag("  REGS_USER");
	ktap_diag("    abi %#llx", (__u64)s->regs_user.abi);
	if (s->regs_user.regs)
		show_words("regs", s->regs_user.regs, 0);
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

static void show_sample_stack_user(const struct sample *s)
{
	ktap_diag("  STACK_USER");
	ktap_diag("    size %#llx", (__u64)s->stack_user.size);
	if (s->stack_user.data)
		show_bytes("data", s->stack_user.data, s->stack_user.size);
	ktap_diag("    dyn_size %#llx", (__u64)s->stack_user.dyn_size);
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

static void show_sample_weight(const struct sample *s)
{
	ktap_diag("  WEIGHT");
	ktap_diag("    full %#llx", (__u64)s->weight.full);
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

static void show_sample_weight_struct(const struct sample *s)
{
	ktap_diag("  WEIGHT_STRUCT");
	ktap_diag("    var1_dw %#llx", (__u64)s->weight_struct.var1_dw);
	ktap_diag("    var2_w %#llx", (__u64)s->weight_struct.var2_w);
	ktap_diag("    var3_w %#llx", (__u64)s->weight_struct.var3_w);
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

static void show_sample_data_src(const struct sample *s)
{
	ktap_diag("  DATA_SRC");
	ktap_diag("    data_src %#llx", (__u64)s->data_src.data_src);
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

static void show_sample_transaction(const struct sample *s)
{
	ktap_diag("  TRANSACTION");
	ktap_diag("    transaction %#llx", (__u64)s->transaction.transaction);
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

static void show_sample_regs_intr(const struct sample *s)
{
	ktap_diag("  REGS_INTR");
	ktap_diag("    abi %#llx", (__u64)s->regs_intr.abi);
	if (s->regs_intr.regs)
		show_words("regs", s->regs_intr.regs, 0);
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

static void show_sample_phys_addr(const struct sample *s)
{
	ktap_diag("  PHYS_ADDR");
	ktap_diag("    phys_addr %#llx", (__u64)s->phys_addr.phys_addr);
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

static void show_sample_cgroup(const struct sample *s)
{
	ktap_diag("  CGROUP");
	ktap_diag("    cgroup %#llx", (__u64)s->cgroup.cgroup);
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

static void show_sample_data_page_size(const struct sample *s)
{
	ktap_diag("  DATA_PAGE_SIZE");
	ktap_diag("    data_page_size %#llx", (__u64)s->data_page_size.data_page_size);
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

static void show_sample_code_page_size(const struct sample *s)
{
	ktap_diag("  CODE_PAGE_SIZE");
	ktap_diag("    code_page_size %#llx", (__u64)s->code_page_size.code_page_size);
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

static void show_sample_aux(const struct sample *s)
{
	ktap_diag("  AUX");
	ktap_diag("    size %#llx", (__u64)s->aux.size);
	if (s->aux.data)
		show_bytes("data", s->aux.data, s->aux.size);
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

static void show_sample_build_id_offset(const struct sample *s)
{
	ktap_diag("  BUILD_ID_OFFSET");
	show_build_id_offset("bid", &s->build_id_offset.bid, 1);
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

static void show_sample_callchain_build_id_offset(const struct sample *s)
{
	ktap_diag("  CALLCHAIN_BUILD_ID_OFFSET");
	ktap_diag("    nr %#llx", (__u64)s->callchain_build_id_offset.nr);
	if (s->callchain_build_id_offset.entries)
		show_build_id_offset("entries", s->callchain_build_id_offset.entries, s->callchain_build_id_offset.nr);
}

const struct sample_type sample_types[SAMPLE_TYPES] = {
	{
		.name = "IDENTIFIER",
		.bit = (1ULL << 16),
		.excludes = 0,
		.needs = "",
		.check = oracle_id,
	},
	{
		.name = "IP",
		.bit = (1ULL << 0),
		.excludes = 0,
		.needs = "",
		.check = oracle_ip,
	},
	{
		.name = "TID",
		.bit = (1ULL << 1),
		.excludes = 0,
		.needs = "",
		.check = oracle_tid,
	},
	{
		.name = "TIME",
		.bit = (1ULL << 2),
		.excludes = 0,
		.needs = "",
		.check = oracle_time,
	},
	{
		.name = "ADDR",
		.bit = (1ULL << 3),
		.excludes = 0,
		.needs = "",
		.check = oracle_addr,
	},
	{
		.name = "ID",
		.bit = (1ULL << 6),
		.excludes = 0,
		.needs = "",
		.check = oracle_id,
	},
	{
		.name = "STREAM_ID",
		.bit = (1ULL << 9),
		.excludes = 0,
		.needs = "",
		.check = oracle_stream_id,
	},
	{
		.name = "CPU",
		.bit = (1ULL << 7),
		.excludes = 0,
		.needs = "",
		.check = oracle_cpu,
	},
	{
		.name = "PERIOD",
		.bit = (1ULL << 8),
		.excludes = 0,
		.needs = "",
		.check = oracle_period,
	},
	{
		.name = "READ",
		.bit = (1ULL << 4),
		.excludes = 0,
		.needs = "",
		.check = oracle_read,
	},
	{
		.name = "CALLCHAIN",
		.bit = (1ULL << 5),
		.excludes = 0,
		.needs = "",
		.check = oracle_callchain,
	},
	{
		.name = "RAW",
		.bit = (1ULL << 10),
		.excludes = 0,
		.needs = "",
		.check = oracle_raw,
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
		.check = oracle_regs_user,
	},
	{
		.name = "STACK_USER",
		.bit = (1ULL << 13),
		.excludes = 0,
		.needs = "",
		.check = oracle_stack_user,
	},
	{
		.name = "WEIGHT",
		.bit = (1ULL << 14),
		.excludes = (1ULL << 24),
		.needs = "",
		.check = oracle_zero,
	},
	{
		.name = "WEIGHT_STRUCT",
		.bit = (1ULL << 24),
		.excludes = (1ULL << 14),
		.needs = "",
		.check = oracle_zero,
	},
	{
		.name = "DATA_SRC",
		.bit = (1ULL << 15),
		.excludes = 0,
		.needs = "",
		.check = oracle_data_src,
	},
	{
		.name = "TRANSACTION",
		.bit = (1ULL << 17),
		.excludes = 0,
		.needs = "",
		.check = oracle_zero,
	},
	{
		.name = "REGS_INTR",
		.bit = (1ULL << 18),
		.excludes = 0,
		.needs = "",
		.check = oracle_regs_intr,
	},
	{
		.name = "PHYS_ADDR",
		.bit = (1ULL << 19),
		.excludes = 0,
		.needs = "",
		.check = oracle_phys_addr,
	},
	{
		.name = "CGROUP",
		.bit = (1ULL << 21),
		.excludes = 0,
		.needs = "CONFIG_CGROUP_PERF",
		.check = oracle_nonzero,
	},
	{
		.name = "DATA_PAGE_SIZE",
		.bit = (1ULL << 22),
		.excludes = 0,
		.needs = "",
		.check = oracle_page_size,
	},
	{
		.name = "CODE_PAGE_SIZE",
		.bit = (1ULL << 23),
		.excludes = 0,
		.needs = "",
		.check = oracle_page_size,
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
		.check = oracle_build_id_offset,
	},
	{
		.name = "CALLCHAIN_BUILD_ID_OFFSET",
		.bit = (1ULL << 26),
		.excludes = 0,
		.needs = "",
		.check = oracle_callchain_build_id_offset,
	},
};

const struct sample_type *sample_type(__u64 bit)
{
	for (unsigned int i = 0; i < SAMPLE_TYPES; i++)
		if (sample_types[i].bit == bit)
			return &sample_types[i];
	return NULL;
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
		 "the sample decodes to %zu bytes, header.size is %u",
		 header->size - c.left, header->size);
	return c.problem;
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

/* PERF_RECORD_MMAP: A mapping was made. */
static void decode_record_mmap(struct cursor *c, size_t reserved,
	const struct perf_event_attr *attr,
	const struct perf_event_header *header, struct record *r)
{
	(void)attr;
	(void)header;
	(void)reserved;
	get(c, &r->mmap.pid, sizeof(r->mmap.pid), "MMAP.pid");
	get(c, &r->mmap.tid, sizeof(r->mmap.tid), "MMAP.tid");
	get(c, &r->mmap.addr, sizeof(r->mmap.addr), "MMAP.addr");
	get(c, &r->mmap.len, sizeof(r->mmap.len), "MMAP.len");
	get(c, &r->mmap.pgoff, sizeof(r->mmap.pgoff), "MMAP.pgoff");
	r->mmap.filename = take_string(c, reserved, "MMAP.filename");
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

/* PERF_RECORD_COMM: A task got a name. */
static void decode_record_comm(struct cursor *c, size_t reserved,
	const struct perf_event_attr *attr,
	const struct perf_event_header *header, struct record *r)
{
	(void)attr;
	(void)header;
	(void)reserved;
	get(c, &r->comm.pid, sizeof(r->comm.pid), "COMM.pid");
	get(c, &r->comm.tid, sizeof(r->comm.tid), "COMM.tid");
	r->comm.comm = take_string(c, reserved, "COMM.comm");
}

/* PERF_RECORD_EXIT: A task ended. */
static void decode_record_exit(struct cursor *c, size_t reserved,
	const struct perf_event_attr *attr,
	const struct perf_event_header *header, struct record *r)
{
	(void)attr;
	(void)header;
	(void)reserved;
	get(c, &r->exit.pid, sizeof(r->exit.pid), "EXIT.pid");
	get(c, &r->exit.ppid, sizeof(r->exit.ppid), "EXIT.ppid");
	get(c, &r->exit.tid, sizeof(r->exit.tid), "EXIT.tid");
	get(c, &r->exit.ptid, sizeof(r->exit.ptid), "EXIT.ptid");
	get(c, &r->exit.time, sizeof(r->exit.time), "EXIT.time");
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

/* PERF_RECORD_FORK: A task was made. */
static void decode_record_fork(struct cursor *c, size_t reserved,
	const struct perf_event_attr *attr,
	const struct perf_event_header *header, struct record *r)
{
	(void)attr;
	(void)header;
	(void)reserved;
	get(c, &r->fork.pid, sizeof(r->fork.pid), "FORK.pid");
	get(c, &r->fork.ppid, sizeof(r->fork.ppid), "FORK.ppid");
	get(c, &r->fork.tid, sizeof(r->fork.tid), "FORK.tid");
	get(c, &r->fork.ptid, sizeof(r->fork.ptid), "FORK.ptid");
	get(c, &r->fork.time, sizeof(r->fork.time), "FORK.time");
}

/* PERF_RECORD_READ: The counts of an inherited event whose task ended. */
static void decode_record_read(struct cursor *c, size_t reserved,
	const struct perf_event_attr *attr,
	const struct perf_event_header *header, struct record *r)
{
	(void)attr;
	(void)header;
	(void)reserved;
	get(c, &r->read.pid, sizeof(r->read.pid), "READ.pid");
	get(c, &r->read.tid, sizeof(r->read.tid), "READ.tid");
	if (attr->read_format & PERF_FORMAT_GROUP)
		get(c, &r->read.nr, sizeof(r->read.nr), "READ.nr");
	if (!(attr->read_format & PERF_FORMAT_GROUP))
		get(c, &r->read.value, sizeof(r->read.value), "READ.value");
	if (attr->read_format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		get(c, &r->read.time_enabled, sizeof(r->read.time_enabled), "READ.time_enabled");
	if (attr->read_format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		get(c, &r->read.time_running, sizeof(r->read.time_running), "READ.time_running");
	if (!(attr->read_format & PERF_FORMAT_GROUP) && (attr->read_format & PERF_FORMAT_ID))
		get(c, &r->read.id, sizeof(r->read.id), "READ.id");
	if (!(attr->read_format & PERF_FORMAT_GROUP) && (attr->read_format & PERF_FORMAT_LOST))
		get(c, &r->read.lost, sizeof(r->read.lost), "READ.lost");
	if (attr->read_format & PERF_FORMAT_GROUP)
		r->read.values = take(c, r->read.nr * (1 + !!(attr->read_format & PERF_FORMAT_ID) + !!(attr->read_format & PERF_FORMAT_LOST)), 8, "READ.values");
}

/* PERF_RECORD_MMAP2: A mapping was made, with the file it maps. */
static void decode_record_mmap2(struct cursor *c, size_t reserved,
	const struct perf_event_attr *attr,
	const struct perf_event_header *header, struct record *r)
{
	(void)attr;
	(void)header;
	(void)reserved;
	get(c, &r->mmap2.pid, sizeof(r->mmap2.pid), "MMAP2.pid");
	get(c, &r->mmap2.tid, sizeof(r->mmap2.tid), "MMAP2.tid");
	get(c, &r->mmap2.addr, sizeof(r->mmap2.addr), "MMAP2.addr");
	get(c, &r->mmap2.len, sizeof(r->mmap2.len), "MMAP2.len");
	get(c, &r->mmap2.pgoff, sizeof(r->mmap2.pgoff), "MMAP2.pgoff");
	if (!(header->misc & PERF_RECORD_MISC_MMAP_BUILD_ID))
		get(c, &r->mmap2.maj, sizeof(r->mmap2.maj), "MMAP2.maj");
	if (!(header->misc & PERF_RECORD_MISC_MMAP_BUILD_ID))
		get(c, &r->mmap2.min, sizeof(r->mmap2.min), "MMAP2.min");
	if (!(header->misc & PERF_RECORD_MISC_MMAP_BUILD_ID))
		get(c, &r->mmap2.ino, sizeof(r->mmap2.ino), "MMAP2.ino");
	if (!(header->misc & PERF_RECORD_MISC_MMAP_BUILD_ID))
		get(c, &r->mmap2.ino_generation, sizeof(r->mmap2.ino_generation), "MMAP2.ino_generation");
	if (header->misc & PERF_RECORD_MISC_MMAP_BUILD_ID)
		get(c, &r->mmap2.build_id_size, sizeof(r->mmap2.build_id_size), "MMAP2.build_id_size");
	if (header->misc & PERF_RECORD_MISC_MMAP_BUILD_ID)
		get(c, &r->mmap2.reserved_1, sizeof(r->mmap2.reserved_1), "MMAP2.reserved_1");
	if (header->misc & PERF_RECORD_MISC_MMAP_BUILD_ID)
		get(c, &r->mmap2.reserved_2, sizeof(r->mmap2.reserved_2), "MMAP2.reserved_2");
	if (header->misc & PERF_RECORD_MISC_MMAP_BUILD_ID)
		get(c, &r->mmap2.build_id, sizeof(r->mmap2.build_id), "MMAP2.build_id");
	get(c, &r->mmap2.prot, sizeof(r->mmap2.prot), "MMAP2.prot");
	get(c, &r->mmap2.flags, sizeof(r->mmap2.flags), "MMAP2.flags");
	r->mmap2.filename = take_string(c, reserved, "MMAP2.filename");
}

/* PERF_RECORD_AUX: Data landed in the AUX area. */
static void decode_record_aux(struct cursor *c, size_t reserved,
	const struct perf_event_attr *attr,
	const struct perf_event_header *header, struct record *r)
{
	(void)attr;
	(void)header;
	(void)reserved;
	get(c, &r->aux.aux_offset, sizeof(r->aux.aux_offset), "AUX.aux_offset");
	get(c, &r->aux.aux_size, sizeof(r->aux.aux_size), "AUX.aux_size");
	get(c, &r->aux.flags, sizeof(r->aux.flags), "AUX.flags");
}

/* PERF_RECORD_ITRACE_START: An instruction trace began. */
static void decode_record_itrace_start(struct cursor *c, size_t reserved,
	const struct perf_event_attr *attr,
	const struct perf_event_header *header, struct record *r)
{
	(void)attr;
	(void)header;
	(void)reserved;
	get(c, &r->itrace_start.pid, sizeof(r->itrace_start.pid), "ITRACE_START.pid");
	get(c, &r->itrace_start.tid, sizeof(r->itrace_start.tid), "ITRACE_START.tid");
}

/* PERF_RECORD_LOST_SAMPLES: The hardware dropped samples. */
static void decode_record_lost_samples(struct cursor *c, size_t reserved,
	const struct perf_event_attr *attr,
	const struct perf_event_header *header, struct record *r)
{
	(void)attr;
	(void)header;
	(void)reserved;
	get(c, &r->lost_samples.lost, sizeof(r->lost_samples.lost), "LOST_SAMPLES.lost");
}

/* PERF_RECORD_SWITCH_CPU_WIDE: A task was switched in or out, seen by the CPU. */
static void decode_record_switch_cpu_wide(struct cursor *c, size_t reserved,
	const struct perf_event_attr *attr,
	const struct perf_event_header *header, struct record *r)
{
	(void)attr;
	(void)header;
	(void)reserved;
	get(c, &r->switch_cpu_wide.next_prev_pid, sizeof(r->switch_cpu_wide.next_prev_pid), "SWITCH_CPU_WIDE.next_prev_pid");
	get(c, &r->switch_cpu_wide.next_prev_tid, sizeof(r->switch_cpu_wide.next_prev_tid), "SWITCH_CPU_WIDE.next_prev_tid");
}

/* PERF_RECORD_NAMESPACES: The namespaces of a task. */
static void decode_record_namespaces(struct cursor *c, size_t reserved,
	const struct perf_event_attr *attr,
	const struct perf_event_header *header, struct record *r)
{
	(void)attr;
	(void)header;
	(void)reserved;
	get(c, &r->namespaces.pid, sizeof(r->namespaces.pid), "NAMESPACES.pid");
	get(c, &r->namespaces.tid, sizeof(r->namespaces.tid), "NAMESPACES.tid");
	get(c, &r->namespaces.nr_namespaces, sizeof(r->namespaces.nr_namespaces), "NAMESPACES.nr_namespaces");
	r->namespaces.links = take(c, r->namespaces.nr_namespaces, 16, "NAMESPACES.links");
}

/* PERF_RECORD_KSYMBOL: The kernel got or lost a symbol. */
static void decode_record_ksymbol(struct cursor *c, size_t reserved,
	const struct perf_event_attr *attr,
	const struct perf_event_header *header, struct record *r)
{
	(void)attr;
	(void)header;
	(void)reserved;
	get(c, &r->ksymbol.addr, sizeof(r->ksymbol.addr), "KSYMBOL.addr");
	get(c, &r->ksymbol.len, sizeof(r->ksymbol.len), "KSYMBOL.len");
	get(c, &r->ksymbol.ksym_type, sizeof(r->ksymbol.ksym_type), "KSYMBOL.ksym_type");
	get(c, &r->ksymbol.flags, sizeof(r->ksymbol.flags), "KSYMBOL.flags");
	r->ksymbol.symbol = take_string(c, reserved, "KSYMBOL.symbol");
}

/* PERF_RECORD_BPF_EVENT: A BPF program was loaded or unloaded. */
static void decode_record_bpf_event(struct cursor *c, size_t reserved,
	const struct perf_event_attr *attr,
	const struct perf_event_header *header, struct record *r)
{
	(void)attr;
	(void)header;
	(void)reserved;
	get(c, &r->bpf_event.type, sizeof(r->bpf_event.type), "BPF_EVENT.type");
	get(c, &r->bpf_event.flags, sizeof(r->bpf_event.flags), "BPF_EVENT.flags");
	get(c, &r->bpf_event.id, sizeof(r->bpf_event.id), "BPF_EVENT.id");
	get(c, &r->bpf_event.tag, sizeof(r->bpf_event.tag), "BPF_EVENT.tag");
}

/* PERF_RECORD_CGROUP: A cgroup was made. */
static void decode_record_cgroup(struct cursor *c, size_t reserved,
	const struct perf_event_attr *attr,
	const struct perf_event_header *header, struct record *r)
{
	(void)attr;
	(void)header;
	(void)reserved;
	get(c, &r->cgroup.id, sizeof(r->cgroup.id), "CGROUP.id");
	r->cgroup.path = take_string(c, reserved, "CGROUP.path");
}

/* PERF_RECORD_TEXT_POKE: The kernel changed its own text. */
static void decode_record_text_poke(struct cursor *c, size_t reserved,
	const struct perf_event_attr *attr,
	const struct perf_event_header *header, struct record *r)
{
	(void)attr;
	(void)header;
	(void)reserved;
	get(c, &r->text_poke.addr, sizeof(r->text_poke.addr), "TEXT_POKE.addr");
	get(c, &r->text_poke.old_len, sizeof(r->text_poke.old_len), "TEXT_POKE.old_len");
	get(c, &r->text_poke.new_len, sizeof(r->text_poke.new_len), "TEXT_POKE.new_len");
	r->text_poke.bytes = take(c, r->text_poke.old_len + r->text_poke.new_len, 1, "TEXT_POKE.bytes");
	take(c, c->left > reserved ? c->left - reserved : 0, 1, "TEXT_POKE.pad");
}

/* PERF_RECORD_AUX_OUTPUT_HW_ID: The hardware id of an event that writes to the AUX area. */
static void decode_record_aux_output_hw_id(struct cursor *c, size_t reserved,
	const struct perf_event_attr *attr,
	const struct perf_event_header *header, struct record *r)
{
	(void)attr;
	(void)header;
	(void)reserved;
	get(c, &r->aux_output_hw_id.hw_id, sizeof(r->aux_output_hw_id.hw_id), "AUX_OUTPUT_HW_ID.hw_id");
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

const char *record_name(__u32 type)
{
	switch (type) {
	case PERF_RECORD_SAMPLE:
		return "SAMPLE";
	case 1:
		return "MMAP";
	case 2:
		return "LOST";
	case 3:
		return "COMM";
	case 4:
		return "EXIT";
	case 5:
		return "THROTTLE";
	case 6:
		return "UNTHROTTLE";
	case 7:
		return "FORK";
	case 8:
		return "READ";
	case 10:
		return "MMAP2";
	case 11:
		return "AUX";
	case 12:
		return "ITRACE_START";
	case 13:
		return "LOST_SAMPLES";
	case 14:
		return "SWITCH";
	case 15:
		return "SWITCH_CPU_WIDE";
	case 16:
		return "NAMESPACES";
	case 17:
		return "KSYMBOL";
	case 18:
		return "BPF_EVENT";
	case 19:
		return "CGROUP";
	case 20:
		return "TEXT_POKE";
	case 21:
		return "AUX_OUTPUT_HW_ID";
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
	case 1:
		decode_record_mmap(&c, reserved, attr, header, record);
		break;
	case 2:
		decode_record_lost(&c, reserved, attr, header, record);
		break;
	case 3:
		decode_record_comm(&c, reserved, attr, header, record);
		break;
	case 4:
		decode_record_exit(&c, reserved, attr, header, record);
		break;
	case 5:
		decode_record_throttle(&c, reserved, attr, header, record);
		break;
	case 6:
		decode_record_unthrottle(&c, reserved, attr, header, record);
		break;
	case 7:
		decode_record_fork(&c, reserved, attr, header, record);
		break;
	case 8:
		decode_record_read(&c, reserved, attr, header, record);
		break;
	case 10:
		decode_record_mmap2(&c, reserved, attr, header, record);
		break;
	case 11:
		decode_record_aux(&c, reserved, attr, header, record);
		break;
	case 12:
		decode_record_itrace_start(&c, reserved, attr, header, record);
		break;
	case 13:
		decode_record_lost_samples(&c, reserved, attr, header, record);
		break;
	case 14:
		break;
	case 15:
		decode_record_switch_cpu_wide(&c, reserved, attr, header, record);
		break;
	case 16:
		decode_record_namespaces(&c, reserved, attr, header, record);
		break;
	case 17:
		decode_record_ksymbol(&c, reserved, attr, header, record);
		break;
	case 18:
		decode_record_bpf_event(&c, reserved, attr, header, record);
		break;
	case 19:
		decode_record_cgroup(&c, reserved, attr, header, record);
		break;
	case 20:
		decode_record_text_poke(&c, reserved, attr, header, record);
		break;
	case 21:
		decode_record_aux_output_hw_id(&c, reserved, attr, header, record);
		break;
	case 22:
		decode_record_callchain_deferred(&c, reserved, attr, header, record);
		break;
	default:
		return "no known record type";
	}
	record->has_id = reserved;
	if (reserved)
		decode_sample_id(&c, attr, &record->id);
	if (c.failed)
		return c.problem;
	if (!c.left)
		return NULL;
	snprintf(c.problem, sizeof(c.problem),
		 "PERF_RECORD_%s decodes to %zu bytes, header.size is %u",
		 record_name(header->type), header->size - c.left, header->size);
	return c.problem;
}
