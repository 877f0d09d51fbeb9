/* SPDX-License-Identifier: MIT */
/*
 * Device access, enforced by the kernel: a device program on a cgroup. It is independent of the process that
 * attached it and is removed with the cgroup.
 */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "job/launch.h"

/* Cache of loaded programs: jobs with the same GPUs have the same filter, and the kernel takes longer to
 * verify and compile one than to attach it. All zero: empty. */
#define DEVICE_FILTERS_KEPT 64U
struct device_filters {
    struct kept_filter *slots[DEVICE_FILTERS_KEPT]; // by checksum; the latest of each
};

void device_filters_clear(struct device_filters *filters);

/* Ensures that the cgroup with this directory has exactly this filter. Returns 1 if it was attached, 0 if it
 * was there already. */
int device_filter_apply(struct device_filters *filters, int cgroup_fd, const struct device_rule *rules,
    size_t count, struct error *err);

/* Tests whether filters work here, by attaching one without rules to an empty cgroup, querying it and
 * removing it; else `err` has the reason. */
int device_filter_probe(int cgroup_fd, struct error *err);
