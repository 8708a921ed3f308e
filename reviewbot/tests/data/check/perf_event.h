enum perf_event_sample_format {
	PERF_SAMPLE_IP = 1U << 0,
	PERF_SAMPLE_TID = 1U << 1,
	PERF_SAMPLE_TIME = 1U << 2,

	PERF_SAMPLE_MAX = 1U << 3, /* non-ABI */
};

enum perf_event_type {
	/*
	 * struct {
	 *	{ u64 ip; } && PERF_SAMPLE_IP
	 *	{ u32 pid, tid; } && PERF_SAMPLE_TID
	 *	{ u64 time; } && PERF_SAMPLE_TIME
	 * };
	 */
	PERF_RECORD_SAMPLE = 9,
};

#define PERF_FLAG_FD_NO_GROUP (1UL << 0)

struct perf_event_attr {
	__u32 type;
	__u32 size;
	__u64 enabled : 1,
	      __reserved_1 : 63;
	union {
		__u64 config1;
		__u64 bp_addr;
	};
	__u32 __reserved_2;
};
