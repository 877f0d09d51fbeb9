/* SPDX-License-Identifier: MIT */
/* POST /jobs/ID/retry: a new job with the request of an ended one; 201 when durable. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "controller/api/jobs.h"
#include "controller/api/routes.h"
#include "controller/api/submit.h"
#include "controller/identity/rights.h"
#include "job/behind.h"
#include "wire/requests.h"

struct retry {
    struct retry_request asked;
    struct job_ask ask; // of the old job, with its edits
    char *name;
};

static void release_retry(struct request *request)
{
    struct retry *retry = request->work;
    free(retry->asked.submit_key);
    job_ask_clear(&retry->ask);
    free(retry->name);
    free(retry);
}

static void reply_created(struct request *request, const struct job *job)
{
    jobs_reply(request, 201, job);
}

static void on_submitted(struct request *request, const struct core_answer *answer)
{
    if (answer->code < 0)
        request_reply_problem(request, &answer->err);
    else
        jobs_find(request, answer->job, reply_created);
}

/* The start times and dependencies of the old job no longer apply. */
static void renew(struct job_spec *spec, const struct retry *retry)
{
    job_ask_clear(&spec->ask);
    job_ask_copy(&spec->ask, &retry->ask);
    free(take_ptr(spec->ask.after));
    spec->ask.begin_ms = 0;
    spec->ask.deadline_ms = 0;
    free(spec->name);
    spec->name = xstrdup(retry->name);
    free(spec->submit_key);
    spec->submit_key = xstrdup(retry->asked.submit_key);
    spec->hold = false;
}

static void on_spec(void *arg, uint64_t job, struct spec_bytes *bytes)
{
    struct request *request = arg;
    struct error err = { 0 };
    struct job_spec *spec = spec_bytes_decode(bytes);
    spec_bytes_drop(bytes);
    if (request_is_over(request)) {
        job_spec_free(spec);
    } else if (spec == NULL) {
        (void)error_set(&err, -ENOENT, "the request of job %" PRIu64 " is no longer known", request->job);
        request_reply_problem(request, &err);
    } else if (renew(spec, request->work), rights_check_partition(request, &spec->ask, &err) < 0) {
        job_spec_free(spec);
        request_reply_problem(request, &err);
    } else {
        if (spec->ask.priority > 0)
            request->who.may_raise = rights_may_raise(request);
        request->on_answer = on_submitted;
        core_submit(request->serve->controller->core, clock_boot_ms(), clock_wall_ms(), &request->who, spec,
            NULL, request);
    }
    request_unref(request);
}

static int check(const struct request *request, const struct job *job, struct error *err)
{
    if (!core_owns(&request->who, job)) {
        (void)error_set(
            err, -EPERM, "job %" PRIu64 " belongs to user %s", job->id, jobs_owner(request->serve, job));
        return error_hint(err, "a copy would be yours: only its owner may submit one");
    }
    if (job->state != JOB_DONE) {
        (void)error_set(err, -EALREADY, "job %" PRIu64 " has not ended: it is %s", job->id,
            job_state_name(job_shown_state(job)));
        enum job_state shown = job_shown_state(job);
        bool has_begun = shown == JOB_STARTING || shown == JOB_RUNNING;
        return has_begun ? error_hint(err, "mgpu requeue %" PRIu64 " ends and requeues it", job->id)
                         : -EALREADY;
    }
    if (job->ask->adopted_pid != 0)
        return error_set(
            err, -EINVAL, "job %" PRIu64 " was an adopted process: it has no command to run again", job->id);
    return submit_check_store(request->serve->controller, err);
}

static void begin_retry(struct request *request, const struct job *job)
{
    struct error err = { 0 };
    struct retry *retry = request->work;
    int r = request_read_body(request, &retry_request_record, &retry->asked, &err);
    if (r == 0)
        r = check(request, job, &err);
    if (r < 0) {
        request_reply_problem(request, &err);
        return;
    }
    job_ask_copy(&retry->ask, job->ask);
    retry->name = xstrdup(job->name);
    request_ref(request);
    /* An element runs the command of its array. */
    store_fetch_spec(
        request->serve->controller->store, job->array_job != 0 ? job->array_job : job->id, on_spec, request);
}

void handle_retry(struct request *request)
{
    request->work = xcalloc(1, sizeof(struct retry));
    request->release = release_retry;
    jobs_find(request, request->job, begin_retry);
}
