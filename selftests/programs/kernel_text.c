// SPDX-License-Identifier: GPL-2.0
/*
 * Records of the kernel's own text: symbols and BPF programs that come and go, and
 * branches that are rewritten.
 */
#include "bpf.h"
#include "decode.h"
#include "event.h"
#include "ktap.h"
#include "oracle.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ID_BITS		(PERF_SAMPLE_ID | PERF_SAMPLE_TIME)
#define POKES_MAX	256
#define POKE_BYTES	16

static struct event event;

#if HAVE_KSYMBOL
static struct bpf_prog_info program;
static __u64 program_address;
static unsigned int seen[3];

/* Load a program, note what bpf(2) says of it, and let it go. */
static void load_and_unload(void)
{
	struct bpf_program code = { .count = 0 };
	union bpf_attr attr = { .info = { .info = (__u64)&program } };
	int fd;

	bpf_emit(&code, BPF_MOVE_IMM(BPF_REG_0, 0));
	bpf_emit(&code, BPF_RETURN());
	fd = bpf_load(BPF_PROG_TYPE_SOCKET_FILTER, &code);
	if (fd < 0)
		ktap_skip("bpf(2): %s", strerror(-fd));
	attr.info.bpf_fd = fd;
	attr.info.info_len = sizeof(program);
	program.nr_jited_ksyms = 1;
	program.jited_ksyms = (__u64)&program_address;
	if (syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &attr, sizeof(attr)))
		ktap_stop(RULE_TEST_SETUP "BPF_OBJ_GET_INFO_BY_FD: %m");
	close(fd);
}

static void on_bpf_event(struct expect *expect, const struct record *record)
{
	__u16 type = record->bpf_event.type;

	if (record->header->type != PERF_RECORD_BPF_EVENT ||
	    record->bpf_event.id != program.id)
		return;
	check_record_id(expect, record);
	if (type != PERF_BPF_EVENT_PROG_LOAD && type != PERF_BPF_EVENT_PROG_UNLOAD) {
		record_fail(record, RULE_RECORD_CONTENT "type %u is not defined", type);
		return;
	}
	if (type == PERF_BPF_EVENT_PROG_UNLOAD && !seen[PERF_BPF_EVENT_PROG_LOAD])
		record_fail(record, RULE_RECORD_CONTENT "unloaded before it was loaded");
	seen[type]++;
	if (record->bpf_event.flags)
		record_fail(record, RULE_RECORD_CONTENT "flags %#x; expected 0",
			    record->bpf_event.flags);
	if (memcmp(record->bpf_event.tag, program.tag, sizeof(program.tag)))
		record_fail(record, RULE_RECORD_CONTENT "another tag than bpf(2) gives");
}

static void bpf_event(struct expect *expect)
{
	load_and_unload();
	event_disable(&event);
	expect_end(expect);
	check_ring(expect, on_bpf_event);
	if (seen[PERF_BPF_EVENT_PROG_LOAD] != 1 || seen[PERF_BPF_EVENT_PROG_UNLOAD] != 1)
		ktap_fail(RULE_RECORD_CONTENT
			  "%u BPF_EVENT of loading the program, %u of unloading it; expected one of each",
			  seen[PERF_BPF_EVENT_PROG_LOAD], seen[PERF_BPF_EVENT_PROG_UNLOAD]);
}

/* The kernel's name for a program: bpf_prog_, its tag, and its own name. */
static bool names_program(const char *symbol)
{
	char name[64] = "bpf_prog_";

	for (unsigned int i = 0; i < sizeof(program.tag); i++)
		snprintf(name + strlen(name), 3, "%02x", program.tag[i]);
	return !strncmp(symbol, name, strlen(name));
}

static void on_ksymbol(struct expect *expect, const struct record *record)
{
	unsigned int gone = record->ksymbol.flags & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER;

	if (record->header->type != PERF_RECORD_KSYMBOL || !names_program(record->ksymbol.symbol))
		return;
	check_record_id(expect, record);
	if (gone && !seen[0])
		record_fail(record, RULE_RECORD_CONTENT "gone before it was there");
	seen[!!gone]++;
	if (record->ksymbol.flags & ~PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER)
		record_fail(record, RULE_RECORD_CONTENT "flags %#x are not defined",
			    record->ksymbol.flags);
	if (record->ksymbol.ksym_type != PERF_RECORD_KSYMBOL_TYPE_BPF)
		record_fail(record, RULE_RECORD_CONTENT "ksym_type %u; expected %u, a BPF program",
			    record->ksymbol.ksym_type, PERF_RECORD_KSYMBOL_TYPE_BPF);
	if (record->ksymbol.addr != program_address)
		record_fail(record, RULE_RECORD_CONTENT "addr %#llx; expected %#llx, as bpf(2) gives",
			    record->ksymbol.addr, program_address);
	if (record->ksymbol.len != program.jited_prog_len)
		record_fail(record, RULE_RECORD_CONTENT "len %u; expected %u, as bpf(2) gives",
			    record->ksymbol.len, program.jited_prog_len);
}

static void ksymbol(struct expect *expect)
{
	load_and_unload();
	event_disable(&event);
	expect_end(expect);
	if (!program.jited_prog_len)
		ktap_skip("this kernel interprets BPF programs: they are no symbols");
	check_ring(expect, on_ksymbol);
	if (seen[0] != 1 || seen[1] != 1)
		ktap_fail(RULE_RECORD_CONTENT
			  "%u KSYMBOL of a new symbol, %u of one that is gone; expected one of each",
			  seen[0], seen[1]);
}

static void ask_bpf_event(struct perf_event_attr *attr)
{
	attr->bpf_event = 1;
}

