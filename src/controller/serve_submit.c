/* SPDX-License-Identifier: MIT */
/* POST /jobs: the body becomes a spec, the spec a job; 201 when that is durable. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "controller/serve_jobs.h"
#include "controller/serve_routes.h"
#include "wire/json_spec.h"
#include "wire/json_text.h"

/* Whose jobs this mgpud can start. */
static int check_owner(const struct request *request, struct error *err)
{
    const struct controller *controller = request->serve->controller;
    uint32_t uid = request->who.uid;
    if (!controller->is_root && uid != controller->admin_uid) {
        (void)error_set(err, -EPERM, "this mgpud runs as %s and starts only that user's jobs",
            usernames_name(request->serve->names, controller->admin_uid));
        return error_hint(err, "start your own with `mgpud --detach`, or ask for one that root starts");
    }
    if (controller->is_root && uid == 0 && !controller->options.allow_root_jobs) {
        (void)error_set(err, -EPERM, "jobs of root are refused here");
        return error_hint(err, "submit as an ordinary user, or start mgpud with --allow-root-jobs");
    }
    return 0;
}

static int read_spec(struct request *request, struct job_spec *spec, struct error *err)
{
    _cleanup_json_ json_t *body = NULL;
    job_spec_init(spec);
    int r = request_parse_body(request, &body, err);
    if (r == 0)
        r = json_spec_read(body, spec, err);
    if (r == 0 && spec->cwd == NULL && usernames_account(request->who.uid, NULL, &spec->cwd) < 0)
        r = error_set(err, -EINVAL, "cwd is missing, and user %" PRIu32 " has no home", request->who.uid);
    return r == 0 ? job_spec_validate(spec, err) : r;
}

/*
 * The job as it was accepted. Since then it may have been started, and that may not be durable yet; waiting
 * for it would make every submit wait for a second commit.
 */
static void reply_created(struct request *request, const struct job *job)
{
    struct job accepted = {
        .id = job->id,
        .uid = job->uid,
        .gid = job->gid,
        .state = JOB_QUEUED,
        .priority = job->priority,
        .gpus = job->gpus,
        .gpu_mem = job->gpu_mem,
        .gpu_ids = job->gpu_ids,
        .name = job->name,
        .summary = job->summary,
        .submitted_ms = job->submitted_ms,
    };
    request_reply_json(request, 201, jobs_write(request->serve, &accepted, false));
}

static void reply_repeated(struct request *request, const struct job *job)
{
    jobs_reply(request, 200, job);
}

static void on_submitted(struct request *request, const struct core_answer *answer)
{
    if (answer->code < 0)
        request_reply_problem(request, &answer->err);
    else
        jobs_find(request, answer->job, answer->is_repeated ? reply_repeated : reply_created);
}

void handle_submit(struct request *request)
{
    struct controller *controller = request->serve->controller;
    struct error err = { 0 };
    struct job_spec *spec = xcalloc(1, sizeof(*spec));
    int r = check_owner(request, &err);
    if (r == 0)
        r = read_spec(request, spec, &err);
    if (r == 0 && store_is_full(controller->store)) {
        r = error_set(&err, -ENOSPC, "there is no space left to store new jobs in %s",
            controller->options.state_dir != NULL ? controller->options.state_dir : "the state directory");
        (void)error_hint(&err, "running jobs go on; submit again when there is space");
    }
    if (r < 0) {
        job_spec_free(spec);
        request_reply_problem(request, &err);
        return;
    }
    request->on_answer = on_submitted;
    core_submit(controller->core, clock_boot_ms(), clock_wall_ms(), &request->who, spec, request);
}
