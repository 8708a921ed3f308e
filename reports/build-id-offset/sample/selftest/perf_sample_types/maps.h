/* SPDX-License-Identifier: GPL-2.0 */
/* What /proc/PID/maps and the ELF notes of the mapped files say. */
#ifndef MAPS_H
#define MAPS_H

#include <linux/types.h>
#include <stdbool.h>
#include <sys/types.h>

#define BUILD_ID_MAX	20	/* what a record has room for */

struct mapping {
	__u64 start, end, offset, inode;
	unsigned int device;
	bool executable;
	bool file;			/* of a file, not [stack] and its like */
	unsigned int id_size;		/* 0: no build ID, or not readable */
	unsigned char id[BUILD_ID_MAX];
	char path[128];
};

struct maps {
	unsigned int count;
	struct mapping *map;
};

/* Read the mappings of this process; the caller frees them. */
void maps_read(struct maps *maps);
void maps_free(struct maps *maps);

/* The mapping that holds address, or NULL. */
const struct mapping *maps_find(const struct maps *maps, __u64 address);

/*
 * Make sure that the pages which a build ID is read from are in memory and
 * stay there: the first page of every mapped ELF file that is mapped.
 */
void maps_lock_headers(const struct maps *maps);

/*
 * Read the GNU build ID of an ELF file into id; returns its size in bytes, or 0
 * when the file has none that fits.
 */
unsigned int build_id_read(const char *path, unsigned char id[BUILD_ID_MAX]);

#endif
