/* SPDX-License-Identifier: MIT */
/* The ranks of a job on several nodes, in the API's form. */
#pragma once

#include <jansson.h>

#include "job/job.h"

/* The state of a rank while its attempt is active. The texts are borrowed. */
struct json_rank {
    const char *state; // "starting", "ready", "running", "done", "returned", "lost"
    const char *log_path;
    bool has_exit;
    enum job_end end; // with has_exit
    int32_t exit_code;
    int64_t unreachable_ms; // its node has been unreachable since; 0: reachable
};

/* [{"rank","node","gpus","state","ended_by","exit_code","log","unreachable_since"}] in order of rank; null if
 * its latest attempt has one node. `live` NULL: uses the record of an ended job. */
json_t *json_ranks_write(const struct job *job, const struct json_rank *live);
