// SPDX-License-Identifier: GPL-2.0
#include "elf_file.h"
#include "ktap.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE		4096
#define HEADER_PAGES	2
#define NOTE_OTHER	1	/* NT_GNU_ABI_TAG */
#define ALIGN4(n)	(((n) + 3UL) & ~3UL)

/* Append one note of "GNU" and return the size of what is there now. */
static size_t add_note(char *notes, size_t at, unsigned int type,
		       unsigned int size, unsigned int first)
{
	Elf64_Nhdr head = { .n_namesz = 4, .n_descsz = size, .n_type = type };

	memcpy(notes + at, &head, sizeof(head));
	memcpy(notes + at + sizeof(head), "GNU", 4);
	at += sizeof(head) + 4;
	for (unsigned int i = 0; i < size; i++)
		notes[at + i] = (first ? first : size + 1) + i;
	return at + ALIGN4(size);
}

static void fill_headers(const struct elf_file *file, char *image)
{
	Elf64_Ehdr *elf = (Elf64_Ehdr *)image;
	Elf64_Phdr *segment = (Elf64_Phdr *)(elf + 1);
	size_t at = file->across_pages ? PAGE - 24 : 1024, first = at;

	memcpy(elf->e_ident, ELFMAG, SELFMAG);
	elf->e_ident[EI_CLASS] = ELFCLASS64;
	elf->e_ident[EI_DATA] = ELFDATA2LSB;
	elf->e_ident[EI_VERSION] = EV_CURRENT;
	elf->e_type = ET_DYN;
	elf->e_machine = EM_X86_64;
	elf->e_version = EV_CURRENT;
	elf->e_phoff = sizeof(*elf);
	elf->e_ehsize = sizeof(*elf);
	elf->e_phentsize = sizeof(*segment);
	if (file->second_segment) {
		segment->p_type = PT_NOTE;
		segment->p_offset = 512;
		segment->p_filesz = add_note(image + 512, 0, NOTE_OTHER, 16, 0);
		segment++;
		elf->e_phnum++;
	}
	if (file->other)
		at += add_note(image + at, 0, NOTE_OTHER, file->other, 0);
	if (file->id_size)
		at += add_note(image + at, 0, NT_GNU_BUILD_ID, file->id_size,
			       file->first_byte);
	segment->p_type = PT_NOTE;
	segment->p_offset = first;
	segment->p_filesz = at - first;
	elf->e_phnum++;
	if (file->no_magic)
		image[0] = 0;
}

void elf_file_make(struct elf_file *file)
{
	static const char code[] = { 0xc6, 0x07, 0x01, 0xc3 };
	static char headers[HEADER_PAGES * PAGE], pages[ELF_CODE_PAGES * PAGE];

	memset(headers, 0, sizeof(headers));
	fill_headers(file, headers);
	for (unsigned int i = 0; i < ELF_CODE_PAGES; i++)
		memcpy(pages + i * PAGE, code, sizeof(code));
	file->fd = file->path ? open(file->path, O_RDWR | O_CREAT | O_TRUNC, 0700) :
				memfd_create("made", MFD_CLOEXEC);
	if (file->fd < 0)
		ktap_skip("no file to make: %m");
	if (pwrite(file->fd, headers, sizeof(headers), 0) != sizeof(headers) ||
	    pwrite(file->fd, pages, sizeof(pages), sizeof(headers) + file->hole) != sizeof(pages))
		ktap_skip("cannot write the made file: %m");
}

const char *elf_file_headers(const struct elf_file *file)
{
	char *map = mmap(NULL, HEADER_PAGES * PAGE, PROT_READ, MAP_PRIVATE,
			 file->fd, 0);

	if (map == MAP_FAILED)
		ktap_stop(RULE_TEST_SETUP "mmap: %m");
	for (unsigned int i = 0; i < HEADER_PAGES; i++)
		__atomic_load_n(map + i * PAGE, __ATOMIC_RELAXED);
	return map;
}

void *elf_file_code(const struct elf_file *file, unsigned int page)
{
	void *map = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE,
			 file->fd, (HEADER_PAGES + page) * PAGE + file->hole);

	if (map == MAP_FAILED)
		ktap_stop(RULE_TEST_SETUP "mmap: %m");
	return map;
}

void elf_code_fault(elf_code *code)
{
	char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		ktap_stop(RULE_TEST_SETUP "mmap: %m");
	code(page);
	munmap(page, PAGE);
}
