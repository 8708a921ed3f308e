// SPDX-License-Identifier: GPL-2.0
/*
 * Build IDs of files made by hand: every size, notes in odd places, one file
 * mapped twice, none at all, and pages that are not in memory.
 */
#include "decode.h"
#include "elf_file.h"
#include "event.h"
#include "ktap.h"
#include "made.h"
#include "oracle.h"
#include "promise.h"
#include "scope.h"

#include <fcntl.h>
#include <libgen.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#define IP_BIT		PERF_SAMPLE_BUILD_ID_OFFSET
#define CHAIN_BIT	PERF_SAMPLE_CALLCHAIN_BUILD_ID_OFFSET
#define FAULTS		4
#define PLACES		48	/* of made code in one chain */

static struct event event;
static __u64 code_start, code_end;
static unsigned int from_code, from_code_resolved;

struct file_case {
	const char *name;
	struct elf_file file;
	bool unresolved;	/* no build ID may come of it */
};

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

/* Count the samples that the made code took, and how they were answered. */
static void on_sample(struct expect *expect, const struct sample *sample)
{
	(void)expect;
	promise_note_sample(sample, 0);
	if (sample->ip.ip < code_start || sample->ip.ip >= code_end)
		return;
	from_code++;
	from_code_resolved += !!sample->build_id_offset.bid.size;
}

static const struct build_id_offset *answer(const struct record *record)
{
	if (record->header->type != PERF_RECORD_CALLCHAIN_DEFERRED ||
	    !record->callchain_deferred.nr)
		return NULL;
	return record->callchain_deferred.entries;
}

/* The same for answers: each stands for the address of its sample. */
static void on_answer(struct expect *expect, const struct record *record)
{
	const struct build_id_offset *entry = answer(record);
	const struct promise *promise;
	const char *problem;
	__u64 address;

	if (!entry)
		return;
	promise = promise_find(record->callchain_deferred.cookie);
	address = promise ? promise->address : 0;
	problem = check_build_id(expect, entry, address);
	if (problem)
		record_fail(record, "%s", problem);
	if (address >= code_start && address < code_end)
		from_code_resolved += !!entry->size;
}

static __u64 places[PLACES];
static unsigned int answers;

/* The answer to the made call: every entry is known. */
static void on_chain(struct expect *expect, const struct record *record)
{
	const struct build_id_offset *entry = answer(record);
	const char *problem;

	if (!entry || record->callchain_deferred.nr != PLACES + 1)
		return;		/* of another call */
	answers++;
	for (unsigned int i = 0; i < PLACES; i++) {
		problem = check_build_id(expect, &entry[i + 1], places[i]);
		if (problem)
			record_fail(record, "entry %u: %s", i + 1, problem);
	}
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

static void deferred(const void *arg)
{
	one_file(arg, true);
}

/* One file twice, and each page at its own offset. */
static void mapped_twice(const void *arg)
{
	struct elf_file file = { .id_size = 20 };
	struct expect expect;

	(void)arg;
	open_faults(false);
	elf_file_make(&file);
	elf_file_headers(&file);
	for (unsigned int i = 0; i < 2 * ELF_CODE_PAGES; i++)
		fault(elf_file_code(&file, i % ELF_CODE_PAGES), &expect, true,
		      false);
}

/* Two files in one chain, in turns: none takes the other's build ID. */
static void two_files(const void *arg)
{
	struct elf_file file[3] = {
		{ .id_size = 20 }, { .id_size = 20, .other = 8 }, { .id_size = 0 },
	};
	const bool *defer = arg;
	struct perf_event_attr attr;
	struct expect expect;
	int error;

	need_bits(CHAIN_BIT);
	attr_init(&attr, SOURCE_SYSCALLS, CHAIN_BIT | (*defer ? 0 : PERF_SAMPLE_CALLCHAIN));
	attr_defer(&attr, *defer, *defer);
	error = event_open(&event, &attr);
	if (error)
		ktap_stop(RULE_OPEN_ACCEPTED "perf_event_open(): %s", strerror(-error));
	for (unsigned int i = 0; i < ARRAY_SIZE(file); i++) {
		elf_file_make(&file[i]);
		elf_file_headers(&file[i]);
	}
	for (unsigned int i = 0; i < PLACES; i++)
		places[i] = (__u64)elf_file_code(&file[i % 3], i % ELF_CODE_PAGES) + 64 * i;
	expect_begin(&expect, &event, SOURCE_SYSCALLS);
	expect.must_resolve = true;
	event_enable(&event);
	made_syscall(places, PLACES);
	event_disable(&event);
	expect_end(&expect);
	check_ring(&expect, *defer ? on_chain : NULL);
	if (*defer && !answers)
		ktap_fail(RULE_DEFERRED_ANSWER
			  "no answer with build IDs for the %u frames of the made call; expected 1",
			  PLACES);
	if (!*defer && expect.resolved < least_resolved(PLACES * 2 / 3))
		ktap_fail(RULE_BUILD_ID_RESOLVED
			  "%u entries resolved; expected the %u that are in files with a build ID",
			  expect.resolved, PLACES * 2 / 3);
}

/* Code in memory of no file. */
static void no_file(const void *arg)
{
	static const char code[] = { 0xc6, 0x07, 0x01, 0xc3 };
	struct expect expect;
	void *map;

	(void)arg;
	open_faults(false);
	map = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED)
		ktap_skip("mmap: %m");
	memcpy(map, code, sizeof(code));
	fault(map, &expect, true, false);
	if (from_code_resolved)
		ktap_fail(RULE_BUILD_ID_MAPPING
			  "%u build IDs of anonymous memory; expected none", from_code_resolved);
}