static void ask_ksymbol(struct perf_event_attr *attr)
{
	attr->ksymbol = 1;
}
#endif

#if HAVE_TEXT_POKE
struct poke {
	__u64 address;
	__u16 length;
	__u8 before[POKE_BYTES], after[POKE_BYTES];
};

static struct poke pokes[POKES_MAX];
static unsigned int poke_count;

/* The poke before the newest that wrote to its address, or NULL. */
static const struct poke *poke_before(unsigned int newest)
{
	for (unsigned int i = newest; i-- > 0;)
		if (pokes[i].address == pokes[newest].address)
			return &pokes[i];
	return NULL;
}

static void note_poke(const struct record *record)
{
	struct poke *poke = &pokes[poke_count];
	const struct poke *last;

	poke->address = record->text_poke.addr;
	poke->length = record->text_poke.old_len;
	memcpy(poke->before, record->text_poke.bytes, poke->length);
	memcpy(poke->after, record->text_poke.bytes + poke->length, poke->length);
	last = poke_before(poke_count++);
	if (!last)
		return;
	if (last->length != poke->length || memcmp(last->after, poke->before, poke->length))
		record_fail(record, RULE_RECORD_CONTENT
			    "the old bytes are not those that the record before wrote there");
}

static void on_text_poke(struct expect *expect, const struct record *record)
{
	if (record->header->type != PERF_RECORD_TEXT_POKE)
		return;
	check_record_id(expect, record);
	if (record->text_poke.addr >> 56 != 0xff)
		record_fail(record, RULE_RECORD_CONTENT "addr %#llx is no address of the kernel",
			    record->text_poke.addr);
	if (!record->text_poke.old_len || record->text_poke.old_len > POKE_BYTES ||
	    record->text_poke.old_len != record->text_poke.new_len)
		record_fail(record, RULE_RECORD_CONTENT
			    "%u bytes before, %u after; expected as many, 1 to %u",
			    record->text_poke.old_len, record->text_poke.new_len, POKE_BYTES);
	else if (poke_count < POKES_MAX)
		note_poke(record);
}

/* Branches that two pokes turned there and back. */
static unsigned int turned_back(void)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < poke_count; i++) {
		const struct poke *last = poke_before(i);

		count += last && !memcmp(last->before, pokes[i].after, last->length);
	}
	return count;
}

static bool kernel_has(const char *symbol)
{
	FILE *file = fopen("/proc/kallsyms", "r");
	char line[512], name[256];
	bool found = false;

	if (!file)
		ktap_skip("/proc/kallsyms: %m");
	while (!found && fgets(line, sizeof(line), file))
		found = sscanf(line, "%*x %*c %255s", name) == 1 && !strcmp(name, symbol);
	fclose(file);
	return found;
}

/* The first event of a software kind turns the branches of its static key, its end turns them back. */
static void text_poke(struct expect *expect)
{
	struct perf_event_attr attr;
	int fd;

	if (!kernel_has("arch_jump_label_transform"))
		ktap_skip("this kernel has no CONFIG_JUMP_LABEL: nothing rewrites its text");
	attr_init(&attr, SOURCE_FAULTS, 0);
	fd = attr_open(&attr, 0, -1);
	if (fd < 0)
		ktap_stop(RULE_OPEN_ACCEPTED "perf_event_open(): %s", strerror(-fd));
	close(fd);
	event_disable(&event);
	expect_end(expect);
	check_ring(expect, on_text_poke);
	if (!turned_back())
		ktap_fail(RULE_RECORD_CONTENT
			  "%u TEXT_POKE, no two of them turn a branch there and back; expected the static key of page faults",
			  poke_count);
}

static void ask_text_poke(struct perf_event_attr *attr)
{
	attr->text_poke = 1;
}
#endif

struct wide_case {
	const char *name;
	void (*ask)(struct perf_event_attr *attr);
	void (*act)(struct expect *expect);	/* disables the event, and checks */
	__u64 bits;
};

/* An event of CPU 0 that asks for one record, and maybe for a sample_id behind it. */
static void wide(const void *arg)
{
	const struct wide_case *test = arg;
	struct perf_event_attr attr;
	struct expect expect;
	int error;

	attr_init(&attr, SOURCE_CLOCK, test->bits);
	attr.config = PERF_COUNT_SW_DUMMY;
	attr.sample_period = 0;
	attr.sample_id_all = !!test->bits;
	test->ask(&attr);
	error = event_open_on(&event, &attr, -1, 0, -1, EVENT_PAGES);
	if (error)
		ktap_stop(RULE_OPEN_ACCEPTED "perf_event_open(): %s", strerror(-error));
	expect_begin(&expect, &event, SOURCE_COUNT);
	event_enable(&event);
	test->act(&expect);
}

static const struct wide_case wide_cases[] = {
#if HAVE_KSYMBOL
	{ "bpf_event", ask_bpf_event, bpf_event },
	{ "ksymbol", ask_ksymbol, ksymbol },
#endif
#if HAVE_TEXT_POKE
	{ "text_poke", ask_text_poke, text_poke },
#endif
};

int main(int argc, char **argv)
{
	static struct wide_case cases[ARRAY_SIZE(wide_cases)][2];

	for (unsigned int i = 0; i < ARRAY_SIZE(wide_cases); i++) {
		for (unsigned int j = 0; j < 2; j++) {
			struct wide_case *new = &cases[i][j];

			*new = wide_cases[i];
			new->bits = j ? ID_BITS : 0;
			ktap_add(wide, new, "%s.%s", new->name, j ? "sample_id" : "plain");
		}
	}
	return ktap_main(argc, argv);
}
