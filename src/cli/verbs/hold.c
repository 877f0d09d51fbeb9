/* SPDX-License-Identifier: MIT */
/* mgpu hold, mgpu release: prevent waiting jobs from starting, and allow it again. */
#include "base/json/field.h"
#include "cli/show/jobs_each.h"
#include "cli/verbs/verbs.h"

static int run_hold(struct call *call, int argc, char **argv, struct error *err)
{
    _cleanup_json_ json_t *body = json_object();
    return jobs_post_each(call, argc, argv, "hold", body, NULL, err);
}

static int run_release(struct call *call, int argc, char **argv, struct error *err)
{
    _cleanup_json_ json_t *body = json_object();
    return jobs_post_each(call, argc, argv, "release", body, NULL, err);
}

const struct command command_hold = {
    .name = "hold",
    .usage = "JOB...",
    .help = "Prevent waiting jobs from starting until they are released",
    .detail = "Jobs held by an operator can only be released by an operator.",
    .takes_jobs = true,
    .job_states = "queued",
    .run = run_hold,
};

const struct command command_release = {
    .name = "release",
    .usage = "JOB...",
    .help = "Release held jobs",
    .takes_jobs = true,
    .job_states = "held",
    .run = run_release,
};
