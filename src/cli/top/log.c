/* SPDX-License-Identifier: MIT */
/*
 * Only the end is shown, so the log is read from shortly before its end. If a job prints faster than can be
 * displayed, its output is not read completely: after a burst the connection is closed, and the end is read
 * again a moment later.
 */
#include "cli/top/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "cli/show/job_columns.h"
#include "cli/top/top.h"

#define START_BYTES  16384        // bytes read before the end
#define BURST_BYTES  (256U << 10) // per second; more is skipped
#define AGAIN_MS     2000
#define HTTP_OK      200
#define HTTP_REFUSED 403
#define HTTP_AT_END  416 // status for a range that begins where the output ends

static int take_bytes(void *target, const void *bytes, size_t length)
{
    struct top_log_part *part = target;
    struct top_log *log = &part->top->log;
    const char *text = bytes, *end = text + length;
    bool is_cut = part->status == 0 && part->stream.offset > 0;
    const char *newline = is_cut ? memchr(text, '\n', length) : NULL;
    text = newline != NULL ? newline + 1 : text; // the first line began before the part that was read
    part->status = HTTP_OK;
    part->second_bytes += length;
    if (log->last != NULL && log->last != part)
        tail_end_line(&log->tail);
    log->last = part;
    tail_add(&log->tail, text, (size_t)(end - text));
    part->top->is_changed = true;
    return 0;
}

static void ask(struct top_log_part *part)
{
    struct top *top = part->top;
    bool is_error = part > top->log.parts;
    _cleanup_free_ char *path = xasprintf(
        API_PATH "/jobs/%" PRId64 "/log?follow=1%s", top->log.job, is_error ? "&stream=stderr" : "");
    stream_start(&part->stream, &top->call->client, path);
    part->stream.sink = take_bytes;
    part->stream.sink_target = part;
    part->again_ms = 0;
}

/* Discards the position and starts again near the end. */
static void ask_for_end(struct top_log_part *part)
{
    part->status = 0;
    part->stream.offset = 0;
    part->stream.tail = START_BYTES;
    ask(part);
}

static json_t *job_of(const struct top *top, int64_t id)
{
    const struct top_job *job = top_jobs_find(&top->model.jobs, id);
    return job == NULL ? NULL : job->job;
}

/* The attempt whose output is in the job's log. A starting attempt has not opened it yet: the log is then
 * still that of the previous attempt, which must not be followed permanently. */
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
    if (job == 0)
        return;
    log->count = json_is_true(json_object_get(job_of(top, job), "split_log")) ? TOP_LOG_PARTS : 1;
    for (size_t i = 0; i < log->count; i++) {
        log->parts[i].top = top;
        ask_for_end(&log->parts[i]);
    }
}

static void end(struct top_log_part *part)
{
    struct top *top = part->top;
    struct top_log *log = &top->log;
    const struct http_answer *answer = stream_answer(&part->stream);
    struct error err = { 0 };
    part->status = (int)answer->status;
    log->problem[0] = '\0';
    if (answer->status >= 300 && answer->status != HTTP_AT_END) {
        (void)client_problem(answer, &err);
        (void)snprintf(log->problem, sizeof(log->problem), "%.255s", err.message);
    }
    const json_t *job = job_of(top, log->job);
    bool is_over = job != NULL && job_is_done(job);
    if (!is_over && answer->status != HTTP_REFUSED)
        part->again_ms = clock_boot_ms() + AGAIN_MS;
    top->is_changed = true;
}

/* The rest of a burst is skipped. */
static void give_up_burst(struct top_log_part *part)
{
    static const char note[] = "\n... more than can be shown ...\n";
    tail_add(&part->top->log.tail, note, strlen(note));
    stream_clear(&part->stream);
    ask_for_end(part);
    part->stream.retry_ms = (part->second + 1) * 1000;
}

static void advance(struct top_log_part *part, bool is_readable)
{
    struct error err = { 0 };
    int64_t now = clock_boot_ms();
    if (part->again_ms > 0 && now >= part->again_ms && part->stream.path != NULL)
        ask(part);
    else if (part->again_ms > 0 && now >= part->again_ms)
        ask_for_end(part);
    if (now / 1000 != part->second) {
        part->second = now / 1000;
        part->second_bytes = 0;
    }
    if (part->stream.state != STREAM_AWAY && part->stream.state != STREAM_OPEN)
        return;
    int r = stream_advance(&part->stream, is_readable, &err);
    if (r > 0)
        end(part);
    else if (r < 0) {
        stream_clear(&part->stream);
        part->again_ms = now + AGAIN_MS;
    } else if (part->second_bytes > BURST_BYTES)
        give_up_burst(part);
}

void top_log_advance(struct top *top, const bool is_readable[TOP_LOG_PARTS])
{
    for (size_t i = 0; i < top->log.count; i++)
        advance(&top->log.parts[i], is_readable[i]);
}

int64_t top_log_due_ms(const struct top_log *log)
{
    int64_t due_ms = INT64_MAX;
    for (size_t i = 0; i < log->count; i++) {
        const struct top_log_part *part = &log->parts[i];
        if (part->stream.state == STREAM_AWAY && part->stream.retry_ms < due_ms)
            due_ms = part->stream.retry_ms;
        if (part->again_ms > 0 && part->again_ms < due_ms)
            due_ms = part->again_ms;
    }
    return due_ms;
}

bool top_log_is_settled(const struct top_log *log)
{
    bool is_settled = true;
    for (size_t i = 0; i < log->count; i++)
        is_settled &= log->parts[i].status != 0;
    return is_settled;
}

void top_log_clear(struct top_log *log)
{
    for (size_t i = 0; i < TOP_LOG_PARTS; i++)
        stream_clear(&log->parts[i].stream);
    tail_clear(&log->tail);
    *log = (struct top_log){ 0 };
}
