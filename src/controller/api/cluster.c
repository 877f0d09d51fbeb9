/* SPDX-License-Identifier: MIT */
/* Actions of administrators on GPUs and nodes: pause, drain, resume, tests of parking. 200 when durable. */
#include "base/clock.h"
#include "controller/api/routes.h"
#include "controller/core/park_proof.h"
#include "controller/http/request.h"
#include "wire/requests.h"

static void on_done(struct request *request, const struct core_answer *answer)
{
    if (answer->code < 0)
        request_reply_problem(request, &answer->err);
    else
        request_reply_json(request, 200, json_object());
}

/* False if it has sent a response. */
static bool read_mark(struct request *request, struct mark_request *ret)
{
    struct error err = { 0 };
    *ret = (struct mark_request){ 0 };
    int r = request_read_body(request, &mark_request_record, ret, &err);
    if (r == 0)
        return true;
    record_clear(&mark_request_record, ret);
    request_reply_problem(request, &err);
    return false;
}

static void pause_gpus(struct request *request, enum gpu_action action)
{
    struct mark_request mark;
    if (!read_mark(request, &mark))
        return;
    request->on_answer = on_done;
    core_pause(request->serve->controller->core, clock_boot_ms(), clock_wall_ms(), &request->who, &mark.gpus,
        mark.reason, action == GPU_ACTION_RESUME ? 0 : mark.until, action, request);
    record_clear(&mark_request_record, &mark);
}

void handle_pause(struct request *request)
{
    pause_gpus(request, GPU_ACTION_PAUSE);
}

void handle_release_gpus(struct request *request)
{
    pause_gpus(request, GPU_ACTION_RELEASE);
}

void handle_resume(struct request *request)
{
    pause_gpus(request, GPU_ACTION_RESUME);
}

void handle_policy(struct request *request)
{
    struct error err = { 0 };
    struct policy_request policy = { 0 };
    int r = request_read_body(request, &policy_request_record, &policy, &err);
    request->on_answer = on_done;
    if (r == 0)
        core_set_policy(request->serve->controller->core, clock_boot_ms(), clock_wall_ms(), &request->who,
            &policy.gpus, policy.policy, request);
    else
        request_reply_problem(request, &err);
    record_clear(&policy_request_record, &policy);
}

static void drain(struct request *request, bool is_resume)
{
    struct mark_request mark;
    if (!read_mark(request, &mark))
        return;
    request->on_answer = on_done;
    core_drain(request->serve->controller->core, clock_boot_ms(), clock_wall_ms(), &request->who,
        request->name, mark.reason, is_resume ? 0 : mark.until, is_resume, request);
    record_clear(&mark_request_record, &mark);
}

void handle_drain(struct request *request)
{
    drain(request, false);
}

void handle_node_resume(struct request *request)
{
    drain(request, true);
}

void handle_node_parking(struct request *request)
{
    struct error err = { 0 };
    struct park_proof proof = { 0 };
    int r = request_read_body(request, &park_proof_request_record, &proof, &err);
    request->on_answer = on_done;
    if (r == 0)
        core_set_park_proof(request->serve->controller->core, clock_boot_ms(), clock_wall_ms(), &request->who,
            request->name, &proof, request);
    else
        request_reply_problem(request, &err);
    record_clear(&park_proof_record, &proof);
}

void handle_fence(struct request *request)
{
    struct mark_request mark;
    if (!read_mark(request, &mark))
        return;
    request->on_answer = on_done;
    core_fence(request->serve->controller->core, clock_boot_ms(), clock_wall_ms(), &request->who,
        request->name, mark.reason, request);
    record_clear(&mark_request_record, &mark);
}
