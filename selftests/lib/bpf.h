/* SPDX-License-Identifier: GPL-2.0 */
/* Small BPF programs, loaded with bpf(2) alone. */
#ifndef BPF_PROGRAM_H
#define BPF_PROGRAM_H

#include "compiler.h"

#include <linux/bpf.h>
#include <linux/types.h>

/* Make a map; skips the case when the kernel has no BPF. */
int bpf_map(enum bpf_map_type type, unsigned int key_size,
	    unsigned int value_size, unsigned int entries);

/* Write value as element key of map; returns 0 or -errno. */
int bpf_map_try(int map, __u32 key, const void *value);

/* The same, where it must succeed. */
void bpf_map_set(int map, __u32 key, const void *value);

/* Read element key of map. */
void bpf_map_get(int map, __u32 key, void *value);

/* A program that is being written. */
struct bpf_program {
	struct bpf_insn insn[512];
	unsigned int count;
};

void bpf_emit(struct bpf_program *program, struct bpf_insn insn);

/* Emit a load of 64 bits; source says what they are (BPF_PSEUDO_...). */
void bpf_emit_wide(struct bpf_program *program, int reg, int source,
		   __u64 value);

/* Load a program; returns its descriptor, or -errno with the log printed. */
int bpf_load(enum bpf_prog_type type, const struct bpf_program *program);

#define BPF_INSN(op, d, s, o, i)	\
	((struct bpf_insn){ .code = (op), .dst_reg = (d), .src_reg = (s), \
			    .off = (o), .imm = (i) })
#define BPF_MOVE(d, s)		BPF_INSN(BPF_ALU64 | BPF_MOV | BPF_X, d, s, 0, 0)
#define BPF_MOVE_IMM(d, i)	BPF_INSN(BPF_ALU64 | BPF_MOV | BPF_K, d, 0, 0, i)
#define BPF_ADD_IMM(d, i)	BPF_INSN(BPF_ALU64 | BPF_ADD | BPF_K, d, 0, 0, i)
#define BPF_LOAD64(d, s, o)	BPF_INSN(BPF_LDX | BPF_MEM | BPF_DW, d, s, o, 0)
#define BPF_STORE64(d, o, s)	BPF_INSN(BPF_STX | BPF_MEM | BPF_DW, d, s, o, 0)
#define BPF_JUMP_EQ(d, i, o)	BPF_INSN(BPF_JMP | BPF_JEQ | BPF_K, d, 0, o, i)
#define BPF_HELPER(i)		BPF_INSN(BPF_JMP | BPF_CALL, 0, 0, 0, i)
#define BPF_RETURN()		BPF_INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)

#endif
