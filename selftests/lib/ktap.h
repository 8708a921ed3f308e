/* SPDX-License-Identifier: GPL-2.0 */
/*
 * KTAP output: cases are registered first, so that the plan stands before the
 * results; each then runs in a process of its own, so that one that crashes or
 * hangs is one failed case.
 */
#ifndef KTAP_H
#define KTAP_H

#include "compiler.h"
#include "rules.h"

#include <stdbool.h>
#include <stddef.h>

enum kernel {
	KERNEL_PLAIN,		/* no comparison: the headers are this kernel's */
	KERNEL_BASE,		/* without the series */
	KERNEL_PATCHED,		/* with it */
};

/* Which kernel the program was told that it runs on (--kernel=). */
extern enum kernel ktap_kernel;

/* Register a case. The name is formatted and copied; arg is kept. */
void ktap_add(void (*run)(const void *arg), const void *arg,
	      const char *format, ...) __printf(3, 4);

/* Print a "# " line. */
void ktap_diag(const char *format, ...) __printf(1, 2);

/*
 * Mark the running case as failed and say why: the rule that is broken (one of
 * rules.h, in front of the text as a level is in front of a printk), what was
 * seen, and behind "; expected " what the rule asks for. The case goes on.
 * Returns true while the failure is one of the first few, or the first against
 * its rule: its record is worth showing.
 */
bool ktap_fail(const char *format, ...) __printf(1, 2);

/* Number of failures in the running case. */
unsigned int ktap_failures(void);

/* End the running case as skipped, or as failed if it has failed already. */
void ktap_skip(const char *format, ...)
	__printf(1, 2) __noreturn;

/* End the running case as failed. */
void ktap_stop(const char *format, ...)
	__printf(1, 2) __noreturn;

/* Print size bytes, 1024 at most, as "# " lines of 16. */
void ktap_hexdump(const void *data, size_t size);

/*
 * Read the options (--kernel=base|patched|plain, --case=NAME, --patience=TIMES
 * for a slow kernel, --progress=FILE to say in between how far it is, --list), run
 * every case and return the program's exit status.
 */
int ktap_main(int argc, char **argv);

#endif
