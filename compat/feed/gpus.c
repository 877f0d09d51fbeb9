/* SPDX-License-Identifier: MIT */
/*
 * Pauses are mgpud's, which keeps them across restarts; paused_gpus of the state file shows them. Differences
 * between the file and what was written there are edits by the user and are sent to mgpud.
 */
#include <string.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "base/strings.h"
#include "compat/feed/feed.h"

#define PAUSE       API_PATH "/gpus/pause"
#define RESUME      API_PATH "/gpus/resume"
#define SHARE_WHOLE 1000.0

static bool is_at(const json_t *grant, const json_t *job, const json_t *gpu)
{
    const char *node = field_text(grant, "node");
    return field_integer(grant, "index", -1) == field_integer(gpu, "index", -2) &&
           text_equal(node != NULL ? node : field_text(job, "node"), field_text(gpu, "node"));
}

/* A whole GPU, a share of it, or a part of its memory. */
static double part_of(const json_t *grant, const json_t *gpu)
{
    double share = field_number(grant, "share", 0), memory = field_number(grant, "memory", 0);
    double all = field_number(gpu, "memory_bytes", 0);
    if (share > 0)
        return share / SHARE_WHOLE;
    return memory > 0 && all > 0 ? memory / all : 1;
}

double feed_gpus_allocation(const json_t *jobs, const json_t *gpu)
{
    double sum = 0;
    size_t i = 0, k = 0;
    json_t *job = NULL, *grant = NULL;
    json_array_foreach(jobs, i, job) json_array_foreach(json_object_get(job, "granted"), k, grant) sum +=
        is_at(grant, job, gpu) ? part_of(grant, gpu) : 0;
    return sum < 1 ? sum : 1;
}

static bool has(const json_t *list, const json_t *gpu)
{
    size_t index = 0;
    json_t *one = NULL;
    json_array_foreach(list, index, one) if (json_equal(one, gpu)) return true;
    return false;
}

/* As in paused_gpus: its number; with several nodes "node:number". */
static json_t *name_of(const json_t *gpu, bool is_only_node)
{
    int index = (int)field_integer(gpu, "index", 0);
    if (is_only_node)
        return json_integer(index);
    return json_sprintf("%s:%d", field_text(gpu, "node"), index);
}

static int set_pause(struct feed *feed, const char *path, const json_t *gpu, struct error *err)
{
    _cleanup_free_ char *name = json_is_string(gpu) ? xstrdup(json_string_value(gpu))
                                                    : xasprintf("%lld", (long long)json_integer_value(gpu));
    bool is_pause = strcmp(path, PAUSE) == 0;
    _cleanup_json_ json_t *body = is_pause ? json_pack("{s:[s], s:s}", "gpus", name, "reason", FEED_REASON)
                                           : json_pack("{s:[s]}", "gpus", name);
    int r = client_call(&feed->call->client, "POST", path, body, NULL, err);
    if (client_is_loss(r))
        return r;
    if (r < 0) {
        (void)error_wrap(err, "%.200s", feed->settings->state_path);
        feed_log_problem(&feed->log, err);
    }
    return 0;
}

/* For each GPU that one list contains and the other does not. */
static int set_missing(
    struct feed *feed, const char *path, const json_t *list, const json_t *other, struct error *err)
{
    size_t index = 0;
    json_t *gpu = NULL;
    json_array_foreach(list, index, gpu)
    {
        int r = has(other, gpu) ? 0 : set_pause(feed, path, gpu, err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* The paused GPUs; with `is_ours` only those paused by this program. */
static json_t *list_paused(const json_t *gpus, bool is_ours)
{
    json_t *list = json_array(), *gpu = NULL;
    const char *first = field_text(json_array_get(gpus, 0), "node");
    bool is_only_node = true;
    size_t index = 0;
    json_array_foreach(gpus, index, gpu) is_only_node = is_only_node && field_is(gpu, "node", first);
    json_array_foreach(
        gpus, index, gpu) if ((field_is(gpu, "state", "paused") || field_is(gpu, "state", "released")) &&
                              (!is_ours || field_is(gpu, "reason", FEED_REASON)))(void)
        json_array_append_new(list, name_of(gpu, is_only_node));
    return list;
}

static json_t *list_allocations(const json_t *gpus, const json_t *jobs)
{
    json_t *list = json_array(), *gpu = NULL;
    size_t index = 0;
    json_array_foreach(gpus, index, gpu)(void)
        json_array_append_new(list, json_real(feed_gpus_allocation(jobs, gpu)));
    return list;
}

static void log_pauses(const struct feed *feed, const json_t *list, const json_t *other, const char *what)
{
    size_t index = 0;
    json_t *gpu = NULL;
    json_array_foreach(list, index, gpu)
    {
        _cleanup_free_ char *name = json_dumps(gpu, JSON_ENCODE_ANY);
        if (!has(other, gpu))
            feed_log_say(&feed->log, "GPU %s is %s", name, what);
    }
}

static void set_member(struct feed *feed, const char *name, json_t *value)
{
    if (json_equal(json_object_get(feed->state.root, name), value))
        return;
    (void)json_object_set(feed->state.root, name, value);
    feed->state.is_dirty = true;
}

static int take_up(struct feed *feed, const json_t *gpus, struct error *err)
{
    _cleanup_json_ json_t *jobs = NULL;
    int r = client_get(&feed->call->client, API_PATH "/jobs?state=starting,running,stopping", &jobs, err);
    if (r < 0)
        return r;
    _cleanup_json_ json_t *paused = list_paused(gpus, false);
    _cleanup_json_ json_t *status = list_allocations(gpus, json_object_get(jobs, "jobs"));
    _cleanup_json_ json_t *known = json_incref(json_object_get(feed->state.root, "known_paused_gpus"));
    log_pauses(feed, paused, known, "paused");
    log_pauses(feed, known, paused, "in use again");
    set_member(feed, "gpu_status", status);
    set_member(feed, "paused_gpus", paused);
    _cleanup_json_ json_t *copy = json_copy(paused);
    set_member(feed, "known_paused_gpus", copy);
    return 0;
}

int feed_gpus_sync(struct feed *feed, bool is_reset, struct error *err)
{
    _cleanup_json_ json_t *answer = NULL, *after = NULL, *ours = NULL, *none = json_array();
    const json_t *asked = json_object_get(feed->state.root, "paused_gpus");
    const json_t *known = json_object_get(feed->state.root, "known_paused_gpus");
    int r = client_get(&feed->call->client, API_PATH "/gpus", &answer, err);
    if (r < 0)
        return r;
    ours = is_reset ? list_paused(json_object_get(answer, "gpus"), true) : json_array();
    r = set_missing(feed, RESUME, ours, none, err);
    if (r == 0)
        r = feed_nodes_query(feed, err);
    if (r == 0)
        r = set_missing(feed, PAUSE, asked, known, err);
    if (r == 0)
        r = set_missing(feed, RESUME, known, asked, err);
    if (r == 0)
        r = client_get(&feed->call->client, API_PATH "/gpus", &after, err);
    return r < 0 ? r : take_up(feed, json_object_get(after, "gpus"), err);
}
