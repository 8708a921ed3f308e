// SPDX-License-Identifier: GPL-2.0
#include "work.h"
#include "compiler.h"
#include "ktap.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CLOCK_WORK_MS		30
/* As many as fit into a third of that time under emulation, on an idle machine. */
#define CLOCK_WORK_ROUNDS	2000
#define CLOCK_TRIES		20

noinline void work_fault(void)
{
	size_t size = sysconf(_SC_PAGESIZE);
	char *page;

	page = mmap(NULL, size, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		ktap_stop(RULE_TEST_SETUP "mmap: %m");
	__atomic_store_n(page, 1, __ATOMIC_RELAXED);
}

noinline void work_syscall(void)
{
	register __u64 r10 asm("r10") = WORK_ARG(3);
	register __u64 r8 asm("r8") = WORK_ARG(4);
	register __u64 r9 asm("r9") = WORK_ARG(5);
	long result;

	asm volatile("syscall"
		     : "=a" (result)
		     : "0" ((long)SYS_getppid), "D" (WORK_ARG(0)),
		       "S" (WORK_ARG(1)), "d" (WORK_ARG(2)), "r" (r10),
		       "r" (r8), "r" (r9)
		     : "rcx", "r11", "memory");
}

/* For ms, and longer where the machine was busy with others: time alone is no work. */
static noinline void spin(unsigned int ms)
{
	unsigned int rounds = 0;
	struct timespec from, to;

	clock_gettime(CLOCK_MONOTONIC, &from);
	do {
		for (unsigned int i = 0; i < 2000; i++)
			asm volatile("" : : : "memory");
		clock_gettime(CLOCK_MONOTONIC, &to);
	} while (++rounds < CLOCK_WORK_ROUNDS ||
		 (to.tv_sec - from.tv_sec) * 1000 +
		 (to.tv_nsec - from.tv_nsec) / 1000000 < ms);
}

/* Call function with no frame above it: what a chain finds ends there. */
static void call_without_frames(void (*function)(void))
{
	/* What lies below the stack pointer may be the compiler's. */
	asm volatile("lea -128(%%rsp), %%rsp\n\t"
		     "push %%rbp\n\t"
		     "mov %%rsp, %%rbp\n\t"
		     "and $-16, %%rsp\n\t"
		     "push %%rbp\n\t"
		     "push %%rbp\n\t"
		     "xor %%ebp, %%ebp\n\t"
		     "call *%[function]\n\t"
		     "pop %%rsp\n\t"
		     "pop %%rbp\n\t"
		     "lea 128(%%rsp), %%rsp\n\t"
		     : [function] "+&b" (function)
		     :
		     : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10",
		       "r11", "r12", "r13", "r14", "r15", "memory", "cc");
}

static noinline void spin_some(void)
{
	spin(CLOCK_WORK_MS);
}

unsigned int work(enum source source, unsigned int count)
{
	switch (source) {
	case SOURCE_FAULTS:
		for (unsigned int i = 0; i < count; i++)
			call_without_frames(work_fault);
		return count;
	case SOURCE_SYSCALLS:
		for (unsigned int i = 0; i < count; i++)
			call_without_frames(work_syscall);
		return count;
	default:
		call_without_frames(spin_some);
		return 1;
	}
}

unsigned int work_on(const struct event *event, enum source source, unsigned int count)
{
	__u64 head = event->page->data_head;
	unsigned int least = work(source, count);

	if (source == SOURCE_CLOCK)
		for (unsigned int i = 0; i < CLOCK_TRIES && event->page->data_head == head; i++)
			work(source, count);
	return least;
}
