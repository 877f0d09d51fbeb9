/* SPDX-License-Identifier: MIT */
/* A job in the API's form. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "job/job.h"
#include "wire/usernames.h"

/* The input of a job's object besides the job itself. */
struct json_rank;

struct json_job_view {
    const struct job *job;
    struct usernames *names;
    const char *owner;  // name at its submit; NULL: the current name of its uid
    int64_t now_ms;     // in the time of the job's events
    size_t position;    // 0: unknown or not queued
    const char *reason; // code of why it waits; NULL: unknown or not queued
    const char *reason_text;
    int64_t eta_ms, eta_latest_ms;     // 0: unknown
    int64_t eta_from_ms, eta_until_ms; // probable range of its start; 0: unknown
    int64_t expected_end_ms;           // 0: unknown
    const struct job_usage *usage;     // NULL: not measured
    int64_t latest_return_ms;          // of a job parked by the scheduler's own rule; 0: it has none
    uint64_t park_host;                // the job that is parked for it; 0: none
    uint64_t lender, borrower;     // the parked job to which its GPUs are due, and the job that has those of
                                   // a parked one and cannot be parked; 0: none
    int64_t due_ms;                // with a lender: when
    const char *park_bar;          // why it is not parked by that rule; NULL: it may be, or no job is
    const char *early_start;       // whether it starts early, and why; NULL: unknown or not requested
    int64_t idle_end_ms;           // idle time after which it is ended; 0: never
    const struct json_rank *ranks; // of an active attempt on several nodes, in order of rank; else NULL
    int64_t unreachable_ms;        // its node has been unreachable since; 0: reachable
    int64_t idle_ms;               // how long all its GPUs have been unused; 0: in use or unknown
    const char *after_shown;       // its dependencies, with elements of arrays as 41.3; NULL: as requested
    bool is_sparse;                // omit members that are null
};

/* One key of the object, for documentation. */
struct json_job_key {
    const char *name;
    const char *type; // JSON type; "string|null" if it may be missing
    const char *help;
};

/* The caller owns the result. */
json_t *json_job_write(const struct json_job_view *view);

/* The same as text, without a tree: for lists. */
void json_job_append(const struct json_job_view *view, struct buffer *out);

/* Adds "array_job" and "array_index"; null unless the job is an element of an array. `job` may be NULL. */
void json_job_add_element(json_t *object, const struct job *job);

/* "queued", "starting", "running", "stopping"; for an ended job "done", "cancelled" or "failed". */
const char *json_job_state(const struct job *job);

/* The state for an end, as in json_job_state. */
const char *json_job_end_state(enum job_end end, int32_t exit_code);

/* The keys, numbered from 0; false after the last one. */
bool json_job_key(size_t i, struct json_job_key *ret);

/* "admin", "user", or NULL if it is not held. */
const char *json_job_hold(uint32_t hold);

/* Grants as [{"index","uuid","memory","shared","share","node"}]. */
json_t *json_job_grants(const struct record_list *grants);
