/* SPDX-License-Identifier: MIT */
#include "cli/show/job_end.h"

#include <errno.h>
#include <poll.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cli/api/stream.h"

static int refuse_late(const char *id, struct error *err)
{
    return error_set(err, -ETIME, "timeout: job %s has not ended", id);
}

/* Until the answer arrives or the time is up. */
static int wait_for_answer(struct stream *stream, const char *id, int64_t deadline_ms, struct error *err)
{
    int r = stream_advance(stream, false, err);
    while (r == 0) {
        struct pollfd fd = { .fd = stream_fd(stream), .events = POLLIN };
        int64_t left = deadline_ms == JOB_END_FOR_EVER ? JOB_END_FOR_EVER : deadline_ms - clock_boot_ms();
        if (deadline_ms != JOB_END_FOR_EVER && left <= 0)
            return refuse_late(id, err);
        int wait_ms = stream_wait_ms(stream);
        if (left != JOB_END_FOR_EVER && (wait_ms < 0 || left < wait_ms))
            wait_ms = left > INT32_MAX ? INT32_MAX : (int)left;
        if (poll(&fd, 1, wait_ms) < 0 && errno != EINTR)
            return error_set_errno(err, -errno, "cannot wait");
        r = stream_advance(stream, fd.revents != 0, err);
    }
    return r < 0 ? r : 0;
}

static int await(struct call *call, const char *id, const char *states, int64_t deadline_ms, json_t **ret,
    struct error *err)
{
    _cleanup_(stream_clear) struct stream stream = { 0 };
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%s/wait?states=%s", id, states);
    for (;;) {
        stream_start(&stream, &call->client, path);
        int r = wait_for_answer(&stream, id, deadline_ms, err);
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
    return await(call, id, "done", deadline_ms, ret, err);
}

int job_end_await_attempt(struct call *call, const char *id, json_t **ret, struct error *err)
{
    return await(call, id, "queued,done", JOB_END_FOR_EVER, ret, err);
}
