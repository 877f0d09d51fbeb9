/* SPDX-License-Identifier: MIT */
#include "cli/options/job_name.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "cli/options/selector.h"
#include "cli/options/talk.h"

#define RECENT_JOBS 500U
#define SHOWN_JOBS  8U // in a message
#define LIVE_STATES "queued,starting,running,stopping"

/* Glob characters in a name that a person typed in full mean themselves. */
static void append_literal_glob(struct buffer *path, const char *name)
{
    _cleanup_buffer_ struct buffer glob = { 0 };
    for (const char *p = name; *p != '\0'; p++) {
        if (strchr("*?[]\\", *p) != NULL)
            buffer_append_text(&glob, "\\");
        buffer_append(&glob, p, 1);
    }
    http_append_encoded(path, buffer_text(&glob));
}

/* The caller's jobs of that name, of any name if it is NULL, that match the rest of the query. */
static int ask_jobs(
    struct client *client, const char *name, const char *query, json_t **ret_answer, struct error *err)
{
    _cleanup_buffer_ struct buffer path = { 0 };
    _cleanup_free_ char *user = selector_own_user();
    buffer_printf(&path, API_PATH "/jobs?%s&user=", query);
    http_append_encoded(&path, user);
    if (name != NULL) {
        buffer_append_text(&path, "&name=");
        append_literal_glob(&path, name);
    }
    return client_get(client, buffer_text(&path), ret_answer, err);
}

/* The elements of an array bear its name; the array is what was submitted. */
static int64_t submitted_id(const json_t *job)
{
    int64_t array = field_integer(job, "array_job", 0);
    return array > 0 ? array : field_integer(job, "id", 0);
}

/* --- the newest --- */

/* Among the newest `limit` jobs (0: among all); *ret_id is 0 if there is none. */
static int ask_newest(
    struct client *client, const char *name, unsigned limit, int64_t *ret_id, struct error *err)
{
    _cleanup_json_ json_t *answer = NULL;
    _cleanup_free_ char *query = limit > 0 ? xasprintf("all=1&limit=%u", limit) : xstrdup("all=1");
    int r = ask_jobs(client, name, query, &answer, err);
    if (r < 0)
        return r;
    size_t index = 0;
    json_t *job = NULL;
    *ret_id = 0;
    json_array_foreach(json_object_get(answer, "jobs"), index, job)
    {
        int64_t id = submitted_id(job);
        if (id > *ret_id && (name == NULL || field_is(job, "name", name)))
            *ret_id = id;
    }
    return 0;
}

/* Examines the newest jobs first, so that the usual case is cheap however long the history is. */
static int find_newest(struct client *client, const char *name, int64_t *ret_id, struct error *err)
{
    int64_t id = 0;
    int r = ask_newest(client, name, RECENT_JOBS, &id, err);
    if (r == 0 && id == 0)
        r = ask_newest(client, name, 0, &id, err);
    if (r < 0)
        return r;
    if (id == 0)
        return -ENOENT;
    *ret_id = id;
    return 0;
}

int job_name_find_newest(struct client *client, int64_t *ret_id, struct error *err)
{
    return find_newest(client, NULL, ret_id, err);
}

/* --- those that have not ended --- */

struct named {
    int64_t id;
    const char *state; // of the answer, or "ended"
};

struct candidates {
    json_t *answer;
    struct named *jobs; // each once, in the order of their ids
    size_t count;
};

static void candidates_clear(struct candidates *candidates)
{
    json_decref(candidates->answer);
    free(candidates->jobs);
}

static bool has_job(const struct candidates *candidates, int64_t id)
{
    for (size_t i = 0; i < candidates->count; i++)
        if (candidates->jobs[i].id == id)
            return true;
    return false;
}

static void add_job(struct candidates *candidates, int64_t id, const char *state)
{
    if (has_job(candidates, id))
        return;
    candidates->jobs = xreallocarray(candidates->jobs, candidates->count + 1, sizeof(struct named));
    candidates->jobs[candidates->count++] = (struct named){ .id = id, .state = state };
}

static int find_live(struct client *client, const char *name, struct candidates *live, struct error *err)
{
    int r = ask_jobs(client, name, "state=" LIVE_STATES "&quick=1&sparse=1", &live->answer, err);
    size_t index = 0;
    json_t *job = NULL;
    if (r < 0)
        return r;
    json_array_foreach(json_object_get(live->answer, "jobs"), index, job)
    {
        const char *state = field_text(job, "state");
        if (field_is(job, "name", name))
            add_job(live, submitted_id(job), state != NULL ? state : "-");
    }
    return 0;
}

/* "15 (queued), 24 (running)", the newest ones; `except` is omitted. */
static char *list_jobs(const struct candidates *candidates, int64_t except)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    size_t first = candidates->count > SHOWN_JOBS ? candidates->count - SHOWN_JOBS : 0;
    if (first > 0)
        buffer_printf(&text, "%zu more", first);
    for (size_t i = first; i < candidates->count; i++)
        if (candidates->jobs[i].id != except)
            buffer_printf(&text, "%s%" PRId64 " (%s)", text.length > 0 ? ", " : "", candidates->jobs[i].id,
                candidates->jobs[i].state);
    return xstrdup(buffer_text(&text));
}

static int refuse(const char *name, const struct candidates *candidates, struct error *err)
{
    _cleanup_free_ char *jobs = list_jobs(candidates, 0);
    (void)error_set(err, -ENOTUNIQ, "%zu of your jobs are named '%.60s': %s", candidates->count, name, jobs);
    return error_hint(err, "give the number of the one that you mean, or the numbers of several");
}

static void tell_others(const char *name, const struct candidates *live, int64_t shown)
{
    if (live->count == 0 || (live->count == 1 && live->jobs[0].id == shown))
        return;
    _cleanup_free_ char *jobs = list_jobs(live, shown);
    talk_line("job %" PRId64 " is your newest named %.60s; others of that name have not ended: %s", shown,
        name, jobs);
}

int job_name_find(struct client *client, const char *name, enum job_name_use use, bool must_tell,
    int64_t *ret_id, struct error *err)
{
    _cleanup_(candidates_clear) struct candidates live = { 0 };
    int64_t id = 0;
    int r = find_live(client, name, &live, err);
    if (r == 0 && use == JOB_NAME_LIVE && live.count == 1)
        id = live.jobs[0].id;
    else if (r == 0)
        r = find_newest(client, name, &id, err);
    if (r < 0)
        return r;
    if (use == JOB_NAME_WAIT && live.count > 0)
        add_job(&live, id, "ended");
    if (use != JOB_NAME_NEWEST && live.count > 1)
        return refuse(name, &live, err);
    if (use == JOB_NAME_NEWEST && must_tell)
        tell_others(name, &live, id);
    *ret_id = id;
    return 0;
}
