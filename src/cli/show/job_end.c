/* SPDX-License-Identifier: MIT */
#include "cli/show/job_end.h"

#include <errno.h>
#include <poll.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cli/api/stream.h"
#include "cli/show/job_news.h"

static int refuse_late(const char *id, struct error *err)
{
    return error_set(err, -ETIME, "timeout: job %s has not ended", id);
}

static int sooner(int a, int b)
{
    return a < 0 ? b : b < 0 || a < b ? a : b;
}

/* Waits until the answer arrives or the time is up. */
static int wait_for_answer(struct stream *stream, struct job_news *news, struct call *call, const char *id,
    int64_t deadline_ms, struct error *err)
{
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%s", id);
    bool has_news = false;
    int r = stream_advance(stream, false, err);
    while (r == 0) {
        int wait_ms = sooner(stream_wait_ms(stream), job_news_turn(news, call, path, has_news));
        struct pollfd fds[] = {
            { .fd = stream_fd(stream), .events = POLLIN },
            { .fd = job_news_fd(news), .events = POLLIN },
        };
        int64_t left = deadline_ms == JOB_END_FOR_EVER ? JOB_END_FOR_EVER : deadline_ms - clock_boot_ms();
        if (deadline_ms != JOB_END_FOR_EVER && left <= 0)
            return refuse_late(id, err);
        if (left != JOB_END_FOR_EVER && (wait_ms < 0 || left < wait_ms))
            wait_ms = left > INT32_MAX ? INT32_MAX : (int)left;
        if (poll(fds, 2, wait_ms) < 0 && errno != EINTR)
            return error_set_errno(err, -errno, "cannot wait");
        has_news = fds[1].revents != 0;
        r = stream_advance(stream, fds[0].revents != 0, err);
    }
    return r < 0 ? r : 0;
}

int job_end_await_printing(struct call *call, const char *id, const char *states, int64_t deadline_ms,
    const struct job_end_news *wanted, json_t **ret, struct error *err)
{
    _cleanup_(job_news_clear) struct job_news news = { .wanted = wanted };
    _cleanup_(stream_clear) struct stream stream = { 0 };
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%s/wait?states=%s", id, states);
    for (;;) {
        stream_start(&stream, &call->client, path);
        int r = wait_for_answer(&stream, &news, call, id, deadline_ms, err);
        if (r < 0)
            return r;
        const struct http_answer *answer = stream_answer(&stream);
        /* The server's own timeout is shorter than ours may be. */
        if (answer->status == 408)
            continue;
        if (answer->status != 200)
            return client_problem(answer, err);
        *ret = json_loadb((const char *)answer->body.bytes, answer->body.length, 0, NULL);
        return *ret == NULL ? error_set(err, -EBADMSG, "the answer of mgpud is not JSON") : 0;
    }
}

int job_end_await(struct call *call, const char *id, int64_t deadline_ms, json_t **ret, struct error *err)
{
    return job_end_await_printing(call, id, "done", deadline_ms, NULL, ret, err);
}

int job_end_await_attempt(struct call *call, const char *id, json_t **ret, struct error *err)
{
    return job_end_await_printing(call, id, "queued,done", JOB_END_FOR_EVER, NULL, ret, err);
}
