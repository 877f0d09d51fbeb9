/* SPDX-License-Identifier: MIT */
/* The events of a job have what is not in its record any more: when earlier attempts ran, what they used, and
 * for how long they were suspended. */
#include "cli/slurm/attempts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cli/slurm/fields.h"
#include "cli/term/field.h"
#include "cli/term/time_text.h"

#define MILLI 1000

/* Of the attempt whose events are being read. */
struct pauses {
    int64_t passed_ms;
    int64_t since_ms; // it is suspended since then; 0: it is not
};

static void note_pause(struct pauses *pauses, const json_t *event)
{
    const char *at = field_text(event, "at");
    int64_t at_ms = at != NULL ? time_parse(at) : 0;
    if (field_is(event, "type", "allocated"))
        *pauses = (struct pauses){ 0 };
    if (field_is(event, "type", "suspended") && pauses->since_ms == 0)
        pauses->since_ms = at_ms;
    if (field_is(event, "type", "continued") && pauses->since_ms != 0) {
        pauses->passed_ms += at_ms - pauses->since_ms;
        pauses->since_ms = 0;
    }
}

/* A suspension that lasts to the end of the attempt, or still lasts, counts up to `until_ms`. */
static void set_pause(json_t *attempt, const struct pauses *pauses, int64_t until_ms)
{
    int64_t last_ms = pauses->since_ms != 0 && until_ms > pauses->since_ms ? until_ms - pauses->since_ms : 0;
    (void)json_object_set_new(attempt, SLURM_SUSPENDED, json_integer((pauses->passed_ms + last_ms) / MILLI));
}

static void pass(json_t *attempt, const char *name, const json_t *event, const char *member)
{
    json_t *value = json_object_get(event, member);
    (void)json_object_set(attempt, name, value != NULL ? value : json_null());
}

/* As which state it is shown: slurm/state.c. */
static const char *ended_by(const json_t *event)
{
    if (field_is(event, "cause", "node_lost") || field_is(event, "cause", "preempted"))
        return field_text(event, "cause");
    return "requeued";
}

static void end(json_t *attempt, const json_t *event)
{
    (void)json_object_set_new(attempt, "state", json_string("failed"));
    (void)json_object_set_new(attempt, "ended_by", json_string(ended_by(event)));
    (void)json_object_set_new(attempt, "suspended_at", json_null());
    pass(attempt, "ended_at", event, "at");
    pass(attempt, "exit_code", event, "exit_code");
    pass(attempt, "signal", event, "signal");
    pass(attempt, "run_seconds", event, "run_seconds");
    pass(attempt, "cpu_seconds", event, "cpu_seconds");
    pass(attempt, "max_rss_bytes", event, "max_rss_bytes");
    pass(attempt, "message", event, "message");
    (void)json_object_set_new(attempt, "usage", json_null());
}

int slurm_attempts_get(struct client *client, const json_t *job, json_t **ret, struct error *err)
{
    _cleanup_json_ json_t *whole = NULL, *attempts = json_array(), *attempt = NULL;
    size_t index = 0;
    const json_t *event = NULL;
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%" PRId64, field_integer(job, "id", 0));
    bool is_first = field_integer(job, "attempt", 0) < (field_is(job, "state", "queued") ? 1 : 2);
    int r = is_first ? 0 : client_get(client, path, &whole, err);
    if (r < 0)
        return r;
    struct pauses pauses = { 0 };
    json_array_foreach(json_object_get(whole, "events"), index, event)
    {
        note_pause(&pauses, event);
        if (field_is(event, "type", "allocated")) {
            json_decref(attempt);
            attempt = json_copy((json_t *)(uintptr_t)job);
            (void)json_object_set_new(attempt, "started_at", json_null());
            pass(attempt, "node", event, "node");
            pass(attempt, "granted", event, "granted");
        } else if (attempt != NULL && field_is(event, "type", "started")) {
            pass(attempt, "started_at", event, "at");
        } else if (attempt != NULL && field_is(event, "type", "requeued")) {
            end(attempt, event);
            set_pause(attempt, &pauses, time_parse(field_text(event, "at")));
            (void)json_array_append(attempts, attempt);
        }
    }
    *ret = take_ptr(attempts);
    return 0;
}

static void take_details(json_t *job, const json_t *whole)
{
    struct pauses pauses = { 0 };
    size_t index = 0;
    const json_t *event = NULL;
    const char *ended = field_text(job, "ended_at");
    json_array_foreach(json_object_get(whole, "events"), index, event) note_pause(&pauses, event);
    set_pause(job, &pauses, ended != NULL ? time_parse(ended) : clock_wall_ms());
    if (field_is_known(whole, "cwd"))
        (void)json_object_set(job, "cwd", json_object_get(whole, "cwd"));
}

int slurm_details_add(struct client *client, json_t *jobs, struct error *err)
{
    size_t index = 0;
    json_t *job = NULL;
    int r = 0;
    json_array_foreach(jobs, index, job)
    {
        _cleanup_json_ json_t *whole = NULL;
        _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%" PRId64, field_integer(job, "id", 0));
        r = client_get(client, path, &whole, err);
        if (r == -ENOENT) // it has been removed since it was listed
            continue;
        if (r < 0)
            return r;
        take_details(job, whole);
    }
    return 0;
}
