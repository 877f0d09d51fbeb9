/* SPDX-License-Identifier: MIT */
/*
 * Who may open which device nodes, enforced by the kernel: a device program on a cgroup. It stays with the
 * cgroup, whatever becomes of the process that attached it, and goes with it.
 */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "job/launch.h"

/* Programs that were loaded, to be attached again: jobs that get the same GPUs have the same filter, and the
 * kernel takes longer to check and to compile one than to attach it. All zero: empty. */
#define DEVICE_FILTERS_KEPT 64U
struct device_filters {
    struct kept_filter *slots[DEVICE_FILTERS_KEPT]; // by checksum; the latest of it
};

void device_filters_clear(struct device_filters *filters);

/* Sees to it that the cgroup behind the descriptor of its directory has exactly this filter: one that is
 * there already stays. Returns 1 when it had to be attached, 0 when it was there. */
int device_filter_apply(struct device_filters *filters, int cgroup_fd, const struct device_rule *rules,
    size_t count, struct error *err);

/* Attaches a filter without rules to an empty cgroup, finds it there and takes it away again: works here, or
 * says why not. */
int device_filter_probe(int cgroup_fd, struct error *err);
