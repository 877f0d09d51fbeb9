/* SPDX-License-Identifier: MIT */
#include "cli/follow/follow_ranks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/strings.h"
#include "cli/api/timeouts.h"
#include "job/slurm.h"

#define REASK_MS 250

static int take(void *target, const void *bytes, size_t length)
{
    struct rank_log *log = target;
    return log->is_labelled ? labelled_take(&log->lines, bytes, length)
                            : log->lines.put(log->lines.arg, bytes, length);
}

static void ask(struct follow_ranks *ranks, struct rank_log *log, int delay_ms)
{
    bool is_error = ranks->stream != NULL;
    _cleanup_free_ char *path =
        xasprintf(API_PATH "/jobs/%" PRIu64 "/log?follow=1&wait=1&rank=%" PRIu32 "&attempt=%" PRId64 "%s%s",
            ranks->job, log->rank, ranks->attempt, is_error ? "&stream=" : "", is_error ? ranks->stream : "");
    stream_start(&log->stream, &ranks->call->client, path);
    log->stream.sink = take;
    log->stream.sink_target = log;
    log->stream.retry_ms = delay_ms > 0 ? clock_boot_ms() + delay_ms : 0;
}

size_t follow_ranks_count(const json_t *job, int64_t attempt)
{
    const json_t *earlier = json_object_get(job, "earlier");
    _cleanup_strings_ struct strings notes = { 0 };
    size_t index = 0, count = json_array_size(json_object_get(job, "ranks"));
    const json_t *note = NULL;
    json_array_foreach(json_object_get(job, "slurm"), index, note)
        strings_add(&notes, json_string_value(note));
    if (slurm_is_on_first(&notes))
        return 1;
    if (earlier != NULL && field_integer(earlier, "attempt", 0) == attempt)
        return (size_t)field_integer(earlier, "ranks", 1);
    return count > 0 ? count : (size_t)field_integer(job, "nodes", 1);
}

void follow_ranks_open(struct follow_ranks *ranks, size_t count,
    int (*put)(void *arg, const void *bytes, size_t length), void *arg)
{
    size_t end = count < FOLLOW_RANKS_MAX ? count : FOLLOW_RANKS_MAX;
    if (end <= ranks->first + ranks->count)
        return;
    if (ranks->items == NULL)
        ranks->items = xcalloc(FOLLOW_RANKS_MAX, sizeof(*ranks->items));
    while (ranks->first + ranks->count < end) {
        struct rank_log *log = &ranks->items[ranks->count];
        log->rank = ranks->first + (uint32_t)ranks->count++;
        log->lines = (struct labelled){ .put = put, .arg = arg };
        (void)snprintf(log->lines.label, sizeof(log->lines.label), "%" PRIu32, log->rank);
        ask(ranks, log, 0);
    }
    for (size_t i = 0; i < ranks->count; i++)
        ranks->items[i].is_labelled = count > 1;
}

int follow_ranks_poll(const struct follow_ranks *ranks, bool is_held, struct pollfd *fds)
{
    int wait_ms = -1;
    for (size_t i = 0; i < ranks->count; i++) {
        const struct rank_log *log = &ranks->items[i];
        bool is_closed = is_held || log->is_over;
        fds[i] = (struct pollfd){ .fd = is_closed ? -1 : stream_fd(&log->stream), .events = POLLIN };
        int here = log->is_over ? -1 : stream_wait_ms(&log->stream);
        wait_ms = timeouts_earlier(wait_ms, here);
    }
    return wait_ms;
}

/* A log that has not begun, or never will, does not exist; the current end of a growing log is not its end.
 * "None" may have been the answer just before the log was created. */
static int on_complete(struct follow_ranks *ranks, struct rank_log *log, bool is_job_over, struct error *err)
{
    unsigned status = stream_answer(&log->stream)->status;
    bool is_absent = status == 404 || status == 416;
    if (status != 200 && status != 206 && status != 429 && !is_absent)
        return client_problem(stream_answer(&log->stream), err);
    bool is_too_early = is_absent && !log->is_last;
    if (!is_job_over || is_too_early || status == 429) {
        ask(ranks, log, is_job_over && status != 429 ? 0 : REASK_MS);
        log->is_last = is_job_over;
        return 0;
    }
    log->is_over = true;
    return labelled_flush(&log->lines);
}

/* The request waits because the last answer ended before the job was known to have ended: it is due now. */
static void hurry(struct rank_log *log)
{
    if (!log->is_last && !log->is_over)
        log->is_last = stream_hurry(&log->stream);
}

int follow_ranks_advance(
    struct follow_ranks *ranks, const struct pollfd *fds, size_t count, bool is_job_over, struct error *err)
{
    for (size_t i = 0; i < ranks->count; i++) {
        struct rank_log *log = &ranks->items[i];
        if (is_job_over)
            hurry(log);
        int r = log->is_over ? 0 : stream_advance(&log->stream, i < count && fds[i].revents != 0, err);
        if (r > 0)
            r = on_complete(ranks, log, is_job_over, err);
        if (r < 0)
            return r;
    }
    return 0;
}

bool follow_ranks_are_over(const struct follow_ranks *ranks)
{
    for (size_t i = 0; i < ranks->count; i++)
        if (!ranks->items[i].is_over)
            return false;
    return true;
}

bool follow_ranks_are_read(const struct follow_ranks *ranks)
{
    for (size_t i = 0; i < ranks->count; i++)
        if (!ranks->items[i].is_over && stream_is_awaited(&ranks->items[i].stream))
            return false;
    return true;
}

void follow_ranks_clear(struct follow_ranks *ranks)
{
    for (size_t i = 0; i < ranks->count; i++) {
        stream_clear(&ranks->items[i].stream);
        labelled_clear(&ranks->items[i].lines);
    }
    free(ranks->items);
    *ranks = (struct follow_ranks){ 0 };
}

void follow_ranks_reset(struct follow_ranks *ranks, struct call *call, uint64_t job, int64_t attempt)
{
    follow_ranks_clear(ranks);
    *ranks = (struct follow_ranks){ .call = call, .job = job, .attempt = attempt };
}
