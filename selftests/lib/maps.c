// SPDX-License-Identifier: GPL-2.0
#include "maps.h"
#include "ktap.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define NOTES_MAX	4096
#define ALIGN4(n)	(((n) + 3UL) & ~3UL)

/* Find the build ID among the notes of one PT_NOTE segment. */
static unsigned int find_note(const char *note, size_t size,
			      unsigned char id[BUILD_ID_MAX])
{
	size_t at = 0;

	while (at + sizeof(Elf64_Nhdr) <= size) {
		const Elf64_Nhdr *head = (const void *)(note + at);
		size_t name = at + sizeof(*head);
		size_t desc = name + ALIGN4(head->n_namesz);

		if (desc + head->n_descsz > size)
			break;
		if (head->n_type == NT_GNU_BUILD_ID && head->n_namesz == 4 &&
		    !memcmp(note + name, "GNU", 4) &&
		    head->n_descsz && head->n_descsz <= BUILD_ID_MAX) {
			memcpy(id, note + desc, head->n_descsz);
			return head->n_descsz;
		}
		at = desc + ALIGN4(head->n_descsz);
	}
	return 0;
}

static unsigned int find_build_id(int fd, unsigned char id[BUILD_ID_MAX])
{
	static char notes[NOTES_MAX];
	Elf64_Ehdr elf;
	Elf64_Phdr segment;
	unsigned int size = 0;
	ssize_t got;

	if (pread(fd, &elf, sizeof(elf), 0) != sizeof(elf) ||
	    memcmp(elf.e_ident, ELFMAG, SELFMAG) ||
	    elf.e_ident[EI_CLASS] != ELFCLASS64)
		return 0;
	for (unsigned int i = 0; i < elf.e_phnum && !size; i++) {
		if (pread(fd, &segment, sizeof(segment),
			  elf.e_phoff + i * sizeof(segment)) != sizeof(segment))
			break;
		if (segment.p_type != PT_NOTE)
			continue;
		if (segment.p_filesz > NOTES_MAX)
			segment.p_filesz = NOTES_MAX;
		got = pread(fd, notes, segment.p_filesz, segment.p_offset);
		if (got > 0)
			size = find_note(notes, got, id);
	}
	return size;
}

unsigned int build_id_read(const char *path, unsigned char id[BUILD_ID_MAX])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	unsigned int size;

	if (fd < 0)
		return 0;
	size = find_build_id(fd, id);
	close(fd);
	return size;
}

/* The build ID of a mapping: from the mapped file itself, even if deleted. */
static void read_id(struct maps *maps, struct mapping *map)
{
	char path[96];

	for (struct mapping *other = maps->map; other < map; other++) {
		if (other->inode == map->inode && other->device == map->device) {
			map->id_size = other->id_size;
			memcpy(map->id, other->id, sizeof(map->id));
			return;
		}
	}
	snprintf(path, sizeof(path), "/proc/self/map_files/%llx-%llx",
		 map->start, map->end);
	map->id_size = build_id_read(path, map->id);
	if (!map->id_size)
		map->id_size = build_id_read(map->path, map->id);
}

void maps_read(struct maps *maps)
{
	FILE *file = fopen("/proc/self/maps", "re");
	char line[512], prot[8];
	unsigned int major, minor;
	struct mapping *map;
	int at;

	maps->count = 0;
	maps->map = NULL;
	if (!file)
		ktap_stop(RULE_TEST_SETUP "/proc/self/maps: %m");
	while (fgets(line, sizeof(line), file)) {
		maps->map = realloc(maps->map, (maps->count + 1) * sizeof(*map));
		if (!maps->map)
			ktap_stop(RULE_TEST_SETUP "no memory for the mappings");
		map = &maps->map[maps->count];
		memset(map, 0, sizeof(*map));
		at = 0;
		if (sscanf(line, "%llx-%llx %7s %llx %x:%x %llu %n", &map->start,
			   &map->end, prot, &map->offset, &major, &minor,
			   &map->inode, &at) < 7)
			continue;
		map->device = major << 16 | minor;
		line[strcspn(line, "\n")] = '\0';
		snprintf(map->path, sizeof(map->path), "%s", line + at);
		map->executable = prot[2] == 'x';
		map->file = map->inode && map->path[0] == '/';
		maps->count++;
	}
	fclose(file);
	for (map = maps->map; map < maps->map + maps->count; map++)
		if (map->file)
			read_id(maps, map);
}

void maps_free(struct maps *maps)
{
	free(maps->map);
	maps->map = NULL;
	maps->count = 0;
}

const struct mapping *maps_find(const struct maps *maps, __u64 address)
{
	for (unsigned int i = 0; i < maps->count; i++)
		if (address >= maps->map[i].start && address < maps->map[i].end)
			return &maps->map[i];
	return NULL;
}

void maps_lock_headers(const struct maps *maps)
{
	for (unsigned int i = 0; i < maps->count; i++) {
		const struct mapping *map = &maps->map[i];
		const char *byte = (const char *)map->start;

		if (!map->id_size || map->offset)
			continue;
		mlock((const void *)map->start, map->end - map->start);
		__atomic_load_n(byte, __ATOMIC_RELAXED);
	}
}
