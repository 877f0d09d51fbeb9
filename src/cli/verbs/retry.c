/* SPDX-License-Identifier: MIT */
/* mgpu retry: submit copies of jobs that have ended. */
#include <stdio.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "cli/api/show_json.h"
#include "cli/options/selector.h"
#include "cli/show/jobs_each.h"
#include "cli/submit/submit.h"
#include "cli/verbs/verbs.h"

static int retry(struct call *call, const char *id, void *arg, struct error *err)
{
    _cleanup_json_ json_t *body = json_object(), *job = NULL;
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%s/retry", id);
    int r = submit_renew_key(body, err);
    if (r < 0)
        return r;
    r = client_call(&call->client, "POST", path, body, &job, err);
    if (r < 0)
        return r;
    if (call->is_json) {
        show_json_line(job, stdout);
        return 0;
    }
    _cleanup_free_ char *shown = field_shown(job, "id");
    (void)printf("%s\n", shown);
    return 0;
}

static int run(struct call *call, int argc, char **argv, struct error *err)
{
    _cleanup_strings_ struct strings jobs = { 0 };
    int r = selector_resolve(call, argc, argv, &jobs, err);
    return r < 0 ? r : jobs_each(call, &jobs, retry, NULL);
}

const struct command command_retry = {
    .name = "retry",
    .usage = "JOB...",
    .help = "Submit copies of ended jobs, and print their numbers",
    .detail = "A copy has the final request of the job, without dependencies, begin time and deadline.",
    .takes_jobs = true,
    .job_name_use = JOB_NAME_NEWEST,
    .job_states = "done,failed,cancelled",
    .run = run,
};
