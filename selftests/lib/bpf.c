// SPDX-License-Identifier: GPL-2.0
#include "bpf.h"
#include "ktap.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int call(int command, union bpf_attr *attr)
{
	return syscall(SYS_bpf, command, attr, sizeof(*attr));
}

int bpf_map(enum bpf_map_type type, unsigned int key_size,
	    unsigned int value_size, unsigned int entries)
{
	union bpf_attr attr = {
		.map_type = type,
		.key_size = key_size,
		.value_size = value_size,
		.max_entries = entries,
	};
	int fd = call(BPF_MAP_CREATE, &attr);

	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		ktap_skip("bpf(): %m");
	if (fd < 0)
		ktap_stop("BPF_MAP_CREATE: %m");
	return fd;
}

void bpf_map_set(int map, __u32 key, const void *value)
{
	union bpf_attr attr = {
		.map_fd = map,
		.key = (__u64)&key,
		.value = (__u64)value,
	};

	if (call(BPF_MAP_UPDATE_ELEM, &attr))
		ktap_stop("BPF_MAP_UPDATE_ELEM: %m");
}

void bpf_map_get(int map, __u32 key, void *value)
{
	union bpf_attr attr = {
		.map_fd = map,
		.key = (__u64)&key,
		.value = (__u64)value,
	};

	if (call(BPF_MAP_LOOKUP_ELEM, &attr))
		ktap_stop("BPF_MAP_LOOKUP_ELEM: %m");
}

int bpf_load(enum bpf_prog_type type, const struct bpf_insn *insn,
	     unsigned int count)
{
	static char log[8192];
	union bpf_attr attr = {
		.prog_type = type,
		.insns = (__u64)insn,
		.insn_cnt = count,
		.license = (__u64)"GPL",
		.log_buf = (__u64)log,
		.log_size = sizeof(log),
		.log_level = 1,
	};
	int fd = call(BPF_PROG_LOAD, &attr);

	if (fd < 0) {
		ktap_diag("%s", log);
		ktap_stop("BPF_PROG_LOAD: %m");
	}
	return fd;
}
