/* SPDX-License-Identifier: MIT */
/* Which jobs sacct lists, apart from their ids, users and names, which mgpud selects. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Values of options as they were given; NULL: any. */
struct sacct_choice {
    const char *states, *partitions, *accounts, *qos, *nodes, *groups, *reasons, *keys, *constraints,
        *clusters, *cpu_range, *node_range, *least_limit, *most_limit;
    int64_t start_ms, end_ms; // wall time; jobs that were there in between. end_ms 0: up to now
};

/* -EINVAL in Slurm's words if a value is none. */
int sacct_choice_check(const struct sacct_choice *choice, struct error *err);

bool sacct_choice_has(const struct sacct_choice *choice, const json_t *job);
