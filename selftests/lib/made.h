/* SPDX-License-Identifier: GPL-2.0 */
/* Callchains made by hand: any address can stand in one. */
#ifndef MADE_H
#define MADE_H

#include <linux/types.h>

#define MADE_MAX	1024

/*
 * One marked getppid() under frames made by hand: what reads frame pointers
 * finds the address of the call, then the count addresses, then the end. The
 * frames lie on the stack, aligned and ascending, as unwinders ask for.
 */
void made_syscall(const __u64 *address, unsigned int count);

/* The same for a write to fresh memory, which faults. */
void made_fault(const __u64 *address, unsigned int count);

/* The same for a loop in user space, run through turns times: a clock comes by. */
void made_spin(const __u64 *address, unsigned int count, unsigned long turns);

/* A write to fresh memory that faults while the stack pointer is at stack. */
void made_fault_on(const void *stack);

#endif
