/* SPDX-License-Identifier: MIT */
/* Made-up workloads, "synthetic:JOBS": many users with habits, for want of a public GPU trace that has users.
 */
#pragma once

#include <stdbool.h>

#include "sim/nodes.h"
#include "sim/workload.h"

#define SYNTHETIC_USERS 1000U

bool synthetic_is(const char *path);

/* Jobs that offer the cluster as much work as it can do. Equal seeds give equal jobs. */
int synthetic_make(struct workload *workload, const char *path, const struct sim_nodes *nodes, uint64_t seed,
    struct error *err);
