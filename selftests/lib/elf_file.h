/* SPDX-License-Identifier: GPL-2.0 */
/* ELF files made by hand, to map and to run. */
#ifndef ELF_FILE_H
#define ELF_FILE_H

#include <linux/types.h>
#include <stdbool.h>

#define ELF_CODE_PAGES	4

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

/*
 * Make the file: two pages of headers, then ELF_CODE_PAGES pages of code that
 * each begin with elf_code. The bytes of its build ID count up. Skips the case when
 * there is no place for it.
 */
void elf_file_make(struct elf_file *file);

/* Map the headers and touch them: they are in memory then. */
const char *elf_file_headers(const struct elf_file *file);

/* Map code page number page, to run. */
void *elf_file_code(const struct elf_file *file, unsigned int page);

/* What stands in a code page: a write to *address, and a return. */
typedef void elf_code(char *address);

/* Let code write to fresh memory, which faults. */
void elf_code_fault(elf_code *code);

#endif
