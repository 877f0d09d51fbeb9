/* SPDX-License-Identifier: MIT */
/* A wait for the end of the job that is also answered when its idle level differs from the given one: no
 * change is missed between two requests, and none is reported twice. */
#include "cli/follow/idle_news.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/parse.h"
#include "cli/options/talk.h"
#include "cli/show/job_columns.h"

/* The level of a job as the API names it, "none" while it uses its GPUs. */
static const char *level_of(const json_t *job)
{
    const char *level = field_text(job, "idle");
    return level == NULL ? "none" : level;
}

/* "job 42 has not used its GPUs for 30m00s; it will be ended at 14:05 if it stays idle", or "job 42 uses its
 * GPUs again". The caller frees it. */
static char *sentence_of(const json_t *job, enum time_style times)
{
    char idle[32], at[64];
    int64_t id = field_integer(job, "id", 0), now_ms = clock_wall_ms();
    double idle_s = 0, end_s = field_number(job, "idle_end_s", 0);
    if (!field_is_known(job, "idle") || !field_measured(job, "idle_s", &idle_s))
        return xasprintf("job %" PRId64 " uses its GPUs again", id);
    format_duration((int64_t)(idle_s * 1000), idle, sizeof(idle));
    time_format_short(now_ms + (int64_t)((end_s - idle_s) * 1000), now_ms, times, at, sizeof(at));
    return xasprintf("job %" PRId64 " has left its GPUs unused for %s%s%s%s%s", id, idle,
        field_is(job, "idle", "yields") ? "; other jobs can preempt it" : "",
        end_s > 0 ? "; it will be ended at " : "", end_s > 0 ? at : "", end_s > 0 ? " if it stays idle" : "");
}

void idle_news_print(const struct call *call, const json_t *job, char last[IDLE_LEVEL_SIZE])
{
    const char *level = level_of(job);
    if (strcmp(level, last) == 0)
        return;
    (void)snprintf(last, IDLE_LEVEL_SIZE, "%s", level);
    _cleanup_free_ char *sentence = sentence_of(job, call->times);
    if (!call->is_quiet)
        talk_line("%s", sentence);
}

static void ask(struct idle_news *news)
{
    _cleanup_free_ char *request = xasprintf("%s/wait?states=done&idle=%s", news->path, news->level);
    stream_start(&news->stream, news->stream.client, request);
}

void idle_news_start(struct idle_news *news, struct client *client, const char *path, enum time_style times)
{
    *news = (struct idle_news){ .times = times, .path = xasprintf(API_PATH "/jobs/%s", path) };
    news->stream.client = client;
    (void)snprintf(news->level, sizeof(news->level), "none");
    ask(news);
}

/* The job at its new level; NULL for an ended job. */
static char *take_answer(struct idle_news *news)
{
    const struct http_answer *answer = stream_answer(&news->stream);
    if (answer->status != 200)
        return NULL;
    _cleanup_json_ json_t *job = json_loadb((const char *)answer->body.bytes, answer->body.length, 0, NULL);
    if (job == NULL || job_is_done(job))
        return NULL;
    (void)snprintf(news->level, sizeof(news->level), "%s", level_of(job));
    return sentence_of(job, news->times);
}

char *idle_news_advance(struct idle_news *news, bool is_readable)
{
    struct error ignored = { 0 };
    if (news->stream.state == STREAM_IDLE || news->stream.state == STREAM_COMPLETE)
        return NULL;
    int r = stream_advance(&news->stream, is_readable, &ignored);
    char *sentence = r > 0 ? take_answer(news) : NULL;
    if (sentence != NULL)
        ask(news);
    else if (r < 0)
        news->stream.state = STREAM_IDLE;
    return sentence;
}

void idle_news_clear(struct idle_news *news)
{
    stream_clear(&news->stream);
    free(news->path);
}
