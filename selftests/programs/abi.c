// SPDX-License-Identifier: GPL-2.0
/* Which sample type bits the kernel accepts. */
#include "decode.h"
#include "event.h"
#include "ktap.h"
#include "scope.h"

#include <errno.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* How many bits of attr are still reserved. */
static unsigned int reserved_bits(void)
{
	struct perf_event_attr attr = { .__reserved_1 = -1 };

	return __builtin_popcountll(attr.__reserved_1);
}

static int try_bits(__u64 bits)
{
	struct perf_event_attr attr;
	int fd;

	attr_init(&attr, SOURCE_CLOCK, bits);
	fd = attr_open(&attr, 0, -1);
	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

static void accepted(const void *arg)
{
	const struct scoped_type *type = arg;
	const struct sample_type *known = sample_type(type->bit);
	int error;

	error = try_bits(type->bit);
	if (error && known && known->needs[0])
		ktap_skip("needs %s", known->needs);
	if (error)
		ktap_fail(RULE_OPEN_ACCEPTED
			  "perf_event_open() with PERF_SAMPLE_%s: %s; expected a file descriptor",
			  type->name, strerror(-error));
}

/* One case for both kernels: each has its own right answer. */
static void new_bit(const void *arg)
{
	const struct scoped_type *type = arg;
	int error;

	if (ktap_kernel != KERNEL_BASE) {
		accepted(arg);
		return;
	}
	error = try_bits(type->bit);
	if (error != -EINVAL)
		ktap_fail(RULE_OPEN_REFUSED
			  "perf_event_open() with PERF_SAMPLE_%s on base: %s; expected %s",
			  type->name, strerror(-error), strerror(EINVAL));
}

static void unused_bits(const void *arg)
{
	(void)arg;
	for (__u64 bit = SCOPE_NEXT_BIT; bit; bit <<= 1) {
		int error = try_bits(bit);

		if (error != -EINVAL)
			ktap_fail(RULE_OPEN_REFUSED
				  "perf_event_open() with the unused bit %#llx: %s; expected %s",
				  bit, strerror(-error), strerror(EINVAL));
	}
}

static const struct scoped_type *check_type(const void *arg)
{
	const struct scoped_type *type = arg;
	const struct sample_type *known = sample_type(type->bit);

	need_bits(type->bit);
	if (known && known->needs[0])
		ktap_skip("needs %s", known->needs);
	return type;
}

static void expect_error(int fd, int error, const char *what)
{
	if (fd != -error)
		ktap_fail("%s: %s; expected %s", what, strerror(fd < 0 ? -fd : 0),
			  strerror(error));
	if (fd >= 0)
		close(fd);
}

static void expect_open(int fd, const char *what, unsigned int size)
{
	if (fd < 0)
		ktap_fail(RULE_OPEN_ATTR_SIZE "%s (%u bytes): %s; expected a file descriptor",
			  what, size, strerror(-fd));
	else
		close(fd);
}

/* An attr of an older or a newer program, with the bit in it. */
static void attr_size(const void *arg)
{
	static const unsigned int sizes[] = { 64, 72, 80, 96, 104, 112, 120, 128, 136 };
	const struct scoped_type *type = check_type(arg);
	struct {
		struct perf_event_attr attr;
		char more[64];
	} large;

	memset(&large, 0, sizeof(large));
	attr_init(&large.attr, SOURCE_CLOCK, type->bit);
	for (unsigned int i = 0; i < ARRAY_SIZE(sizes); i++) {
		/* Older sizes have no clock, and no registers or stacks to ask for. */
		if (sizes[i] > sizeof(large.attr) ||
		    (sizes[i] < 104 && (type->bit & (PERF_SAMPLE_REGS_USER |
						     PERF_SAMPLE_STACK_USER |
						     PERF_SAMPLE_REGS_INTR))))
			continue;
		large.attr.use_clockid = sizes[i] >= 96;
		expect_open(attr_open_sized(&large, sizes[i]), "an older attr", sizes[i]);
	}
	large.attr.use_clockid = 1;
	expect_open(attr_open_sized(&large, sizeof(large)), "a newer attr that asks for no more",
		    sizeof(large));
	large.more[0] = 1;
	expect_error(attr_open_sized(&large, sizeof(large)), E2BIG,
		     RULE_OPEN_ATTR_SIZE "a larger attr that asks for more");
	expect_error(attr_open_sized(&large, 63), E2BIG,
		     RULE_OPEN_ATTR_SIZE "an attr of 63 bytes");
}

/* Reserved fields stay refused with the bit. */
static void reserved(const void *arg)
{
	const struct scoped_type *type = check_type(arg);
	struct perf_event_attr attr;

	attr_init(&attr, SOURCE_CLOCK, type->bit);
	attr.__reserved_1 = 1ULL << (reserved_bits() - 1);
	expect_error(attr_open(&attr, 0, -1), EINVAL,
		     RULE_OPEN_RESERVED "attr.__reserved_1");
#if HAVE_RESERVED_2
	attr_init(&attr, SOURCE_CLOCK, type->bit);
	attr.__reserved_2 = 1;
	expect_error(attr_open(&attr, 0, -1), EINVAL,
		     RULE_OPEN_RESERVED "attr.__reserved_2");
#endif
#if HAVE_RESERVED_3
	attr_init(&attr, SOURCE_CLOCK, type->bit);
	attr.__reserved_3 = 1;
	expect_error(attr_open(&attr, 0, -1), EINVAL,
		     RULE_OPEN_RESERVED "attr.__reserved_3");
#endif
	attr_init(&attr, SOURCE_CLOCK, type->bit);
	attr.read_format = 1ULL << 40;
	expect_error(attr_open(&attr, 0, -1), EINVAL,
		     RULE_OPEN_RESERVED "an unknown bit of attr.read_format");
}

/* Types that exclude each other are refused together. */
static void excluded(const void *arg)
{
	const struct scoped_type *type = check_type(arg);
	const struct sample_type *known = sample_type(type->bit);

	for (__u64 bit = 1; known && bit; bit <<= 1)
		if (known->excludes & bit)
			expect_error(try_bits(type->bit | bit), EINVAL,
				     RULE_OPEN_EXCLUSIVE "two types that exclude each other");
}

/* What software events cannot give: documented as EOPNOTSUPP. */
static void branch_stack(const void *arg)
{
	const struct scoped_type *type = check_type(arg);
	struct perf_event_attr attr;

	attr_init(&attr, SOURCE_CLOCK, type->bit | PERF_SAMPLE_BRANCH_STACK);
	attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY;
	expect_error(attr_open(&attr, 0, -1), EOPNOTSUPP,
		     RULE_OPEN_BRANCHES "a software event with branch stacks");
}

/* A software event has no AUX area that data could come from. */
static void aux(const void *arg)
{
	const struct scoped_type *type = check_type(arg);

	need_bits(PERF_SAMPLE_AUX);
	expect_error(try_bits(type->bit | PERF_SAMPLE_AUX), EINVAL,
		     RULE_OPEN_AUX "a software event with attr.aux_sample_size");
}

/* Where events know cgroups, what is no cgroup is EBADF. */
static bool cgroups(void)
{
	struct perf_event_attr attr;

	attr_init(&attr, SOURCE_CLOCK, 0);
	return syscall(SYS_perf_event_open, &attr, INT_MAX, 0, -1, PERF_FLAG_PID_CGROUP) < 0 &&
	       errno == EBADF;
}

/* CGROUP goes with the kernel's configuration. */
static void cgroup(const void *arg)
{
	const struct scoped_type *type = check_type(arg);
	int error, expected = cgroups() ? 0 : -EINVAL;

	need_bits(PERF_SAMPLE_CGROUP);
	error = try_bits(type->bit | PERF_SAMPLE_CGROUP);
	if (error != expected)
		ktap_fail(RULE_OPEN_CGROUP
			  "perf_event_open() with PERF_SAMPLE_CGROUP: %s; expected %s",
			  strerror(-error), strerror(-expected));
}

/* Each type has one bit, and no other type has it. */
static void bits_used_once(const void *arg)
{
	__u64 used = 0;

	(void)arg;
	for (unsigned int i = 0; i < ARRAY_SIZE(defined_types); i++) {
		const struct defined_type *type = &defined_types[i];

		if (__builtin_popcountll(type->value) != 1)
			ktap_fail(RULE_HEADER_BITS "PERF_SAMPLE_%s is %#llx; expected one bit",
				  type->name, type->value);
		if (type->value & used)
			ktap_fail(RULE_HEADER_BITS
				  "PERF_SAMPLE_%s is %#llx; expected a bit that no other type has",
				  type->name, type->value);
		used |= type->value;
	}
}

static void max_moved(const void *arg)
{
	(void)arg;
	if (PERF_SAMPLE_MAX != SCOPE_NEXT_BIT)
		ktap_fail(RULE_HEADER_BITS
			  "PERF_SAMPLE_MAX is %#llx; expected %#llx, the bit above the highest type",
			  (__u64)PERF_SAMPLE_MAX, SCOPE_NEXT_BIT);
}

/* The layout stands in the comment, and is the one that the layout cases find. */
static void documented(const void *arg)
{
	const struct scoped_type *type = arg;

	if (ktap_kernel == KERNEL_BASE)
		ktap_skip("the comment is that of the patched header");
	if (type->comment)
		ktap_fail(RULE_HEADER_COMMENT "%s", type->comment);
}

int main(int argc, char **argv)
{
	for (unsigned int i = 0; i < SCOPE_TYPES; i++) {
		const struct scoped_type *type = &scope_types[i];

		if (type->new) {
			ktap_add(new_bit, type, "refused_on_base_accepted_on_patched.%s",
				 type->name);
			ktap_add(documented, type, "documented.%s", type->name);
		} else {
			ktap_add(accepted, type, "accepted.%s", type->name);
		}
		ktap_add(attr_size, type, "attr_size.%s", type->name);
		ktap_add(reserved, type, "reserved.%s", type->name);
		if (type->bit != PERF_SAMPLE_BRANCH_STACK)
			ktap_add(branch_stack, type, "branch_stack_refused.%s", type->name);
		if (type->bit != PERF_SAMPLE_AUX)
			ktap_add(aux, type, "aux_refused.%s", type->name);
		if (type->bit != PERF_SAMPLE_CGROUP)
			ktap_add(cgroup, type, "cgroup_as_configured.%s", type->name);
		if (sample_type(type->bit) && sample_type(type->bit)->excludes)
			ktap_add(excluded, type, "excluded.%s", type->name);
	}
	ktap_add(unused_bits, NULL, "unused_bits_refused");
	ktap_add(bits_used_once, NULL, "bits_used_once");
	ktap_add(max_moved, NULL, "max_moved");
	return ktap_main(argc, argv);
}
