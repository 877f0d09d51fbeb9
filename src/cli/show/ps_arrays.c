/* SPDX-License-Identifier: MIT */
/*
 * mgpud counts the elements of an array by state in the array's own record (`elements` of the API). Sentences
 * about them use these counts, never the elements that a list happens to contain.
 */
#include "cli/show/ps_arrays.h"

#include <inttypes.h>
#include <string.h>

#include "base/buffer.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "cli/show/job_columns.h"

static const char *const ends[] = { "failed", "done", "cancelled" }; // the worst first

#define ENDS (sizeof(ends) / sizeof(ends[0]))

int64_t elements_ended(const json_t *job)
{
    int64_t all = 0;
    for (size_t i = 0; i < ENDS; i++)
        all += field_integer(json_object_get(job, "elements"), ends[i], 0);
    return all;
}

char *elements_counts(const json_t *job)
{
    static const char *const order[ENDS] = { "done", "failed", "cancelled" };
    struct buffer text = { 0 };
    if (elements_ended(job) == 0)
        return NULL;
    for (size_t i = 0; i < ENDS; i++) {
        int64_t count = field_integer(json_object_get(job, "elements"), order[i], 0);
        if (count > 0)
            buffer_printf(&text, "%s%" PRId64 " %s", text.length > 0 ? ", " : "", count, order[i]);
    }
    return buffer_take(&text);
}

char *elements_text(const json_t *job)
{
    _cleanup_free_ char *counts = elements_counts(job);
    int64_t all = elements_ended(job);
    return counts == NULL ? NULL
                          : xasprintf("%" PRId64 " element%s ended: %s", all, all == 1 ? "" : "s", counts);
}

static bool is_requested(const char *states, const char *state)
{
    size_t length = strlen(state);
    for (const char *p = states; p != NULL; p = strchr(p, ',')) {
        p += *p == ',';
        if (strncmp(p, state, length) == 0 && (p[length] == ',' || p[length] == '\0'))
            return true;
    }
    return states == NULL;
}

/* The most severe of the requested ends; NULL: no such element has ended. */
static const char *worst_of(const json_t *job, const char *states)
{
    for (size_t i = 0; i < ENDS; i++)
        if (is_requested(states, ends[i]) && field_integer(json_object_get(job, "elements"), ends[i], 0) > 0)
            return ends[i];
    return NULL;
}

/* An array with waiting elements is shown as waiting only if waiting jobs were requested. */
static bool is_shown_as_waiting(const json_t *job, const char *states)
{
    return field_is(job, "state", "queued") && !job_is_split_up(job) &&
           (is_requested(states, "queued") || is_requested(states, "held"));
}

void ps_describe_arrays(json_t *jobs, const char *states)
{
    for (size_t i = json_array_size(jobs); i-- > 0;) {
        json_t *job = json_array_get(jobs, i);
        if (!field_is_known(job, "elements"))
            continue;
        const char *worst = worst_of(job, states);
        bool is_waiting = is_shown_as_waiting(job, states);
        if (worst == NULL && job_is_split_up(job))
            (void)json_array_remove(jobs, i);
        else if (worst != NULL && !is_waiting && (states != NULL || !job_is_done(job)))
            (void)json_object_set_new(job, "state", json_string(worst));
    }
}
