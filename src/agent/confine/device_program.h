/* SPDX-License-Identifier: MIT */
/* Compiles device rules to BPF instructions: a program of type BPF_PROG_TYPE_CGROUP_DEVICE. Pure. */
#pragma once

#include <linux/bpf.h>
#include <stddef.h>

#include "job/launch.h"

struct device_program {
    struct bpf_insn *instructions;
    size_t length, capacity;
};

/* Compiles at most LAUNCH_DEVICES_MAX rules; the caller clears the program. Equivalent rules give the same
 * program, regardless of their number and order. */
void device_program_build(const struct device_rule *rules, size_t count, struct device_program *ret);

void device_program_clear(struct device_program *program);
