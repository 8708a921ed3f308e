// SPDX-License-Identifier: GPL-2.0
#include "made.h"
#include "compiler.h"
#include "ktap.h"
#include "work.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct frame {
	struct frame *next;
	__u64 address;
};

static void make(struct frame *frame, const __u64 *address, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		frame[i].next = i + 1 < count ? &frame[i + 1] : NULL;
		frame[i].address = address[i];
	}
}

noinline void made_syscall(const __u64 *address, unsigned int count)
{
	register __u64 rbx asm("rbx");
	struct frame frame[MADE_MAX];
	long result;

	make(frame, address, count);
	rbx = count ? (__u64)frame : 0;
	/* What lies below the stack pointer may be the compiler's. */
	asm volatile("lea -128(%%rsp), %%rsp\n\t"
		     "push %%rbp\n\t"
		     "mov %%rbx, %%rbp\n\t"
		     "syscall\n\t"
		     "pop %%rbp\n\t"
		     "lea 128(%%rsp), %%rsp\n\t"
		     : "=a" (result)
		     : "0" ((long)SYS_getppid), "D" (WORK_ARG(0)),
		       "S" (WORK_ARG(1)), "d" (WORK_ARG(2)), "r" (rbx)
		     : "rcx", "r11", "memory");
}

static char *fresh_page(size_t size)
{
	char *page = mmap(NULL, size, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		ktap_stop(RULE_TEST_SETUP "mmap: %m");
	return page;
}

noinline void made_fault(const __u64 *address, unsigned int count)
{
	register __u64 rbx asm("rbx");
	struct frame frame[MADE_MAX];
	size_t size = sysconf(_SC_PAGESIZE);
	char *page = fresh_page(size);

	make(frame, address, count);
	rbx = count ? (__u64)frame : 0;
	/* What lies below the stack pointer may be the compiler's. */
	asm volatile("lea -128(%%rsp), %%rsp\n\t"
		     "push %%rbp\n\t"
		     "mov %%rbx, %%rbp\n\t"
		     "movb $1, (%%rcx)\n\t"
		     "pop %%rbp\n\t"
		     "lea 128(%%rsp), %%rsp\n\t"
		     :
		     : "c" (page), "r" (rbx)
		     : "memory");
	munmap(page, size);
}

noinline void made_spin(const __u64 *address, unsigned int count,
			unsigned long turns)
{
	register __u64 rbx asm("rbx");
	struct frame frame[MADE_MAX];

	make(frame, address, count);
	rbx = count ? (__u64)frame : 0;
	asm volatile("push %%rbp\n\t"
		     "mov %%rbx, %%rbp\n"
		     "1:\tdec %%rcx\n\t"
		     "jnz 1b\n\t"
		     "pop %%rbp\n\t"
		     : "+c" (turns)
		     : "r" (rbx)
		     : "memory", "cc");
}

noinline void made_fault_on(const void *stack)
{
	register __u64 rbx asm("rbx");
	size_t size = sysconf(_SC_PAGESIZE);
	char *page = fresh_page(size);

	asm volatile("mov %%rsp, %%rbx\n\t"
		     "mov %[stack], %%rsp\n\t"
		     "movb $1, (%%rcx)\n\t"
		     "mov %%rbx, %%rsp\n\t"
		     : "=&r" (rbx)
		     : "c" (page), [stack] "r" (stack)
		     : "memory");
	munmap(page, size);
}
