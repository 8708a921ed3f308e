/* SPDX-License-Identifier: GPL-2.0 */
/* An unprivileged user, and how much the kernel lets it see. */
#ifndef USER_H
#define USER_H

#include <linux/perf_event.h>
#include <stdbool.h>

/* Set perf_event_paranoid, or skip the case. */
void user_set_level(int level);

/* Become a user without privileges, or skip the case. */
void user_become_nobody(void);

/* Is even an event that counts nothing denied? */
bool denies_everything(void);

/*
 * Fail the case when a record of an event with attr has an address of the kernel's
 * half: in one of its words, which all its fields are made of, in RAW from any byte on,
 * or in a copy of the user's stack. IDs, markers and negative numbers are none.
 */
void no_kernel_address(const struct perf_event_attr *attr,
		       const struct perf_event_header *header);

#endif
