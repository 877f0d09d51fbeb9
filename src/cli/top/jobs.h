/* SPDX-License-Identifier: MIT */
/* The jobs in `mgpu top`: objects of the API by number, with their changes. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOP_ENDED_MAX    200                // ended jobs still shown
#define TOP_ENDED_FOR_MS (INT64_C(3600000)) // shown for this time after their end

struct top_job {
    int64_t id;
    json_t *job;     // NULL: not received yet
    bool is_changed; // to be requested
    bool is_marked;  // by Space
    /* Of the object, because each picture counts all jobs, and a look into thousands of objects takes long.
     */
    int64_t uid;
    bool is_open; // it runs or waits, and has not been split up into elements
    bool is_waiting;
    int64_t ended_ms; // 0: it has not ended
};

struct top_jobs {
    struct top_job *items; // ordered by number
    size_t count, capacity;
};

/* NULL if unknown. Valid until the next put, touch or prune. */
struct top_job *top_jobs_find(const struct top_jobs *jobs, int64_t id);

/* Takes ownership of the object of a job, replacing an older one. */
void top_jobs_put(struct top_jobs *jobs, json_t *job);

/* Marks a job as changed, or adds a new one. */
void top_jobs_touch(struct top_jobs *jobs, int64_t id);

/* Removes jobs that ended long ago, those beyond TOP_ENDED_MAX, oldest first, and those never received. */
void top_jobs_prune(struct top_jobs *jobs, int64_t now_ms);

/* Removes all but marked or changed jobs, because the list will be received again. */
void top_jobs_reset(struct top_jobs *jobs);

/* Numbers of changed jobs for the API's `ids`, at most `limit`; NULL if there are none. They are then no
 * longer marked as changed. The caller frees it. */
char *top_jobs_take_changed(struct top_jobs *jobs, size_t limit);

/* True if some are still to be requested. */
bool top_jobs_have_changed(const struct top_jobs *jobs);

void top_jobs_clear(struct top_jobs *jobs);

/* True if the job has or had that GPU (an object with `uuid`). */
bool top_job_has_gpu(const json_t *job, const json_t *gpu);

/* Updates its waiting or run time without a request. */
void top_job_tick(json_t *job, int64_t now_ms);
