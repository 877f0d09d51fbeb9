/* SPDX-License-Identifier: MIT */
/*
 * Tracks the jobs of the lines. An event only indicates that a job has changed; the recorded state is the one
 * mgpud then returns, so events missed while mgpud was unreachable do no harm.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/parse.h"
#include "compat/feed/feed.h"

static bool is_over(const char *status)
{
    static const char *const words[] = { "done", "failed", "cancelled", "back", "gone", "removed" };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (text_equal(status, words[i]))
            return true;
    return false;
}

/* Changes before the job was recorded count as news too. */
void feed_jobs_note_new(struct feed *feed, int64_t id, const char *hash)
{
    char text[24];
    (void)snprintf(text, sizeof(text), "%lld", (long long)id);
    (void)json_object_set_new(feed->hashes, text, json_string(hash));
    (void)json_object_set_new(feed->news, text, json_true());
}

void feed_jobs_index(struct feed *feed)
{
    const char *hash = NULL;
    json_t *entry = NULL;
    json_decref(feed->hashes);
    feed->hashes = json_object();
    json_object_foreach(json_object_get(feed->state.root, "jobs"), hash, entry)
    {
        if (!is_over(field_text(entry, "status")))
            feed_jobs_note_new(feed, field_integer(entry, "id", 0), hash);
    }
}

void feed_jobs_note_event(void *arg, const json_t *event)
{
    struct feed *feed = arg;
    char id[24];
    static const char *const about_gpus[] = { "cluster", "allocated", "ended", "requeued", "returned" };
    (void)snprintf(id, sizeof(id), "%lld", (long long)field_integer(event, "job", 0));
    if (json_object_get(feed->hashes, id) != NULL)
        (void)json_object_set_new(feed->news, id, json_true());
    for (size_t i = 0; i < sizeof(about_gpus) / sizeof(about_gpus[0]); i++)
        feed->is_gpu_news = feed->is_gpu_news || field_is(event, "type", about_gpus[i]);
}

void feed_jobs_note_all(struct feed *feed)
{
    const char *id = NULL;
    json_t *hash = NULL;
    json_object_foreach(feed->hashes, id, hash)(void) json_object_set_new(feed->news, id, json_true());
}

static json_t *list_gpus(const json_t *job)
{
    json_t *gpus = json_array(), *grant = NULL;
    size_t index = 0;
    json_array_foreach(json_object_get(job, "granted"), index, grant)(void)
        json_array_append(gpus, json_object_get(grant, "index"));
    return gpus;
}

static char *gpus_text(const json_t *gpus)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    size_t index = 0;
    json_t *gpu = NULL;
    json_array_foreach(gpus, index, gpu)
        buffer_printf(&text, "%s%lld", index > 0 ? "," : "", (long long)json_integer_value(gpu));
    return text.length > 0 ? buffer_take(&text) : xstrdup("none");
}

static void log_start(const struct feed *feed, const char *id, const json_t *entry, const json_t *job)
{
    const char *conda = field_text(entry, "conda_env"), *path = field_text(job, "log");
    _cleanup_free_ char *gpus = gpus_text(json_object_get(entry, "gpus"));
    feed_log_say(&feed->log, "job %s started on GPU %s: %s%s%s%s%s", id, gpus, field_text(entry, "script"),
        conda != NULL ? ", conda " : "", conda != NULL ? conda : "", path != NULL ? ", log " : "",
        path != NULL ? path : "");
}

/* Not for a job in its own screen session, which has a terminal. */
static void show_output(struct feed *feed, const json_t *job)
{
    int64_t id = field_integer(job, "id", 0);
    if (feed->settings->is_screen || feed->call->is_quiet)
        return;
    if (!feed_outputs_add(&feed->outputs, &feed->call->client, id, field_integer(job, "attempt", 0)))
        feed_log_say(&feed->log, "job %lld: output not shown, %u others are already: mgpu logs -f %lld",
            (long long)id, FEED_OUTPUTS_MAX, (long long)id);
}

static void log_end(const struct feed *feed, const char *id, const json_t *entry, const json_t *job)
{
    const char *message = field_text(job, "message");
    char took[32] = "no time";
    double seconds = field_number(job, "run_seconds", -1);
    if (seconds >= 0)
        format_duration((int64_t)(seconds * 1000), took, sizeof(took));
    feed_log_say(&feed->log, "job %s %s after %s: %s, %s, exit code %lld%s%s", id, field_text(job, "state"),
        took, field_text(entry, "script"),
        field_text(job, "ended_by") != NULL ? field_text(job, "ended_by") : "?",
        (long long)field_integer(job, "exit_code", -1), message != NULL ? ": " : "",
        message != NULL ? message : "");
}

static void take_up(struct feed *feed, const char *id, json_t *entry, const json_t *job)
{
    const char *state = field_text(job, "state");
    bool was_running = field_is(entry, "status", "running");
    bool is_running = text_equal(state, "running") || (is_over(state) && field_is_known(job, "started_at"));
    if (state == NULL || (field_is(entry, "status", state) && !is_over(state)))
        return;
    (void)json_object_set_new(entry, "gpus", list_gpus(job));
    if (is_running && !was_running) {
        log_start(feed, id, entry, job);
        show_output(feed, job);
    }
    if (is_over(state))
        log_end(feed, id, entry, job);
    bool is_back = field_is(job, "ended_by", "start_failed");
    (void)json_object_set_new(entry, "status", json_string(is_back ? "back" : state));
    feed->wants_again = feed->wants_again || is_back;
    feed->state.is_dirty = true;
    if (is_over(state))
        (void)json_object_del(feed->hashes, id);
}

/* mgpud does not have the job (any more): its result is unknown. */
static void note_gone(struct feed *feed, const char *id, json_t *entry)
{
    feed_log_say(&feed->log, "job %s is no longer known to mgpud: %s", id, field_text(entry, "script"));
    (void)json_object_set_new(entry, "status", json_string("gone"));
    (void)json_object_del(feed->hashes, id);
    feed->state.is_dirty = true;
}

static int refresh_one(struct feed *feed, const char *id, struct error *err)
{
    _cleanup_json_ json_t *job = NULL;
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%s", id);
    json_t *entry = feed_state_job(&feed->state, json_string_value(json_object_get(feed->hashes, id)));
    if (entry == NULL)
        return 0;
    int r = client_get(&feed->call->client, path, &job, err);
    if (r == 0)
        take_up(feed, id, entry, job);
    else if (r == -ENOENT || r == -EINVAL)
        note_gone(feed, id, entry);
    return client_is_loss(r) ? r : 0;
}

int feed_jobs_refresh(struct feed *feed, struct error *err)
{
    while (json_object_size(feed->news) > 0) {
        _cleanup_free_ char *id = xstrdup(json_object_iter_key(json_object_iter(feed->news)));
        int r = refresh_one(feed, id, err);
        if (r < 0)
            return r;
        (void)json_object_del(feed->news, id);
    }
    return 0;
}

void feed_jobs_forget(struct feed *feed)
{
    while (json_object_size(feed->hashes) > 0) {
        void *first = json_object_iter(feed->hashes);
        _cleanup_free_ char *id = xstrdup(json_object_iter_key(first));
        json_t *entry = feed_state_job(&feed->state, json_string_value(json_object_iter_value(first)));
        if (entry != NULL)
            note_gone(feed, id, entry);
        (void)json_object_del(feed->hashes, id);
    }
    (void)json_object_clear(feed->news);
}
