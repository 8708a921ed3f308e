/* SPDX-License-Identifier: GPL-2.0 */
/* Packets that a BPF program sees, sent without a network. */
#ifndef PACKET_H
#define PACKET_H

#include "bpf.h"

#include <stdbool.h>
#include <stddef.h>

/* Where a program of this kind meets packets. */
struct packet_path {
	const char *name;
	enum bpf_prog_type type;
	__u32 verdict;		/* what the program returns to let them pass */

	/* Let a loaded program see what is sent. Skips the case where it cannot. */
	void (*attach)(int program);
	/* Send size bytes, at least 64; with paged not in the packet's linear part. */
	void (*send)(const void *data, size_t size, bool paged);
	void (*detach)(void);
};

/*
 * Datagrams of AF_UNIX at a socket filter, and frames on lo at a classifier of
 * traffic control. The second needs a kernel with both, and is older.
 */
#define PACKET_PATHS	2
extern const struct packet_path packet_paths[PACKET_PATHS];

#endif
