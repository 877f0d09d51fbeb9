/* SPDX-License-Identifier: MIT */
/* mgpu wait: waits until all named jobs have ended, and returns the status of the last one that did not end
 * with 0; or waits until the first has ended, and returns its status. */
#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/option_values.h"
#include "base/parse.h"
#include "cli/api/exit_code.h"
#include "cli/api/show_json.h"
#include "cli/follow/follow.h"
#include "cli/follow/wait_any.h"
#include "cli/follow/wait_shown.h"
#include "cli/options/selector.h"
#include "cli/options/talk.h"
#include "cli/show/job_end.h"
#include "cli/verbs/verbs.h"

struct wait_options {
    bool has_timeout;
    bool is_any; // wait only for the first one that ends
    int64_t timeout_ms;
};

static int set_timeout(void *target, const char *value, struct error *err)
{
    struct wait_options *options = ((struct call *)target)->options;
    int r = parse_duration(value, "--timeout", &options->timeout_ms, err);
    if (r < 0)
        return r;
    options->has_timeout = true;
    return 0;
}

static int set_all(void *target, const char *value, struct error *err)
{
    ((struct wait_options *)((struct call *)target)->options)->is_any = false;
    return 0;
}

static const struct option_row rows[] = {
    { 0, "any", NULL, "wait for the first to end, print its number and exit with its status",
        OPTION_INNER(flag, struct wait_options, is_any) },
    { 0, "all", NULL, "wait for all jobs (default)", set_all },
    { 0, "timeout", "TIME", "give up after this time, with exit status 124", set_timeout },
    { 0 },
};

static void print_job(const struct call *call, const json_t *job)
{
    if (call->is_json) {
        show_json_line(job, stdout);
    } else if (!call->is_quiet) {
        follow_report(call, "wait", job);
    }
}

static int wait_for_all(struct call *call, const struct strings *jobs, int64_t deadline_ms, struct error *err)
{
    int status = EXIT_OK;
    for (size_t i = 0; i < jobs->count; i++) {
        _cleanup_json_ json_t *job = NULL;
        int r = wait_shown(call, jobs->items[i], "done", deadline_ms, &job, err);
        if (r < 0)
            return r;
        int here = exit_code_of_job(job);
        status = here != EXIT_OK ? here : status;
        print_job(call, job);
    }
    return status;
}

/* The answer is which job it was, so it is always printed. */
static int wait_for_any(struct call *call, const struct strings *jobs, int64_t deadline_ms, struct error *err)
{
    _cleanup_json_ json_t *job = NULL;
    size_t which = 0;
    int r = wait_any(call, jobs, deadline_ms, &which, &job, err);
    if (r < 0)
        return r;
    if (!call->is_json)
        (void)puts(jobs->items[which]);
    (void)fflush(stdout);
    print_job(call, job);
    return exit_code_of_job(job);
}

static int run(struct call *call, int argc, char **argv, struct error *err)
{
    const struct wait_options *options = call->options;
    int64_t deadline_ms = options->has_timeout ? clock_boot_ms() + options->timeout_ms : JOB_END_FOR_EVER;
    _cleanup_strings_ struct strings jobs = { 0 };
    int r = selector_resolve(call, argc, argv, &jobs, err);
    if (r < 0)
        return r;
    call->client.timeout_ms = CLIENT_PATIENT_MS;
    r = options->is_any ? wait_for_any(call, &jobs, deadline_ms, err)
                        : wait_for_all(call, &jobs, deadline_ms, err);
    if (r != -ETIME)
        return r;
    talk_error("wait", err);
    return EXIT_TIMEOUT;
}

const struct command command_wait = {
    .name = "wait",
    .usage = "[OPTIONS] JOB...",
    .help = "Wait until jobs have ended, and exit like the last one that did not exit with 0",
    .detail = "With --any, wait for the first one to end: print its number and exit with its status.",
    .tables = { rows },
    .options_size = sizeof(struct wait_options),
    .is_job_status = true,
    .takes_jobs = true,
    .job_name_use = JOB_NAME_WAIT,
    .run = run,
};
