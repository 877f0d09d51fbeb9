/* SPDX-License-Identifier: MIT */
/*
 * Only the end is shown, so the log is read from shortly before its end. The output of a job that prints
 * faster than can be shown is not read completely: after a burst the connection is closed, and the end is
 * read again a moment later.
 */
#include "cli/top/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cli/term/field.h"
#include "cli/show/job_columns.h"
#include "cli/top/top.h"

#define START_BYTES  16384        // read before the end
#define BURST_BYTES  (256U << 10) // in a second; more is passed over
#define AGAIN_MS     2000
#define HTTP_REFUSED 403
#define HTTP_AT_END  416 // a range that begins where the output ends

static int take_bytes(void *target, const void *bytes, size_t length)
{
    struct top *top = target;
    struct top_log *log = &top->log;
    const char *text = bytes, *end = text + length;
    bool is_cut = log->status == 0 && log->stream.offset > 0;
    const char *newline = is_cut ? memchr(text, '\n', length) : NULL;
    text = newline != NULL ? newline + 1 : text; // the first line was begun before what is read
    log->status = 200;
    log->second_bytes += length;
    tail_add(&log->tail, text, (size_t)(end - text));
    top->is_changed = true;
    return 0;
}

static void ask(struct top *top)
{
    struct top_log *log = &top->log;
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%" PRId64 "/log?follow=1", log->job);
    stream_start(&log->stream, &top->call->client, path);
    log->stream.sink = take_bytes;
    log->stream.sink_target = top;
    log->again_ms = 0;
}

/* Discards the position and starts again near the end. */
static void ask_for_end(struct top *top)
{
    top->log.status = 0;
    top->log.stream.offset = 0;
    top->log.stream.tail = START_BYTES;
    ask(top);
}

static json_t *job_of(const struct top *top, int64_t id)
{
    const struct top_job *job = top_jobs_find(&top->model.jobs, id);
    return job == NULL ? NULL : job->job;
}

/* The attempt whose output is in the job's log. A starting one has not opened it yet: the log is then still
 * that of the previous one, which must not be followed permanently. */
static int64_t attempt_in_log(const struct top *top, int64_t id)
{
    const json_t *job = job_of(top, id);
    if (field_is(job, "state", "queued") || field_is(job, "state", "held") ||
        field_is(job, "state", "starting"))
        return 0;
    return field_integer(job, "attempt", 0);
}

void top_log_follow(struct top *top, int64_t job)
{
    struct top_log *log = &top->log;
    int64_t attempt = attempt_in_log(top, job);
    if (log->job == job && (attempt == 0 || log->attempt == attempt))
        return;
    top_log_clear(log);
    log->job = job;
    log->attempt = attempt;
    if (top->view.page != PAGE_JOB)
        top->view.scroll = 0;
    if (job != 0)
        ask_for_end(top);
}

static void end(struct top *top)
{
    struct top_log *log = &top->log;
    const struct http_answer *answer = stream_answer(&log->stream);
    struct error err = { 0 };
    log->status = (int)answer->status;
    log->problem[0] = '\0';
    if (answer->status >= 300 && answer->status != HTTP_AT_END) {
        (void)client_problem(answer, &err);
        (void)snprintf(log->problem, sizeof(log->problem), "%.255s", err.message);
    }
    const json_t *job = job_of(top, log->job);
    bool is_over = job != NULL && job_is_done(job);
    if (!is_over && answer->status != HTTP_REFUSED)
        log->again_ms = clock_boot_ms() + AGAIN_MS;
    top->is_changed = true;
}

/* The rest of a burst is passed over. */
static void give_up_burst(struct top *top)
{
    struct top_log *log = &top->log;
    static const char note[] = "\n... more than can be shown ...\n";
    tail_add(&log->tail, note, strlen(note));
    stream_clear(&log->stream);
    ask_for_end(top);
    log->stream.retry_ms = (log->second + 1) * 1000;
}

void top_log_advance(struct top *top, bool is_readable)
{
    struct error err = { 0 };
    struct top_log *log = &top->log;
    int64_t now = clock_boot_ms();
    if (log->again_ms > 0 && now >= log->again_ms && log->stream.path != NULL)
        ask(top);
    else if (log->again_ms > 0 && now >= log->again_ms)
        ask_for_end(top);
    if (now / 1000 != log->second) {
        log->second = now / 1000;
        log->second_bytes = 0;
    }
    if (log->stream.state != STREAM_AWAY && log->stream.state != STREAM_OPEN)
        return;
    int r = stream_advance(&log->stream, is_readable, &err);
    if (r > 0)
        end(top);
    else if (r < 0) {
        stream_clear(&log->stream);
        log->again_ms = now + AGAIN_MS;
    } else if (log->second_bytes > BURST_BYTES)
        give_up_burst(top);
}

void top_log_clear(struct top_log *log)
{
    stream_clear(&log->stream);
    tail_clear(&log->tail);
    *log = (struct top_log){ 0 };
}
