/* SPDX-License-Identifier: MIT */
/* mgpu park, unpark: gives the GPUs of a running job to other jobs, and returns it to them. */
#include "base/json/field.h"
#include "base/option_values.h"
#include "cli/api/exit_code.h"
#include "cli/options/talk.h"
#include "cli/show/jobs_each.h"
#include "cli/verbs/verbs.h"

struct park_options {
    int64_t for_ms; // 0: until mgpu unpark
};

static const struct option_row park_rows[] = {
    { 0, "for", "TIME", "return automatically after this time (default: when mgpu unpark requests it)",
        OPTION_INNER(duration, struct park_options, for_ms) },
    { 0 },
};

static int run_park(struct call *call, int argc, char **argv, struct error *err)
{
    const struct park_options *options = call->options;
    _cleanup_json_ json_t *body = json_object();
    if (options->for_ms > 0)
        (void)json_object_set_new(body, "for_s", json_integer((options->for_ms + 999) / 1000));
    int status = jobs_post_each(call, argc, argv, "park", body, "is being parked", err);
    if (status == EXIT_OK && !call->is_quiet && !call->is_json)
        talk_line(
            "its GPUs are free once their memory is saved; mgpu show says when, or why it keeps running");
    return status;
}

static int run_unpark(struct call *call, int argc, char **argv, struct error *err)
{
    _cleanup_json_ json_t *body = json_object();
    return jobs_post_each(call, argc, argv, "unpark", body, "returns as soon as its GPUs are free", err);
}

const struct command command_park = {
    .name = "park",
    .usage = "[OPTIONS] JOB...",
    .help = "Stop running jobs, and give their GPUs to other jobs",
    .detail = "The contents of GPU memory are kept in host memory until mgpu unpark.",
    .tables = { park_rows },
    .options_size = sizeof(struct park_options),
    .takes_jobs = true,
    .job_states = "running",
    .run = run_park,
};

const struct command command_unpark = {
    .name = "unpark",
    .usage = "JOB...",
    .help = "Return parked jobs to their GPUs",
    .takes_jobs = true,
    .job_states = "running",
    .run = run_unpark,
};
