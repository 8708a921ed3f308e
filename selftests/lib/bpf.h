/* SPDX-License-Identifier: GPL-2.0 */
/* Small BPF programs, loaded with bpf(2) alone. */
#ifndef BPF_H
#define BPF_H

#include "compiler.h"

#include <linux/bpf.h>
#include <linux/types.h>

/* Make a map; skips the case when the kernel has no BPF. */
int bpf_map(enum bpf_map_type type, unsigned int key_size,
	    unsigned int value_size, unsigned int entries);

/* Write value as element key of map. */
void bpf_map_set(int map, __u32 key, const void *value);

/* Read element key of map. */
void bpf_map_get(int map, __u32 key, void *value);

/* Load a program; fails the case with the verifier's log when it is refused. */
int bpf_load(enum bpf_prog_type type, const struct bpf_insn *insn,
	     unsigned int count);

#define INSN(op, d, s, o, i)	\
	((struct bpf_insn){ .code = (op), .dst_reg = (d), .src_reg = (s), \
			    .off = (o), .imm = (i) })
#define MOV(d, s)		INSN(BPF_ALU64 | BPF_MOV | BPF_X, d, s, 0, 0)
#define MOV_IMM(d, i)		INSN(BPF_ALU64 | BPF_MOV | BPF_K, d, 0, 0, i)
#define LOAD64(d, s, o)		INSN(BPF_LDX | BPF_MEM | BPF_DW, d, s, o, 0)
#define STORE64(d, o, s)	INSN(BPF_STX | BPF_MEM | BPF_DW, d, s, o, 0)
#define JUMP_NE(d, i, o)	INSN(BPF_JMP | BPF_JNE | BPF_K, d, 0, o, i)
#define CALL(i)			INSN(BPF_JMP | BPF_CALL, 0, 0, 0, i)
#define EXIT()			INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)
/* Two instructions: a 64-bit value, a map, or the first value in a map. */
#define WIDE(d, s, low, high)	\
	INSN(BPF_LD | BPF_DW | BPF_IMM, d, s, 0, low), INSN(0, 0, 0, 0, high)
#define WIDE_IMM(d, v)		WIDE(d, 0, (__s32)(__u64)(v), (__s32)((__u64)(v) >> 32))
#define MAP(d, fd)		WIDE(d, BPF_PSEUDO_MAP_FD, fd, 0)
#define MAP_VALUE(d, fd)	WIDE(d, BPF_PSEUDO_MAP_VALUE, fd, 0)

#endif
