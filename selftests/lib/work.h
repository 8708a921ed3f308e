/* SPDX-License-Identifier: GPL-2.0 */
/* What makes the samples that are checked. */
#ifndef WORK_H
#define WORK_H

#include "event.h"

/* Arguments of the marked system calls, which raw records must show. */
#define WORK_ARG(n)	(0x1122334455667700ULL + (n))

/* Make about count samples of source; returns how many must be there. */
unsigned int work(enum source source, unsigned int count);

/*
 * The same, for samples of event: a clock that has not come by when the work is done
 * (a machine under emulation may be busy with others) gets more of it, within reason.
 */
unsigned int work_on(const struct event *event, enum source source, unsigned int count);

/* Write to one fresh page, and to no other. */
void work_fault(void);

/* One getppid() with marked arguments, from this program's own text. */
void work_syscall(void);

#endif
