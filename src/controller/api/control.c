/* SPDX-License-Identifier: MIT */
/* POST /jobs/ID/signal, suspend, continue, park, unpark and requeue: actions on a running job. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/signals.h"
#include "controller/api/jobs.h"
#include "controller/api/routes.h"
#include "job/launch.h"
#include "wire/json_record.h"
#include "wire/json_text.h"
#include "wire/limits.h"
#include "wire/requests.h"

/* Ended jobs are refused here, because the core may have dropped them. */
static int check_live(const struct job *job, struct error *err)
{
    if (job->state != JOB_DONE)
        return 0;
    (void)error_set(err, -EALREADY, "job %" PRIu64 " has already ended", job->id);
    return error_hint(err, "mgpu retry %" PRIu64 " submits a copy of it", job->id);
}

/* `r`: the result of reading the request. False if that failed, or the job has ended; a problem was then
 * sent. */
static bool begin(struct request *request, const struct job *job, int r, struct error *err)
{
    if (r == 0)
        r = check_live(job, err);
    if (r < 0)
        request_reply_problem(request, err);
    else
        request->on_answer = jobs_on_changed;
    return r >= 0;
}

static int read_signal(struct request *request, int *ret, uint32_t *ret_scope, struct error *err)
{
    struct signal_request asked = { 0 };
    int r = request_read_body(request, &signal_request_record, &asked, err);
    if (r < 0)
        return r;
    _cleanup_free_ char *name = asked.signal, *to = asked.to;
    if (to != NULL && !signal_scope_find(to, ret_scope)) {
        (void)error_set(err, -EINVAL, "to: unknown recipient %.60s", to);
        return error_hint(err, "handlers, steps, script or all");
    }
    *ret = name != NULL ? signal_find(name) : 0;
    if (*ret != 0)
        return 0;
    (void)error_set(err, -EINVAL, "signal: %s%.60s", name != NULL ? "unknown signal " : "it is missing",
        name != NULL ? name : "");
    return error_hint(err, "a name such as USR1, or a number");
}

void handle_signal(struct request *request, const struct job *job)
{
    struct error err = { 0 };
    int signal = 0;
    uint32_t scope = SIGNAL_HANDLERS;
    if (!jobs_check(request, ACTION_CONTROL, job, "signal it"))
        return;
    int r = read_signal(request, &signal, &scope, &err);
    if (!begin(request, job, r, &err))
        return;
    core_signal(request->serve->controller->core, clock_boot_ms(), clock_wall_ms(), &request->who, job->id,
        signal, scope, request);
}

static void set_suspended(struct request *request, const struct job *job, bool is_continue)
{
    struct error err = { 0 };
    struct empty_request nothing = { 0 };
    if (!jobs_check(request, ACTION_CONTROL, job, is_continue ? "continue it" : "suspend it"))
        return;
    int r = request_read_body(request, &empty_request_record, &nothing, &err);
    if (!begin(request, job, r, &err))
        return;
    core_suspend(request->serve->controller->core, clock_boot_ms(), clock_wall_ms(), &request->who, job->id,
        is_continue, request);
}

void handle_suspend(struct request *request, const struct job *job)
{
    set_suspended(request, job, false);
}

void handle_continue(struct request *request, const struct job *job)
{
    set_suspended(request, job, true);
}

/* The duration in the form that core_park() takes. */
static int read_duration(struct request *request, int64_t *ret_ms, struct error *err)
{
    struct park_request asked = { 0 };
    int r = request_read_body(request, &park_request_record, &asked, err);
    if (r < 0)
        return r;
    if (asked.for_s < 0 || asked.for_s > LIMIT_PARK_S)
        return error_set(err, -ERANGE, "for_s: %" PRId64 " is outside 0 to %d", asked.for_s, LIMIT_PARK_S);
    *ret_ms = asked.for_s * 1000;
    return 0;
}

void handle_park(struct request *request, const struct job *job)
{
    struct error err = { 0 };
    int64_t for_ms = 0;
    if (!jobs_check(request, ACTION_CONTROL, job, "park it"))
        return;
    int r = read_duration(request, &for_ms, &err);
    if (!begin(request, job, r, &err))
        return;
    core_park(request->serve->controller->core, clock_boot_ms(), clock_wall_ms(), &request->who, job->id,
        for_ms, request);
}

void handle_unpark(struct request *request, const struct job *job)
{
    struct error err = { 0 };
    struct empty_request nothing = { 0 };
    if (!jobs_check(request, ACTION_CONTROL, job, "return it"))
        return;
    int r = request_read_body(request, &empty_request_record, &nothing, &err);
    if (!begin(request, job, r, &err))
        return;
    core_unpark(
        request->serve->controller->core, clock_boot_ms(), clock_wall_ms(), &request->who, job->id, request);
}

static int read_requeue(struct request *request, int64_t *ret_ms, bool *ret_hold, struct error *err)
{
    _cleanup_json_ json_t *body = NULL;
    struct requeue_request asked = { .grace_s = -1 };
    int r = request_parse_body(request, &body, err);
    if (r == 0)
        r = json_record_read(&requeue_request_record, body, &asked, err);
    if (r < 0)
        return r;
    bool is_given = json_is_integer(json_object_get(body, "grace_s"));
    if (is_given && (asked.grace_s < 0 || asked.grace_s > LIMIT_GRACE_S))
        return error_set(
            err, -ERANGE, "grace_s: %" PRId64 " is outside 0 to %d", asked.grace_s, LIMIT_GRACE_S);
    *ret_ms = is_given ? asked.grace_s * 1000 : -1;
    *ret_hold = asked.hold;
    return 0;
}

void handle_requeue(struct request *request, const struct job *job)
{
    struct error err = { 0 };
    int64_t grace_ms = -1;
    bool is_held = false;
    if (!jobs_check(request, ACTION_CONTROL, job, "requeue it"))
        return;
    int r = read_requeue(request, &grace_ms, &is_held, &err);
    if (!begin(request, job, r, &err))
        return;
    core_requeue(request->serve->controller->core, clock_boot_ms(), clock_wall_ms(), &request->who, job->id,
        grace_ms, is_held, request);
}
