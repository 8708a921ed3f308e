// SPDX-License-Identifier: GPL-2.0
#include "user.h"
#include "event.h"
#include "ktap.h"

#include <grp.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#define PARANOID	"/proc/sys/kernel/perf_event_paranoid"
#define NOBODY		65534

void user_set_level(int level)
{
	FILE *file = fopen(PARANOID, "we");
	bool done;

	if (!file)
		ktap_skip("%s: %m", PARANOID);
	done = fprintf(file, "%d\n", level) > 0;
	if (fclose(file) || !done)
		ktap_skip("%s cannot be set: %m", PARANOID);
}

void user_become_nobody(void)
{
	if (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) ||
	    setresuid(NOBODY, NOBODY, NOBODY))
		ktap_skip("cannot become an unprivileged user: %m");
	prctl(PR_SET_DUMPABLE, 1);	/* /proc/self is still ours to read */
}

bool denies_everything(void)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	int fd = attr_open(&attr, 0, -1);

	if (fd < 0)
		return true;
	close(fd);
	return false;
}

void no_kernel_address(const struct perf_event_header *header)
{
	const __u64 *word = (const __u64 *)header;

	for (unsigned int i = 1; i < header->size / 8; i++) {
		if (word[i] < 0xffff800000000000ULL || word[i] >= PERF_CONTEXT_MAX)
			continue;
		if (ktap_fail(RULE_PERMISSION_ADDRESS
			      "the kernel address %#llx at byte %u of a record for an unprivileged user",
			      word[i], i * 8))
			ktap_hexdump(header, header->size);
		return;
	}
}
