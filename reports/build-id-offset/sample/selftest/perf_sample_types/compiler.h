/* SPDX-License-Identifier: GPL-2.0 */
/* The names that the kernel has for compiler attributes. */
#ifndef COMPILER_H
#define COMPILER_H

#define __attr(...)		__attribute__((__VA_ARGS__))
#define __printf(a, b)		__attr(format(printf, a, b))
#ifndef __noreturn
#define __noreturn		__attr(noreturn)
#endif
#ifndef __packed
#define __packed		__attr(packed)
#endif
#ifndef __maybe_unused
#define __maybe_unused		__attr(unused)
#endif
#define noinline		__attr(noinline)
#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))

#endif
