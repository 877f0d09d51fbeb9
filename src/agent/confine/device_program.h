/* SPDX-License-Identifier: MIT */
/* From device rules to instructions for the kernel: a program of type BPF_PROG_TYPE_CGROUP_DEVICE. Pure. */
#pragma once

#include <linux/bpf.h>
#include <stddef.h>

#include "job/launch.h"

struct device_program {
    struct bpf_insn *instructions;
    size_t length, capacity;
};

/* Writes the program for at most LAUNCH_DEVICES_MAX rules; the caller clears it. Rules that decide the same
 * give the same program, in whatever number and order they are. */
void device_program_build(const struct device_rule *rules, size_t count, struct device_program *ret);

void device_program_clear(struct device_program *program);
