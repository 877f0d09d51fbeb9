/* SPDX-License-Identifier: MIT */
/* mgpu why: everything that prevents a job from starting, until when, and what would start it now. */
#include <stdio.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "base/option_values.h"
#include "cli/api/show_json.h"
#include "cli/show/jobs_each.h"
#include "cli/show/why_text.h"
#include "cli/verbs/verbs.h"

struct why_options {
    bool is_verbose;
};

static const struct option_row rows[] = {
    { 'v', "verbose", NULL, "with the rules that bound the wait, in numbers",
        OPTION_INNER(flag, struct why_options, is_verbose) },
    { 0 },
};

static int explain(struct call *call, const char *id, void *arg, struct error *err)
{
    struct jobs_pages *pages = arg;
    _cleanup_json_ json_t *why = NULL, *job = NULL;
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%s/why", id);
    _cleanup_free_ char *job_path = xasprintf(API_PATH "/jobs/%s", id);
    int r = client_get(&call->client, path, &why, err);
    if (r < 0)
        return r;
    if (call->is_json) {
        show_json_page(why, stdout);
        return 0;
    }
    r = client_get(&call->client, job_path, &job, err);
    if (r < 0)
        return r;
    jobs_begin_page(pages);
    pages->view.is_verbose = ((const struct why_options *)call->options)->is_verbose;
    why_print(&pages->view, job, why, stdout);
    return 0;
}

static int run(struct call *call, int argc, char **argv, struct error *err)
{
    return jobs_show_each(call, argc, argv, explain, err);
}

const struct command command_why = {
    .name = "why",
    .usage = "[OPTIONS] JOB...",
    .help = "Show why jobs wait, until when, and what would start them now",
    .detail = "All reasons are listed, not only the first. Times are forecasts, with their basis.",
    .tables = { rows },
    .options_size = sizeof(struct why_options),
    .takes_jobs = true,
    .job_name_use = JOB_NAME_NEWEST,
    .job_states = "queued,held",
    .run = run,
};
