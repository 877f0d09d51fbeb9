/* SPDX-License-Identifier: MIT */
/*
 * Each output is a followed log; its lines are prefixed with the job's number. Nothing is read while the
 * terminal or pipe is not writable: the rest stays in the job's log.
 */
#include "compat/feed/output.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/memory.h"
#include "cli/api/stream.h"
#include "cli/options/talk.h"
#include "cli/term/labelled.h"

#define REASK_MS 1000

struct feed_output {
    int64_t job;
    char *path;
    struct stream stream;
    struct labelled lines;
    struct feed_output *next;
};

static int put(void *arg, const void *bytes, size_t length)
{
    (void)write_all(STDOUT_FILENO, bytes, length);
    return 0;
}

static int take(void *target, const void *bytes, size_t length)
{
    return labelled_take(&((struct feed_output *)target)->lines, bytes, length);
}

bool feed_outputs_add(struct feed_outputs *outputs, struct client *client, int64_t job, int64_t attempt)
{
    if (outputs->count >= FEED_OUTPUTS_MAX)
        return false;
    char *path = xasprintf(API_PATH "/jobs/%" PRId64 "/log?follow=1&wait=1&attempt=%" PRId64, job, attempt);
    struct feed_output *output = xcalloc(1, sizeof(*output));
    *output =
        (struct feed_output){ .job = job, .path = path, .lines = { .put = put }, .next = outputs->first };
    (void)snprintf(output->lines.label, sizeof(output->lines.label), "job %" PRId64, job);
    stream_start(&output->stream, client, path);
    output->stream.sink = take;
    output->stream.sink_target = output;
    outputs->first = output;
    outputs->count++;
    return true;
}

static void output_free(struct feed_output *output)
{
    (void)labelled_flush(&output->lines);
    labelled_clear(&output->lines);
    stream_clear(&output->stream);
    free(output->path);
    free(output);
}

int feed_outputs_poll(const struct feed_outputs *outputs, struct pollfd *fds)
{
    struct pollfd terminal = { .fd = STDOUT_FILENO, .events = POLLOUT };
    bool is_held = outputs->count > 0 && poll(&terminal, 1, 0) == 0;
    int wait_ms = -1;
    size_t i = 0;
    for (const struct feed_output *output = outputs->first; output != NULL; output = output->next) {
        int here = is_held ? -1 : stream_wait_ms(&output->stream);
        wait_ms = here >= 0 && (wait_ms < 0 || here < wait_ms) ? here : wait_ms;
        fds[i++] = (struct pollfd){ .fd = is_held ? -1 : stream_fd(&output->stream), .events = POLLIN };
    }
    while (i < FEED_OUTPUTS_MAX)
        fds[i++] = (struct pollfd){ .fd = -1 };
    fds[i] = (struct pollfd){ .fd = is_held ? STDOUT_FILENO : -1, .events = POLLOUT };
    return wait_ms;
}

/* True when nothing more comes. */
static bool advance(struct feed_output *output, bool is_readable)
{
    struct error err = { 0 };
    int r = stream_advance(&output->stream, is_readable, &err);
    if (r == 0)
        return false;
    if (client_is_loss(r)) { // mgpud is away: from where we are when it is back
        stream_start(&output->stream, output->stream.client, output->path);
        output->stream.retry_ms = clock_boot_ms() + REASK_MS;
        return false;
    }
    unsigned status = r > 0 ? stream_answer(&output->stream)->status : 0;
    if (status == 200 || status == 206 || status == 416) // the last: it wrote nothing
        return true;
    if (r > 0)
        (void)client_problem(stream_answer(&output->stream), &err);
    talk_line("the output of job %" PRId64 " is not shown (mgpu logs -f %" PRId64 "): %s", output->job,
        output->job, err.message);
    return true;
}

void feed_outputs_advance(struct feed_outputs *outputs, const struct pollfd *fds)
{
    struct feed_output **at = &outputs->first;
    for (size_t i = 0; *at != NULL; i++) {
        struct feed_output *output = *at;
        if (!advance(output, fds[i].revents != 0)) {
            at = &output->next;
            continue;
        }
        *at = output->next;
        outputs->count--;
        output_free(output);
    }
}

void feed_outputs_clear(struct feed_outputs *outputs)
{
    while (outputs->first != NULL) {
        struct feed_output *output = outputs->first;
        outputs->first = output->next;
        output_free(output);
    }
    outputs->count = 0;
}
