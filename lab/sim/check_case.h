/* SPDX-License-Identifier: MIT */
/*
 * A random workload for `mgpu-sim check`: a cluster, jobs and events, as plain numbers by name, so that a
 * case can be generated from a seed, printed, parsed and reduced by the same few loops.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

enum case_setting {
    SET_POLICY, // index in policies[]
    SET_PLACEMENT,
    SET_RESERVATIONS,
    SET_NODE_JOBS,
    SET_USER_JOBS,
    SET_USER_GPUS, // thousandths
    SET_GRACE_MS,  // how long a preemption takes
    SET_IS_EXACT,  // the scheduler is given the real durations
    SET_IS_FAIR,   // similar jobs of users with equal shares: fairness is checked
    SET_SHARES,    // of department 1; 0: there are no departments
    SET_PARK,      // enum check_park
    SET_PARK_ROOM, // parked GPUs that a node may hold, thousandths of each of its own
    CASE_SETTINGS
};

/* Whether preempted jobs are parked, and where they return to. */
enum check_park {
    CHECK_PARK_NONE,
    CHECK_PARK_ANY,
    CHECK_PARK_NODE,
    CHECK_PARK_GPU,
    CHECK_PARK_AUTO, // by the scheduler's own rule
    CHECK_PARK_KINDS
};

enum case_node { NODE_GPUS, NODE_CPU, NODE_MEMORY, CASE_NODE_VALUES };

enum case_job {
    JOB_ID,
    JOB_AT, // submit time, ms
    JOB_RUN,
    JOB_UID,
    JOB_GID,
    JOB_PRIORITY,
    JOB_GPUS,
    JOB_SHARE,
    JOB_GPU_MEM,
    JOB_CPU,
    JOB_MEMORY,
    JOB_NODES,
    JOB_PER_NODE,
    JOB_ALLOW, // allowed GPU indexes as bits; 0: any
    JOB_PICK,  // node * 256 + index + 1 of its one GPU; 0: any
    JOB_PREEMPTIBLE,
    JOB_LIMIT,
    JOB_BEGIN,
    JOB_HOLD_UNTIL,
    JOB_AFTER, // id
    JOB_AFTER_KIND,
    JOB_FAILS,
    JOB_ELEMENTS, // 0: not an array
    JOB_ELEMENT_LIMIT,
    JOB_OWN,     // own priority
    JOB_REFUSES, // cannot be parked; 2: the scheduler knows
    JOB_TOLD,    // what the scheduler believes that it runs, if it is given durations; 0: the real one
    CASE_JOB_VALUES
};

enum case_event_kind {
    HAPPEN_NODE_DOWN,
    HAPPEN_NODE_UP,
    HAPPEN_DRAIN,
    HAPPEN_RESUME_NODE,
    HAPPEN_PAUSE,
    HAPPEN_RESUME_GPU,
    HAPPEN_CANCEL,
    HAPPEN_RESERVE,
    HAPPEN_KINDS
};

enum case_event { EVENT_AT, EVENT_KIND, EVENT_A, EVENT_B, EVENT_C, EVENT_D, CASE_EVENT_VALUES };

struct sim_case {
    int64_t settings[CASE_SETTINGS];
    int64_t (*nodes)[CASE_NODE_VALUES];
    int64_t (*jobs)[CASE_JOB_VALUES];
    int64_t (*events)[CASE_EVENT_VALUES];
    size_t n_nodes, n_jobs, n_events;
};

void case_make(struct sim_case *ret, uint64_t seed);
void case_copy(struct sim_case *to, const struct sim_case *from);
void case_clear(struct sim_case *of);

/* One JSON object a line. */
void case_write(const struct sim_case *of, FILE *out);
int case_read(struct sim_case *ret, const char *path, struct error *err);
