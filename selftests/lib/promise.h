/* SPDX-License-Identifier: GPL-2.0 */
/* The cookies of deferred samples, and what was promised for each. */
#ifndef PROMISE_H
#define PROMISE_H

#include "decode.h"

#define PROMISES_MAX	1024

struct promise {
	__u64 cookie;
	__u64 address;		/* of the sample, 0 when it does not tell */
	unsigned int answers;
};

extern struct promise promises[PROMISES_MAX];
extern unsigned int promise_count;

/* The promise of a cookie, or NULL. */
struct promise *promise_find(__u64 cookie);

/* The same, noted if it is new; address is kept unless it is 0. */
struct promise *promise_note(__u64 cookie, __u64 address);

/*
 * Note the cookies of a sample. BUILD_ID_OFFSET has its own address beside it; address
 * is what the others' answers begin with, 0 when that is not known.
 */
void promise_note_sample(const struct sample *sample, __u64 address);

/* How many have no answer. */
unsigned int promises_missing(void);

#endif
