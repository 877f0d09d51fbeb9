/* SPDX-License-Identifier: MIT */
/* mgpu signal, suspend, continue, requeue: actions on running jobs. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "base/parse.h"
#include "base/signals.h"
#include "cli/api/exit_code.h"
#include "cli/api/leaving_signals.h"
#include "cli/complete/complete.h"
#include "cli/options/talk.h"
#include "cli/show/jobs_each.h"
#include "cli/verbs/verbs.h"
#include "job/ask.h"
#include "job/launch.h"

/* --- signal --- */

struct signal_options {
    const char *to;
};

static int set_to(void *target, const char *value, struct error *err)
{
    struct signal_options *options = ((struct call *)target)->options;
    uint32_t scope;
    options->to = value;
    if (signal_scope_find(value, &scope))
        return 0;
    (void)error_set(err, -EINVAL, "--to: unknown recipient %.60s", value);
    return error_hint(err, "handlers, steps, script or all");
}

static const struct option_row signal_rows[] = {
    { 0, "to", "WHO", "handlers (default), steps or script of a job of sbatch, or all", set_to },
    { 0 },
};

static int run_signal(struct call *call, int argc, char **argv, struct error *err)
{
    const struct signal_options *options = call->options;
    _cleanup_json_ json_t *body = json_object();
    if (argc < 2) {
        (void)error_set(err, -EINVAL, "no signal given");
        return error_hint(err, "mgpu signal %.60s USR1", argc > 0 ? argv[0] : "JOB");
    }
    const char *word = argv[argc - 1];
    int signal = signal_find(word);
    if (signal == 0) {
        (void)error_set(err, -EINVAL, "'%.60s' is not a signal", word);
        bool is_first = !isdigit((unsigned char)argv[0][0]) && signal_find(argv[0]) != 0 && argc == 2;
        return error_hint(err, "give the signal last: mgpu signal %.60s %.60s", is_first ? word : argv[0],
            is_first ? argv[0] : "USR1");
    }
    (void)json_object_set_new(body, "signal", json_string(word));
    if (options->to != NULL)
        (void)json_object_set_new(body, "to", json_string(options->to));
    const char *name = signal_name(signal);
    _cleanup_free_ char *done =
        name != NULL ? xasprintf("got SIG%s", name) : xasprintf("got signal %d", signal);
    int r = jobs_post_each(call, argc - 1, argv, "signal", body, done, err);
    bool is_swapped = argc == 2 && isdigit((unsigned char)word[0]) && signal_find(argv[0]) != 0;
    return r == -ENOENT && is_swapped
               ? error_hint(err, "the signal comes last: mgpu signal %.60s %.60s", word, argv[0])
               : r;
}

static void complete_operand(const struct completion *completion)
{
    complete_jobs(completion);
    if (completion->operands > 0)
        complete_signals(completion);
}

const struct command command_signal = {
    .name = "signal",
    .usage = "[OPTIONS] JOB... SIGNAL",
    .help = "Send a signal to running jobs",
    .detail = "SIGNAL is a name such as USR1, or a number. STOP and CONT suspend and continue the job.",
    .tables = { signal_rows },
    .options_size = sizeof(struct signal_options),
    .takes_jobs = true,
    .job_states = "running",
    .complete_operand = complete_operand,
    .run = run_signal,
};

/* --- suspend, continue --- */

static int run_suspend(struct call *call, int argc, char **argv, struct error *err)
{
    _cleanup_json_ json_t *body = json_object();
    int status = jobs_post_each(call, argc, argv, "suspend", body, "is suspended", err);
    if (status == EXIT_OK && !call->is_quiet && !call->is_json)
        talk_line("a suspended job keeps its GPUs and the contents of their memory, and its time limit is "
                  "not extended; "
                  "mgpu continue resumes it");
    return status;
}

static int run_continue(struct call *call, int argc, char **argv, struct error *err)
{
    _cleanup_json_ json_t *body = json_object();
    return jobs_post_each(call, argc, argv, "continue", body, "is resumed", err);
}

const struct command command_suspend = {
    .name = "suspend",
    .usage = "JOB...",
    .help = "Suspend running jobs; they keep their GPUs",
    .detail = "All processes of the job get SIGSTOP. Its time limit keeps counting.",
    .takes_jobs = true,
    .job_states = "running",
    .run = run_suspend,
};

const struct command command_continue = {
    .name = "continue",
    .usage = "JOB...",
    .help = "Resume suspended jobs",
    .takes_jobs = true,
    .job_states = "running",
    .run = run_continue,
};

/* --- requeue --- */

struct requeue_options {
    bool has_grace;
    int64_t grace_ms;
};

static int set_grace(void *target, const char *value, struct error *err)
{
    struct requeue_options *options = ((struct call *)target)->options;
    int r = parse_duration(value, "--grace", &options->grace_ms, err);
    options->has_grace = r == 0;
    return r;
}

static const struct option_row requeue_rows[] = {
    { 0, "grace", "TIME", "time between SIGTERM and SIGKILL (the job's, else mgpud's: " ASK_GRACE_DEFAULT ")",
        set_grace },
    { 0 },
};

static int run_requeue(struct call *call, int argc, char **argv, struct error *err)
{
    const struct requeue_options *options = call->options;
    _cleanup_json_ json_t *body = json_object();
    if (options->has_grace)
        (void)json_object_set_new(body, "grace_s", json_integer((options->grace_ms + 999) / 1000));
    leaving_outlive_own_end();
    return jobs_post_each(call, argc, argv, "requeue", body, "is moved to the end of the queue", err);
}

const struct command command_requeue = {
    .name = "requeue",
    .usage = "[OPTIONS] JOB...",
    .help = "End running jobs and requeue them at the end",
    .detail = "The job keeps its number and starts a new attempt. For ended jobs, use mgpu retry.",
    .tables = { requeue_rows },
    .options_size = sizeof(struct requeue_options),
    .takes_jobs = true,
    .job_states = "running",
    .run = run_requeue,
};
