/* SPDX-License-Identifier: MIT */
/* mgpu wait: until all the jobs named are over; the status is that of the last one that did not end with 0.
 */
#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/parse.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/field.h"
#include "cli/follow.h"
#include "cli/job_columns.h"
#include "cli/job_end.h"
#include "cli/selector.h"
#include "cli/talk.h"

struct wait_options {
    bool has_timeout;
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

static const struct option_row rows[] = {
    { 0, "timeout", "TIME", "give up after that long, with exit status 124", set_timeout },
    { 0 },
};

static int run(struct call *call, int argc, char **argv, struct error *err)
{
    const struct wait_options *options = call->options;
    int64_t deadline_ms = options->has_timeout ? clock_boot_ms() + options->timeout_ms : JOB_END_FOR_EVER;
    _cleanup_strings_ struct strings jobs = { 0 };
    int status = EXIT_OK;
    int r = selector_resolve(&call->client, argc, argv, &jobs, err);
    call->client.patience_ms = CLIENT_PATIENT_MS;
    for (size_t i = 0; r >= 0 && i < jobs.count; i++) {
        _cleanup_json_ json_t *job = NULL;
        r = job_end_await(call, jobs.items[i], deadline_ms, &job, err);
        if (r < 0)
            break;
        int here = exit_code_of_job(job);
        status = here != EXIT_OK ? here : status;
        if (call->is_json) {
            (void)json_dumpf(job, stdout, JSON_COMPACT | JSON_REAL_PRECISION(15));
            (void)fputc('\n', stdout);
        } else if (!call->is_quiet) {
            follow_report(call, "wait", job);
        }
    }
    if (r == -ETIME) {
        talk_error("wait", err);
        return EXIT_TIMEOUT;
    }
    return r < 0 ? r : status;
}

const struct command command_wait = {
    .name = "wait",
    .usage = "[OPTIONS] JOB...",
    .help = "Wait until jobs are over, and exit like the last one that did not end with 0",
    .tables = { rows },
    .options_size = sizeof(struct wait_options),
    .is_job_status = true,
    .takes_jobs = true,
    .run = run,
};
