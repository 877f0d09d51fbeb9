/* SPDX-License-Identifier: MIT */
/* mgpu hold, mgpu release: keep waiting jobs from starting, and let them again. */
#include <stdio.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/field.h"
#include "cli/job_columns.h"
#include "cli/jobs_each.h"

/* `arg` is the action's last component of the path. */
static int post(struct call *call, const char *id, void *arg, struct error *err)
{
    const char *action = arg;
    _cleanup_json_ json_t *body = json_object(), *job = NULL;
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%s/%s", id, action);
    int r = client_call(&call->client, "POST", path, body, &job, err);
    if (r < 0)
        return r;
    if (call->is_json) {
        (void)json_dumpf(job, stdout, JSON_COMPACT | JSON_REAL_PRECISION(15));
        (void)fputc('\n', stdout);
    } else if (!call->is_quiet && isatty(STDERR_FILENO) == 1) {
        (void)fprintf(stderr, "  job %s is %s\n", id, job_state_shown(job));
    }
    return 0;
}

static int run(struct call *call, int argc, char **argv, char *action, struct error *err)
{
    _cleanup_strings_ struct strings jobs = { 0 };
    int r = selector_resolve(&call->client, argc, argv, &jobs, err);
    return r < 0 ? r : jobs_each(call, &jobs, post, action);
}

static int run_hold(struct call *call, int argc, char **argv, struct error *err)
{
    static char action[] = "hold";
    return run(call, argc, argv, action, err);
}

static int run_release(struct call *call, int argc, char **argv, struct error *err)
{
    static char action[] = "release";
    return run(call, argc, argv, action, err);
}

const struct command command_hold = {
    .name = "hold",
    .usage = "JOB...",
    .help = "Keep waiting jobs from starting until they are released",
    .detail = "What an operator holds of somebody else only an operator releases.",
    .takes_jobs = true,
    .job_states = "queued",
    .run = run_hold,
};

const struct command command_release = {
    .name = "release",
    .usage = "JOB...",
    .help = "Let held jobs start again",
    .takes_jobs = true,
    .job_states = "held",
    .run = run_release,
};
