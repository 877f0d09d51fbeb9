/* SPDX-License-Identifier: MIT */
/* POST /jobs/ID/cancel: 202 when the request is durable; the end itself is visible in the job. */
#include <errno.h>
#include <inttypes.h>

#include "base/clock.h"
#include "controller/api/jobs.h"
#include "controller/api/routes.h"
#include "wire/json_record.h"
#include "wire/json_text.h"
#include "wire/limits.h"
#include "wire/requests.h"

/* `grace_s` of the result is negative unless it was given. */
static int read_cancel(const struct request *request, struct cancel_request *ret, struct error *err)
{
    _cleanup_json_ json_t *body = NULL;
    struct cancel_request cancel = { .grace_s = -1 };
    int r = request_parse_body(request, &body, err);
    if (r == 0)
        r = json_record_read(&cancel_request_record, body, &cancel, err);
    if (r < 0)
        return r;
    bool is_given = json_is_integer(json_object_get(body, "grace_s"));
    if (is_given && (cancel.grace_s < 0 || cancel.grace_s > LIMIT_GRACE_S))
        return error_set(
            err, -ERANGE, "grace_s: %" PRId64 " is outside 0 to %d", cancel.grace_s, LIMIT_GRACE_S);
    *ret = cancel;
    ret->grace_s = is_given ? cancel.grace_s : -1;
    return 0;
}

static void reply_job(struct request *request, const struct job *job)
{
    jobs_reply(request, 202, job);
}

static void on_cancelled(struct request *request, const struct core_answer *answer)
{
    if (answer->code < 0)
        request_reply_problem(request, &answer->err);
    else
        jobs_find(request, request->job, reply_job);
}

void handle_cancel(struct request *request, const struct job *job)
{
    struct error err = { 0 };
    struct cancel_request cancel = { 0 };
    if (!jobs_check(request, ACTION_CONTROL, job, "cancel it"))
        return;
    int r = read_cancel(request, &cancel, &err);
    if (r == 0 && job->state == JOB_DONE && job->array_job != 0)
        r = error_set(&err, -EALREADY, "job %" PRIu64 ".%" PRIu32 " has already ended", job->array_job,
            job->array_index);
    else if (r == 0 && job->state == JOB_DONE)
        r = error_set(&err, -EALREADY, "job %" PRIu64 " has already ended", job->id);
    if (r < 0) {
        request_reply_problem(request, &err);
        return;
    }
    if (cancel.kill && job->ask->adopted_pid != 0 &&
        !jobs_check(request, ACTION_KILL, job, "end its process, only release it"))
        return;
    request->on_answer = on_cancelled;
    struct core *core = request->serve->controller->core;
    int64_t boot_ms = clock_boot_ms(), wall_ms = clock_wall_ms();
    int64_t grace_ms = cancel.grace_s >= 0 ? cancel.grace_s * 1000 : -1;
    if (cancel.waiting)
        core_cancel_waiting(core, boot_ms, wall_ms, &request->who, job->id, request);
    else
        (cancel.kill ? core_cancel_process : core_cancel)(
            core, boot_ms, wall_ms, &request->who, job->id, grace_ms, request);
}
