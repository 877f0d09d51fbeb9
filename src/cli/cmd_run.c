/* SPDX-License-Identifier: MIT */
/* mgpu run: submit, then stay until it ends. */
#include <errno.h>

#include "base/memory.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/field.h"
#include "cli/follow.h"
#include "cli/submit.h"

struct run_options {
    struct submit_options submit;
    bool is_detached;
};

static int set_detach(void *target, const char *value, struct error *err)
{
    (void)value, (void)err;
    ((struct run_options *)((struct call *)target)->options)->is_detached = true;
    return 0;
}

static const struct option_row rows[] = {
    { 'd', "detach", NULL, "print the job's number and leave it to itself, like submit", set_detach },
    { 0 },
};

static int run(struct call *call, int argc, char **argv, struct error *err)
{
    const struct run_options *options = call->options;
    _cleanup_json_ json_t *job = NULL;
    if (!options->submit.is_dry && !options->is_detached &&
        json_object_get(options->submit.ask, "array") != NULL) {
        (void)error_set(err, -EINVAL, "the output of many jobs cannot be shown in the foreground");
        return error_hint(err, "mgpu submit -a ..., or run -d, and then mgpu wait JOB");
    }
    int r = submit_job(call, argc, argv, &job, err);
    if (r < 0 || options->submit.is_dry)
        return r;
    if (!options->is_detached)
        return follow_job(call, job, err);
    submit_print(call, job);
    return EXIT_OK;
}

const struct command command_run = {
    .name = "run",
    .aliases = { "srun" },
    .usage = "[OPTIONS] [--] COMMAND [ARGUMENT...]",
    .help = "Wait for GPUs, run a command in the foreground, and exit with its status",
    .detail = "The output of the command appears on standard output. Ctrl-C cancels the job: while it runs "
              "it gets\n"
              "SIGTERM and some time to end; a second Ctrl-C kills it at once.\n"
              "One word with blanks or shell characters is run by /bin/sh -c.\n"
              "Exit status: the command's own, 128+N when signal N ended it, 125 when mgpu itself failed,\n"
              "124 when its time limit ended it, 137 when it ran out of memory,\n"
              "126 or 127 when the command could not be executed or was not found, 130 after Ctrl-C.",
    .tables = { submit_rows, rows },
    .options_size = sizeof(struct run_options),
    .stops_at_operand = true,
    .is_job_status = true,
    .run = run,
    .clear = submit_options_clear,
};
