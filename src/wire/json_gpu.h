/* SPDX-License-Identifier: MIT */
/* A GPU in the API's form. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "job/cluster_change.h"
#include "job/job.h"
#include "wire/gpu_comparison.h"
#include "wire/json_member.h"
#include "wire/message.h"
#include "wire/usernames.h"

struct json_gpu_view {
    const char *node;
    bool is_node_up;
    int64_t unreachable_ms; // wall clock: its node has been unreachable since; 0: it is reachable
    const struct gpu_state *gpu;
    const struct job *const *jobs; // jobs that hold it or a part of it
    const int64_t *idle_ms;        // how long each of them has not used it; 0: in use
    bool is_wasted;                // none of them has used it for too long
    size_t n_jobs;
    const struct cluster_change *pause, *drain; // by an administrator, for it and for its node; NULL: none
    const struct cluster_change *fault;         // drained by mgpu; NULL: not drained
    const char *external_policy;                // policy for external processes
    bool is_avoided;                            // because of these, no new job starts on it
    struct usernames *names;
    bool is_sparse;                    // omit members that are null, false or empty
    struct gpu_comparison *comparison; // for comparing its tests; NULL: not compared
    /* Set by these functions. */
    const struct cluster_change *mark; // of `pause` and `drain`, the one that counts
    const char *test_result, *test_text;
};

/* A GPU, a job on it, and a test of it, for the documentation. */
extern const struct json_table json_gpu_table, json_gpu_job_table, json_gpu_test_table;

/* "free", "used" and so on. */
const char *json_gpu_state(const struct json_gpu_view *view);

/* For tests. The caller owns the result. Values that the node cannot measure are null. */
json_t *json_gpu_write(const struct json_gpu_view *view);

/* The same as text, without a tree: for lists. */
void json_gpu_append(const struct json_gpu_view *view, struct buffer *out);
