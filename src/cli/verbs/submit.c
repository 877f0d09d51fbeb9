/* SPDX-License-Identifier: MIT */
/* mgpu submit: queues a command, a script, or the jobs of a file, and prints their numbers once they are
 * durable. */
#include <errno.h>
#include <string.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "base/option_values.h"
#include "cli/submit/command_file.h"
#include "cli/submit/job_file.h"
#include "cli/submit/plan.h"
#include "cli/submit/script.h"
#include "cli/submit/script_job.h"
#include "cli/submit/stray_options.h"
#include "cli/submit/submit.h"
#include "cli/submit/submit_check.h"
#include "cli/submit/sweep.h"
#include "cli/verbs/own_input.h"
#include "cli/verbs/verbs.h"
#include "job/spec.h"

static int set_list(void *target, const char *value, struct error *err)
{
    struct call *call = target;
    if (call->layer != NULL)
        return error_set(err, -EINVAL, "--file is only allowed on the command line");
    ((struct submit_options *)call->options)->list = value;
    return 0;
}

static int add_sweep(void *target, const char *value, struct error *err)
{
    struct submit_options *options = ((struct call *)target)->options;
    strings_add(&options->sweeps, value);
    return sweep_check(value, err);
}

static const struct option_row many_rows[] = {
    { 0, "file", "FILE",
        "submit one job per line of this file, or those of a .yaml file; - is standard input", set_list },
    { 0, "in-place", NULL, "run a script from its file, in its state at the start of the job",
        OPTION_INNER(flag, struct submit_options, is_in_place) },
    { 0, "sweep", "NAME=VALUES", "submit one job per value: lr=0.1,0.01 seed=1-5; can be repeated",
        add_sweep },
    { 0 },
};

static int add_command(struct call *call, json_t *command, struct plan *plan, struct error *err)
{
    _cleanup_json_ json_t *request = NULL;
    const struct submit_options *options = call->options;
    submit_check(call, command);
    int r = submit_request(call, command, &request, &plan->left_out, err);
    return r < 0 ? r : plan_add(plan, NULL, NULL, request, &options->sweeps, err);
}

static int add_script(
    struct call *call, struct script *script, int argc, char **argv, struct plan *plan, struct error *err)
{
    _cleanup_json_ json_t *request = NULL;
    const struct submit_options *options = call->options;
    int r = script->has_options ? call_read_again(call, script_apply, script, err) : 0;
    if (r == 0)
        r = script_job_make(call, script, argc, argv, &plan->left_out, &request, err);
    return r < 0 ? r : plan_add(plan, NULL, NULL, request, &options->sweeps, err);
}

static int add_words(struct call *call, int argc, char **argv, struct plan *plan, struct error *err)
{
    _cleanup_script_ struct script script = { 0 };
    _cleanup_json_ json_t *command = NULL;
    stray_options_warn(call, argc, argv);
    if (argc > 0 && script_open(&script, argv[0]))
        return add_script(call, &script, argc, argv, plan, err);
    int r = submit_command(argc, argv, &command, err);
    return r < 0 ? r : add_command(call, command, plan, err);
}

static int make_plan(struct call *call, int argc, char **argv, struct plan *plan, struct error *err)
{
    const struct submit_options *options = call->options;
    if (options->list != NULL && argc > 0)
        return error_set(err, -EINVAL, "the commands are in --file; unexpected '%.60s'", argv[0]);
    if (options->list == NULL && argc == 0) {
        (void)error_set(err, -EINVAL, "no command given");
        return error_hint(err, "for example: mgpu submit -g 1 -- python train.py");
    }
    if (options->list != NULL && job_file_is_one(options->list))
        return job_file_read(call, options->list, plan, err);
    if (options->list != NULL)
        return command_file_read(call, options->list, plan, err);
    if (!job_file_is_one(argv[0]))
        return add_words(call, argc, argv, plan, err);
    if (argc > 1)
        return error_set(err, -EINVAL, "the commands are in %.60s; unexpected '%.60s'", argv[0], argv[1]);
    return job_file_read(call, argv[0], plan, err);
}

static int submit(struct call *call, int argc, char **argv, struct error *err)
{
    _cleanup_plan_ struct plan plan = { 0 };
    const struct submit_options *options = call->options;
    if (options->input != NULL && strcmp(options->input, SPEC_INPUT_SENT) == 0)
        return submit_refuse_input(err);
    if (options->input == NULL && options->list == NULL && !call->is_quiet)
        submit_note_input();
    int r = make_plan(call, argc, argv, &plan, err);
    return r < 0 ? r : plan_run(call, &plan, err);
}

const struct command command_submit = {
    .name = "submit",
    .usage = "[OPTIONS] [--] COMMAND|SCRIPT|JOBS.yaml [ARGUMENT...]",
    .help = "Queue a command, print the job number, and return",
    .detail = "Once the number is printed, the job is stored and will run, regardless of restarts.\n"
              "A single word with blanks or shell characters is run by /bin/sh -c.\n"
              "Array elements find their index in MGPU_ARRAY_INDEX.\n"
              "Option lines such as '#MGPU -g 2 -t 4h' at the head of a script are read; the command line\n"
              "overrides them. See SCRIPTS AND FILES in mgpu-submit(1).",
    .makes_jobs = true,
    .tables = { submit_rows, many_rows },
    .options_size = sizeof(struct submit_options),
    .stops_at_operand = true,
    .run = submit,
    .clear = submit_options_clear,
};
