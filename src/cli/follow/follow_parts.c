/* SPDX-License-Identifier: MIT */
#include "cli/follow/follow_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"

#define REASK_MS 250

static int take(void *target, const void *bytes, size_t length)
{
    return labelled_take(&((struct part_log *)target)->lines, bytes, length);
}

static void ask(struct follow_parts *parts, struct part_log *part, int delay_ms)
{
    _cleanup_free_ char *path =
        xasprintf(API_PATH "/jobs/%" PRIu64 "/log?follow=1&wait=1&task=%" PRIu32 "&attempt=%" PRId64,
            parts->job, part->rank, parts->attempt);
    stream_start(&part->stream, &parts->call->client, path);
    part->stream.sink = take;
    part->stream.sink_target = part;
    part->stream.retry_ms = delay_ms > 0 ? clock_boot_ms() + delay_ms : 0;
}

void follow_parts_open(struct follow_parts *parts, size_t count,
    int (*put)(void *arg, const void *bytes, size_t length), void *arg)
{
    if (parts->count > 0 || count < 2)
        return;
    parts->count = (count < FOLLOW_PARTS_MAX ? count : FOLLOW_PARTS_MAX) - 1;
    parts->items = xcalloc(parts->count, sizeof(*parts->items));
    for (size_t i = 0; i < parts->count; i++) {
        struct part_log *part = &parts->items[i];
        part->rank = (uint32_t)i + 1;
        part->lines = (struct labelled){ .put = put, .arg = arg };
        (void)snprintf(part->lines.label, sizeof(part->lines.label), "%" PRIu32, part->rank);
        ask(parts, part, 0);
    }
}

int follow_parts_poll(const struct follow_parts *parts, bool is_held, struct pollfd *fds)
{
    int wait_ms = -1;
    for (size_t i = 0; i < parts->count; i++) {
        const struct part_log *part = &parts->items[i];
        bool is_closed = is_held || part->is_over;
        fds[i] = (struct pollfd){ .fd = is_closed ? -1 : stream_fd(&part->stream), .events = POLLIN };
        int here = part->is_over ? -1 : stream_wait_ms(&part->stream);
        wait_ms = here >= 0 && (wait_ms < 0 || here < wait_ms) ? here : wait_ms;
    }
    return wait_ms;
}

/* Of a part that has not begun, or that never did, there is no log; of one that goes on the end of the log is
 * not its end. "None" may have been the answer just before the part was heard of. */
static int on_complete(struct follow_parts *parts, struct part_log *part, bool is_job_over, struct error *err)
{
    unsigned status = stream_answer(&part->stream)->status;
    bool is_absent = status == 404 || status == 416;
    if (status != 200 && status != 206 && status != 429 && !is_absent)
        return client_problem(stream_answer(&part->stream), err);
    bool is_too_early = is_absent && !part->is_last;
    if (!is_job_over || is_too_early || status == 429) {
        ask(parts, part, REASK_MS);
        part->is_last = is_job_over;
        return 0;
    }
    part->is_over = true;
    return labelled_flush(&part->lines);
}

int follow_parts_advance(
    struct follow_parts *parts, const struct pollfd *fds, bool is_job_over, struct error *err)
{
    for (size_t i = 0; i < parts->count; i++) {
        struct part_log *part = &parts->items[i];
        int r = part->is_over ? 0 : stream_advance(&part->stream, fds[i].revents != 0, err);
        if (r > 0)
            r = on_complete(parts, part, is_job_over, err);
        if (r < 0)
            return r;
    }
    return 0;
}

bool follow_parts_are_over(const struct follow_parts *parts)
{
    for (size_t i = 0; i < parts->count; i++)
        if (!parts->items[i].is_over)
            return false;
    return true;
}

bool follow_parts_are_read(const struct follow_parts *parts)
{
    for (size_t i = 0; i < parts->count; i++)
        if (!parts->items[i].is_over && parts->items[i].stream.state == STREAM_OPEN)
            return false;
    return true;
}

void follow_parts_clear(struct follow_parts *parts)
{
    for (size_t i = 0; i < parts->count; i++) {
        stream_clear(&parts->items[i].stream);
        labelled_clear(&parts->items[i].lines);
    }
    free(parts->items);
    *parts = (struct follow_parts){ 0 };
}
