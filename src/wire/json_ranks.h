/* SPDX-License-Identifier: MIT */
/* The ranks of a job on several nodes, as the API shows them. */
#pragma once

#include <jansson.h>

#include "job/job.h"

/* What is known of a one while its attempt is active. The texts are borrowed. */
struct json_rank {
    const char *state; // "starting", "ready", "running", "done", "returned", "lost"
    const char *log_path;
    bool has_exit;
    enum job_end end; // with has_exit
    int32_t exit_code;
    int64_t unreachable_ms; // since when nothing is heard of its node; 0: it is not so
};

/* [{"rank","node","gpus","state","ended_by","exit_code","log","unreachable_since"}] in order of rank; null
 * when its latest attempt has one node. `live` NULL: what is in the record of a job that is over. */
json_t *json_ranks_write(const struct job *job, const struct json_rank *live);