/* A directory whose files need not be in memory, or a skip. */
static const char *disk_directory(void)
{
	static char program[256];
	bool known = readlink("/proc/self/exe", program, sizeof(program) - 1) > 0;
	const char * const directories[] = {
		known ? dirname(program) : ".", "/rb/out", "/var/tmp",
	};
	struct statfs fs;

	for (unsigned int i = 0; i < ARRAY_SIZE(directories); i++) {
		if (statfs(directories[i], &fs) || access(directories[i], W_OK))
			continue;
		if (fs.f_type != 0x01021994 && fs.f_type != 0x858458f6 &&
		    fs.f_type != 0x794c7630)
			return directories[i];
	}
	ktap_skip("every directory here is in memory");
}

static void forget(int fd)
{
	int drop = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);

	fsync(fd);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	if (drop < 0 || write(drop, "3", 1) != 1)
		ktap_skip("/proc/sys/vm/drop_caches: %m");
	close(drop);
}

/* Is the first page of the file in memory? */
static bool in_memory(int fd)
{
	unsigned char page;
	void *map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);

	if (map == MAP_FAILED || mincore(map, 4096, &page))
		ktap_skip("mincore: %m");
	munmap(map, 4096);
	return page & 1;
}

/* Map the code alone: its page is in memory, that of the headers is not. */
static void *cold_code(struct elf_file *file)
{
	static char path[300];
	void *code;

	snprintf(path, sizeof(path), "%s/made-elf-%d", disk_directory(), getpid());
	file->path = path;
	elf_file_make(file);
	close(file->fd);
	file->fd = open(path, O_RDONLY | O_CLOEXEC);
	forget(file->fd);
	code = elf_file_code(file, ELF_CODE_PAGES - 1);
	madvise(code, 4096, MADV_RANDOM);
	elf_code_fault(code);
	if (in_memory(file->fd)) {
		unlink(path);
		ktap_skip("the headers came into memory with the code");
	}
	return code;
}

/* Reading the notes for /proc would bring them in: not before the samples. */
static void cold_faults(struct expect *expect, void *code, bool defer)
{
	code_start = (__u64)code;
	code_end = code_start + 4096;
	memset(expect, 0, sizeof(*expect));
	expect->event = &event;
	event_enable(&event);
	for (unsigned int i = 0; i < FAULTS; i++)
		elf_code_fault(code);
	event_disable(&event);
	expect->source = SOURCE_COUNT;
	expect->on_sample = on_sample;
	maps_read(&expect->maps);
	check_ring(expect, defer ? on_answer : NULL);
	ktap_diag("%u samples from the made code, %u resolved", from_code,
		  from_code_resolved);
	/* A file system may take the code page away again: more are fine. */
	if (from_code < FAULTS)
		ktap_fail(RULE_SAMPLES_COUNT "%u samples from the made code; expected %u",
			  from_code, FAULTS);
}

/* Once the first page is touched, the same code is resolved in place. */
static void now_warm(const struct elf_file *file, void *code)
{
	struct expect expect;

	mlock(elf_file_headers(file), 4096);
	if (!in_memory(file->fd))
		ktap_stop(RULE_TEST_SETUP "the headers do not stay in memory");
	fault(code, &expect, false, false);
	if (from_code_resolved < least_resolved(FAULTS))
		ktap_fail(RULE_BUILD_ID_RESOLVED
			  "%u of %u are resolved in place; expected all: the headers are in memory now",
			  from_code_resolved, FAULTS);
}

/* Only the code is in memory: in place there is no ID, deferred there is. */
static void cold(const void *arg)
{
	const bool *defer = arg;
	struct elf_file file = { .id_size = 20 };
	struct expect expect;
	void *code;

	open_faults(*defer);
	code = cold_code(&file);
	cold_faults(&expect, code, *defer);
	if (!*defer && from_code_resolved)
		ktap_fail(RULE_BUILD_ID_LOCKED
			  "resolved in place, though the headers were not in memory");
	if (*defer && from_code_resolved < least_resolved(FAULTS))
		ktap_fail(RULE_BUILD_ID_RESOLVED
			  "%u of %u are resolved; expected all: the answer may wait for the pages",
			  from_code_resolved, FAULTS);
	if (!*defer)
		now_warm(&file, code);
	unlink(file.path);
}

static const bool ways[] = { false, true };

int main(int argc, char **argv)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(file_cases); i++) {
		ktap_add(in_place, &file_cases[i], "in_place.%s", file_cases[i].name);
		ktap_add(deferred, &file_cases[i], "deferred.%s", file_cases[i].name);
	}
	ktap_add(mapped_twice, NULL, "mapped_twice");
	ktap_add(two_files, &ways[0], "in_place.two_files");
	ktap_add(two_files, &ways[1], "deferred.two_files");
	ktap_add(no_file, NULL, "anonymous");
	ktap_add(cold, &ways[0], "in_place.cold");
	ktap_add(cold, &ways[1], "deferred.cold");
	return ktap_main(argc, argv);
}
