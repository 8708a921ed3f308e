// SPDX-License-Identifier: GPL-2.0
/* Which sample type bits the kernel accepts. */
#include "decode.h"
#include "event.h"
#include "ktap.h"
#include "scope.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <unistd.h>

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
		ktap_fail("perf_event_open() with PERF_SAMPLE_%s: %s",
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
		ktap_fail("perf_event_open() with PERF_SAMPLE_%s on base: %s, not %s",
			  type->name, strerror(-error), strerror(EINVAL));
}

static void unused_bits(const void *arg)
{
	(void)arg;
	for (__u64 bit = SCOPE_NEXT_BIT; bit; bit <<= 1) {
		int error = try_bits(bit);

		if (error != -EINVAL)
			ktap_fail("perf_event_open() with the unused bit %#llx: %s, not %s",
				  bit, strerror(-error), strerror(EINVAL));
	}
}

int main(int argc, char **argv)
{
	for (unsigned int i = 0; i < SCOPE_TYPES; i++) {
		const struct scoped_type *type = &scope_types[i];

		if (type->new)
			ktap_add(new_bit, type, "refused_on_base_accepted_on_patched.%s",
				 type->name);
		else
			ktap_add(accepted, type, "accepted.%s", type->name);
	}
	ktap_add(unused_bits, NULL, "unused_bits_refused");
	return ktap_main(argc, argv);
}
