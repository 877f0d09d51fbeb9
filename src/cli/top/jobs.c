/* SPDX-License-Identifier: MIT */
/* New jobs have the largest numbers, so appending almost always keeps the array sorted. */
#include "cli/top/jobs.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "cli/show/job_columns.h"
#include "cli/term/time_text.h"

/* The position of the job, or the one at which to insert it. */
static size_t place_of(const struct top_jobs *jobs, int64_t id)
{
    size_t low = 0, high = jobs->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (jobs->items[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct top_job *top_jobs_find(const struct top_jobs *jobs, int64_t id)
{
    size_t i = place_of(jobs, id);
    return i < jobs->count && jobs->items[i].id == id ? &jobs->items[i] : NULL;
}

static struct top_job *add(struct top_jobs *jobs, int64_t id)
{
    size_t i = place_of(jobs, id);
    if (i < jobs->count && jobs->items[i].id == id)
        return &jobs->items[i];
    if (jobs->count == jobs->capacity) {
        jobs->capacity = jobs->capacity == 0 ? 64 : jobs->capacity * 2;
        jobs->items = xreallocarray(jobs->items, jobs->capacity, sizeof(struct top_job));
    }
    memmove(&jobs->items[i + 1], &jobs->items[i], (jobs->count - i) * sizeof(struct top_job));
    jobs->items[i] = (struct top_job){ .id = id };
    jobs->count++;
    return &jobs->items[i];
}

void top_jobs_put(struct top_jobs *jobs, json_t *job)
{
    int64_t id = field_integer(job, "id", 0);
    if (id <= 0)
        return;
    struct top_job *known = add(jobs, id);
    json_decref(known->job);
    known->job = json_incref(job);
    known->uid = field_integer(job, "uid", -1);
    known->ended_ms = job_is_done(job) ? time_parse(field_text(job, "ended_at")) : 0;
    known->is_open = !job_is_done(job) && !job_is_split_up(job);
    known->is_waiting = field_is(job, "state", "queued");
}

void top_jobs_touch(struct top_jobs *jobs, int64_t id)
{
    if (id > 0)
        add(jobs, id)->is_changed = true;
}

static void keep_if(
    struct top_jobs *jobs, bool (*is_kept)(const struct top_job *job, int64_t limit), int64_t limit)
{
    size_t kept = 0;
    for (size_t i = 0; i < jobs->count; i++) {
        if (is_kept(&jobs->items[i], limit))
            jobs->items[kept++] = jobs->items[i];
        else
            json_decref(jobs->items[i].job);
    }
    jobs->count = kept;
}

static bool is_recent(const struct top_job *job, int64_t limit)
{
    return (job->job != NULL || job->is_changed) && (job->ended_ms == 0 || job->ended_ms >= limit);
}

static int compare_times(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x > y ? -1 : x < y;
}

void top_jobs_prune(struct top_jobs *jobs, int64_t now_ms)
{
    _cleanup_free_ int64_t *ends = xcalloc(jobs->count + 1, sizeof(int64_t));
    size_t count = 0;
    for (size_t i = 0; i < jobs->count; i++)
        if (jobs->items[i].ended_ms > 0)
            ends[count++] = jobs->items[i].ended_ms;
    int64_t limit = now_ms - TOP_ENDED_FOR_MS;
    if (count > TOP_ENDED_MAX) {
        qsort(ends, count, sizeof(int64_t), compare_times);
        if (ends[TOP_ENDED_MAX - 1] > limit)
            limit = ends[TOP_ENDED_MAX - 1];
    }
    keep_if(jobs, is_recent, limit);
}

static bool is_kept_over(const struct top_job *job, int64_t limit)
{
    return job->is_marked || job->is_changed;
}

void top_jobs_reset(struct top_jobs *jobs)
{
    keep_if(jobs, is_kept_over, 0);
    for (size_t i = 0; i < jobs->count; i++)
        jobs->items[i].is_changed = true;
}

char *top_jobs_take_changed(struct top_jobs *jobs, size_t limit)
{
    struct buffer out = { 0 };
    for (size_t i = 0; i < jobs->count && limit > 0; i++) {
        if (!jobs->items[i].is_changed)
            continue;
        buffer_printf(&out, "%s%" PRId64, out.length > 0 ? "," : "", jobs->items[i].id);
        jobs->items[i].is_changed = false;
        limit--;
    }
    return out.length == 0 ? NULL : buffer_take(&out);
}

bool top_jobs_have_changed(const struct top_jobs *jobs)
{
    for (size_t i = 0; i < jobs->count; i++)
        if (jobs->items[i].is_changed)
            return true;
    return false;
}

void top_jobs_clear(struct top_jobs *jobs)
{
    for (size_t i = 0; i < jobs->count; i++)
        json_decref(jobs->items[i].job);
    free(jobs->items);
    *jobs = (struct top_jobs){ 0 };
}

bool top_job_has_gpu(const json_t *job, const json_t *gpu)
{
    size_t index = 0;
    json_t *grant = NULL;
    const char *uuid = field_text(gpu, "uuid");
    json_array_foreach(json_object_get(job, "granted"), index, grant)
    {
        if (uuid != NULL && field_is(grant, "uuid", uuid))
            return true;
    }
    return false;
}

static void set_since(json_t *job, const char *name, const char *since, int64_t less_ms, int64_t now_ms)
{
    int64_t from = time_parse(field_text(job, since)) + less_ms;
    if (from > less_ms)
        (void)json_object_set_new(job, name, json_real(now_ms > from ? (double)(now_ms - from) / 1000 : 0));
}

void top_job_tick(json_t *job, int64_t now_ms)
{
    if (job_is_done(job))
        return;
    if (field_is(job, "park", "early") || field_is_known(job, "parked_at"))
        return; // it does not run
    const char *since = field_is_known(job, "gpus_at") ? "gpus_at" : "started_at";
    double parked_s = 0;
    (void)field_measured(job, "parked_seconds", &parked_s);
    if (field_is_known(job, "started_at"))
        set_since(job, "run_seconds", since, (int64_t)(parked_s * 1000), now_ms);
    else
        set_since(job, "wait_seconds", "submitted_at", 0, now_ms);
}
