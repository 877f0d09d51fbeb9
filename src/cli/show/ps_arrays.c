/* SPDX-License-Identifier: MIT */
#include "cli/show/ps_arrays.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "cli/term/field.h"
#include "cli/show/job_columns.h"

static const char *const ends[] = { "done", "failed", "cancelled" };

#define ENDS    (sizeof(ends) / sizeof(ends[0]))
#define KEY_MAX 24

static void key_of(int64_t array, char *key)
{
    (void)snprintf(key, KEY_MAX, "%" PRId64, array);
}

/* "12 elements ended: 10 done, 2 failed". */
static json_t *count_text(const json_t *counts)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    int64_t all = 0;
    for (size_t i = 0; i < ENDS; i++)
        all += field_integer(counts, ends[i], 0);
    buffer_printf(&text, "%" PRId64 " element%s ended:", all, all == 1 ? "" : "s");
    const char *comma = " ";
    for (size_t i = 0; i < ENDS; i++) {
        int64_t count = field_integer(counts, ends[i], 0);
        if (count == 0)
            continue;
        buffer_printf(&text, "%s%" PRId64 " %s", comma, count, ends[i]);
        comma = ", ";
    }
    return json_string(buffer_text(&text));
}

/* The line for an array that is not in the list itself: what its elements have in common. */
static json_t *line_for(int64_t array, const json_t *element)
{
    static const char *const kept[] = { "user", "uid", "name", "gpus", "gpu_share", "command", "state" };
    json_t *line = json_object();
    (void)json_object_set_new(line, "id", json_integer(array));
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
        (void)json_object_set(line, kept[i], json_object_get(element, kept[i]));
    return line;
}

static bool is_ended_element(const json_t *job)
{
    return field_integer(job, "array_job", 0) > 0 && job_is_done(job);
}

static void count_element(json_t *counts, const json_t *job)
{
    char key[KEY_MAX];
    key_of(field_integer(job, "array_job", 0), key);
    json_t *of_array = json_object_get(counts, key);
    if (of_array == NULL) {
        of_array = json_object();
        (void)json_object_set_new(counts, key, of_array);
    }
    const char *state = field_text(job, "state");
    if (state != NULL)
        (void)json_object_set_new(of_array, state, json_integer(field_integer(of_array, state, 0) + 1));
}

/* One that failed makes the line a failed one. */
static const char *worst_of(const json_t *counts)
{
    if (field_integer(counts, "failed", 0) > 0)
        return "failed";
    return field_integer(counts, "done", 0) > 0 ? "done" : "cancelled";
}

void ps_fold_elements(json_t *jobs)
{
    json_t *counts = json_object(), *arrays = json_object();
    char key[KEY_MAX];
    size_t index = 0;
    json_t *job = NULL;
    json_array_foreach(jobs, index, job)
    {
        if (is_ended_element(job))
            count_element(counts, job);
        if (job_is_split_up(job))
            continue;
        key_of(field_integer(job, "id", 0), key);
        if (field_is_known(job, "array"))
            (void)json_object_set(arrays, key, job);
    }
    json_t *folded = json_array();
    json_array_foreach(jobs, index, job)
    {
        int64_t array = field_integer(job, "array_job", 0);
        key_of(array, key);
        if (job_is_split_up(job))
            continue;
        if (!is_ended_element(job)) {
            (void)json_array_append(folded, job);
            continue;
        }
        if (json_object_get(arrays, key) != NULL)
            continue;
        json_t *line = line_for(array, job);
        (void)json_object_set_new(line, "state", json_string(worst_of(json_object_get(counts, key))));
        (void)json_object_set(arrays, key, line);
        (void)json_array_append_new(folded, line);
    }
    const char *array = NULL;
    json_t *of_array = NULL;
    json_object_foreach(counts, array, of_array)(void)
        json_object_set_new(json_object_get(arrays, array), PS_FOLDED, count_text(of_array));
    (void)json_array_clear(jobs);
    (void)json_array_extend(jobs, folded);
    json_decref(folded);
    json_decref(arrays);
    json_decref(counts);
}
