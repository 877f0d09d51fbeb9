/* SPDX-License-Identifier: MIT */
/* Which jobs sacct lists, apart from their ids, users and names, which mgpud selects. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct slurm_state;

#define SACCT_STATES_MAX 64U // words of a list; further ones must be repetitions

/* Values of options as they were given; NULL: any. */
struct sacct_choice {
    const char *states, *partitions, *accounts, *qos, *nodes, *groups, *reasons, *keys, *constraints,
        *clusters, *cpu_range, *node_range, *least_limit, *most_limit;
    int64_t start_ms, end_ms; // wall time; jobs that existed in between. end_ms 0: up to now
    const struct slurm_state *wanted[SACCT_STATES_MAX]; // those of `states`
    size_t wanted_count;
};

/* -EINVAL with Slurm's message if a value is invalid; reads the list of states. */
int sacct_choice_check(struct sacct_choice *choice, struct error *err);

/* With states: whether the job was in one of them in between, or ended so. */
bool sacct_choice_has(const struct sacct_choice *choice, const json_t *job);
