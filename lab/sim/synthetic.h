/* SPDX-License-Identifier: MIT */
/* Synthetic workloads, "synthetic:JOBS": many users with habits, because there is no public GPU trace with
 * users. */
#pragma once

#include <stdbool.h>

#include "lab/sim/nodes.h"
#include "lab/sim/workload.h"

#define SYNTHETIC_USERS 1000U

bool synthetic_is(const char *path);

/* Creates jobs that fully load the cluster. Equal seeds give equal jobs. */
int synthetic_make(struct workload *workload, const char *path, const struct sim_nodes *nodes, uint64_t seed,
    struct error *err);
