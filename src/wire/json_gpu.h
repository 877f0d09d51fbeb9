/* SPDX-License-Identifier: MIT */
/* A GPU as the API shows it. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "job/cluster_change.h"
#include "job/job.h"
#include "wire/message.h"
#include "wire/usernames.h"

struct json_gpu_view {
    const char *node;
    bool is_node_up;
    int64_t unreachable_ms; // wall clock: since when nothing is heard of its node; 0: it is not unreachable
    const struct gpu_state *gpu;
    const struct job *const *jobs; // what holds it or a part of it
    const int64_t *idle_ms;        // for how long each of them has not used it; 0: it does
    bool is_wasted;                // all of them leave it unused for too long
    size_t n_jobs;
    const struct cluster_change *pause, *drain; // by an administrator, of it and of its node; NULL: none
    const struct cluster_change *fault;         // why mgpu has drained it; NULL: it has not
    const char *external_policy;                // what processes that mgpu did not start mean for it
    struct usernames *names;
};

/* The caller owns the result. Values that the node cannot measure are null. */
json_t *json_gpu_write(const struct json_gpu_view *view);
