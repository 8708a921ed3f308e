// SPDX-License-Identifier: GPL-2.0
#include "promise.h"
#include "ktap.h"

#include <linux/perf_event.h>
#include <string.h>

struct promise promises[PROMISES_MAX];
unsigned int promise_count;

struct promise *promise_find(__u64 cookie)
{
	for (unsigned int i = 0; i < promise_count; i++)
		if (promises[i].cookie == cookie)
			return &promises[i];
	return NULL;
}

struct promise *promise_note(__u64 cookie, __u64 address)
{
	struct promise *promise = promise_find(cookie);

	if (!promise) {
		if (promise_count == PROMISES_MAX)
			ktap_stop(RULE_TEST_SETUP "more cookies than this test can hold");
		promise = &promises[promise_count++];
		*promise = (struct promise){ .cookie = cookie };
	}
	if (address)
		promise->address = address;
	return promise;
}

void promise_note_sample(const struct sample *sample, __u64 address)
{
	const struct build_id_offset *entry = sample->callchain_build_id_offset.entries;
	__u64 words[4];

	if (sample->bits & PERF_SAMPLE_BUILD_ID_OFFSET) {
		memcpy(words, &sample->build_id_offset.bid, sizeof(words));
		if (!words[0] && words[1] == PERF_CONTEXT_USER_DEFERRED)
			promise_note(words[2], words[3]);
	}
	if (sample->bits & PERF_SAMPLE_CALLCHAIN)
		for (__u64 i = 0; i + 1 < sample->callchain.nr; i++)
			if (sample->callchain.ips[i] == PERF_CONTEXT_USER_DEFERRED)
				promise_note(sample->callchain.ips[i + 1], address);
	if (sample->bits & PERF_SAMPLE_CALLCHAIN_BUILD_ID_OFFSET)
		for (__u64 i = 0; i + 1 < sample->callchain_build_id_offset.nr; i++)
			if (!entry[i].size && entry[i].offset == PERF_CONTEXT_USER_DEFERRED)
				promise_note(entry[i + 1].offset, address);
}

unsigned int promises_missing(void)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < promise_count; i++)
		count += !promises[i].answers;
	return count;
}
