/* SPDX-License-Identifier: MIT */
/* A job as the API shows it. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "job/job.h"
#include "wire/usernames.h"

/* What a job's object is made of besides the job itself. */
struct json_rank;

struct json_job_view {
    const struct job *job;
    struct usernames *names;
    const char *owner; // at its submit; NULL: the name that its number has now
    int64_t now_wall_ms;
    size_t position;    // 0: not known or not queued
    const char *reason; // the word for why it waits; NULL: not known or not queued
    const char *reason_text;
    int64_t eta_ms, eta_latest_ms; // 0: not known
    const struct job_usage *usage; // NULL: nothing was measured
    int64_t idle_end_ms;           // it is ended when that is so long; 0: never
    const struct json_rank *ranks; // of an active attempt on several nodes, in order of rank; else NULL
    int64_t unreachable_ms;        // it runs on a node of which nothing is heard since then; 0: it does not
    int64_t idle_ms;               // for which it has used none of its GPUs; 0: it does, or nobody knows
    bool is_sparse;                // members that are null are left out
};

/* One key of the object, for whoever documents it. */
struct json_job_key {
    const char *name;
    const char *type; // JSON type; "string|null" when it may be missing
    const char *help;
};

/* The caller owns the result. */
json_t *json_job_write(const struct json_job_view *view);

/* "queued", "starting", "running", "stopping", and "done", "cancelled" or "failed" for a job that is over. */
const char *json_job_state(const struct job *job);

/* The word for an end, as in json_job_state. */
const char *json_job_end_state(enum job_end end, int32_t exit_code);

/* The keys, numbered from 0; false after the last one. */
bool json_job_key(size_t i, struct json_job_key *ret);

/* "admin", "user", or NULL when nobody holds it. */
const char *json_job_hold(uint32_t hold);

/* Grants as [{"index","uuid","memory","shared","share","node"}]. */
json_t *json_job_grants(const struct record_list *grants);
