// SPDX-License-Identifier: GPL-2.0
#include "bpf.h"
#include "ktap.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
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
	struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };
	int fd;

	/* Until 5.11 a map counted as memory that its owner locks. */
	setrlimit(RLIMIT_MEMLOCK, &all);
	fd = call(BPF_MAP_CREATE, &attr);
	if (fd < 0)
		ktap_skip("BPF_MAP_CREATE: %m");
	return fd;
}

int bpf_map_try(int map, __u32 key, const void *value)
{
	union bpf_attr attr = {
		.map_fd = map,
		.key = (__u64)&key,
		.value = (__u64)value,
	};

	return call(BPF_MAP_UPDATE_ELEM, &attr) ? -errno : 0;
}

void bpf_map_set(int map, __u32 key, const void *value)
{
	int error = bpf_map_try(map, key, value);

	if (error)
		ktap_stop(RULE_TEST_SETUP "BPF_MAP_UPDATE_ELEM: %s", strerror(-error));
}

void bpf_map_get(int map, __u32 key, void *value)
{
	union bpf_attr attr = {
		.map_fd = map,
		.key = (__u64)&key,
		.value = (__u64)value,
	};

	if (call(BPF_MAP_LOOKUP_ELEM, &attr))
		ktap_stop(RULE_TEST_SETUP "BPF_MAP_LOOKUP_ELEM: %m");
}

void bpf_emit(struct bpf_program *program, struct bpf_insn insn)
{
	if (program->count == ARRAY_SIZE(program->insn))
		ktap_stop(RULE_TEST_SETUP "a BPF program is longer than this test can hold");
	program->insn[program->count++] = insn;
}

void bpf_emit_wide(struct bpf_program *program, int reg, int source,
		   __u64 value)
{
	bpf_emit(program, BPF_INSN(BPF_LD | BPF_DW | BPF_IMM, reg, source, 0, (__s32)value));
	bpf_emit(program, BPF_INSN(0, 0, 0, 0, (__s32)(value >> 32)));
}

int bpf_load(enum bpf_prog_type type, const struct bpf_program *program)
{
	static char log[65536];
	union bpf_attr attr = {
		.prog_type = type,
		.insns = (__u64)program->insn,
		.insn_cnt = program->count,
		.license = (__u64)"GPL",
		.log_buf = (__u64)log,
		.log_size = sizeof(log),
		.log_level = 1,
	};
	int fd = call(BPF_PROG_LOAD, &attr);
	int error = -errno;

	if (fd >= 0)
		return fd;
	if (strlen(log) > 300)
		memmove(log, log + strlen(log) - 300, 301);
	for (char *c = log; *c; c++)
		if (*c == '\n')
			*c = '|';
	ktap_diag("BPF_PROG_LOAD: %s", log);
	return error;
}
