/* SPDX-License-Identifier: MIT */
/* The jobs that `mgpu top` knows: objects of the API by number, and which of them have changed since. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOP_ENDED_MAX    200                // jobs that are over and still shown
#define TOP_ENDED_FOR_MS (INT64_C(3600000)) // for so long after their end

struct top_job {
    int64_t id;
    json_t *job;     // NULL: only its number is known so far
    bool is_changed; // to be asked for
    bool is_marked;  // by Space
};

struct top_jobs {
    struct top_job *items; // in order of their numbers
    size_t count, capacity;
};

/* NULL when it is not known. Valid until the next put, touch or prune. */
struct top_job *top_jobs_find(const struct top_jobs *jobs, int64_t id);

/* Takes the object of a job, in the place of an older one. */
void top_jobs_put(struct top_jobs *jobs, json_t *job);

/* Notes that a job has changed, or that there is a new one. */
void top_jobs_touch(struct top_jobs *jobs, int64_t id);

/* Forgets those that ended long ago, the oldest ends beyond TOP_ENDED_MAX, and what was never told. */
void top_jobs_prune(struct top_jobs *jobs, int64_t now_ms);

/* Forgets all but what is marked or has just changed: the list is told anew. */
void top_jobs_reset(struct top_jobs *jobs);

/* Numbers of changed jobs as the API's `ids` wants them, at most `limit`; NULL when there are none. They
 * count as unchanged from now on. The caller frees it. */
char *top_jobs_take_changed(struct top_jobs *jobs, size_t limit);

/* Some are still to be asked for. */
bool top_jobs_have_changed(const struct top_jobs *jobs);

void top_jobs_clear(struct top_jobs *jobs);

/* True when the job has or had that GPU (an object with `uuid`). */
bool top_job_has_gpu(const json_t *job, const json_t *gpu);

/* Brings the seconds that it waits or runs up to date, without asking for it. */
void top_job_tick(json_t *job, int64_t now_ms);
