/* SPDX-License-Identifier: MIT */
/* mgpu run: submit, then stay until it ends. */
#include <errno.h>

#include "base/memory.h"
#include "cli/verbs/verbs.h"
#include "cli/api/exit_code.h"
#include "cli/term/field.h"
#include "cli/follow/run_job.h"
#include "cli/follow/session.h"
#include "cli/submit/submit.h"

struct run_options {
    struct submit_options submit;
    struct terminal_options terminal;
    bool is_detached;
};

static struct run_options *options_of(void *target)
{
    return ((struct call *)target)->options;
}

static int set_detach(void *target, const char *value, struct error *err)
{
    (void)value, (void)err;
    options_of(target)->is_detached = true;
    return 0;
}

static int set_interactive(void *target, const char *value, struct error *err)
{
    (void)value, (void)err;
    options_of(target)->terminal.is_interactive = true;
    options_of(target)->submit.is_tty = true;
    options_of(target)->submit.is_never_tty = false;
    return 0;
}

static int set_keys(void *target, const char *value, struct error *err)
{
    return terminal_options_set_keys(&options_of(target)->terminal, value, err);
}

static int set_ctrl_c(void *target, const char *value, struct error *err)
{
    return terminal_options_set_ctrl_c(&options_of(target)->terminal, value, err);
}

static const struct option_row rows[] = {
    { 'd', "detach", NULL, "print the job's number and leave it to itself, like submit", set_detach },
    { 'i', "interactive", NULL, "on a terminal, with the input that comes here", set_interactive },
    { 0, "ctrl-c", "forward|detach|cancel", "what Ctrl-C does to a job without a terminal (forward)",
        set_ctrl_c },
    { 0, "detach-keys", "KEYS", "keys that leave it running: ctrl-p,ctrl-q, or none (Ctrl-] d)", set_keys },
    { 0 },
};

static int run(struct call *call, int argc, char **argv, struct error *err)
{
    struct run_options *options = call->options;
    _cleanup_json_ json_t *job = NULL;
    if (!options->submit.is_dry && !options->is_detached &&
        json_object_get(options->submit.ask, "array") != NULL) {
        (void)error_set(err, -EINVAL, "the output of many jobs cannot be shown in the foreground");
        return error_hint(err, "mgpu submit -a ..., or run -d, and then mgpu wait JOB");
    }
    /* Of a job on several nodes the output of all is shown, and only asked for by name a terminal. */
    bool is_wide = json_integer_value(json_object_get(options->submit.ask, "nodes")) > 1;
    if (!options->is_detached && !options->submit.is_never_tty && !is_wide && session_is_on_terminal())
        options->submit.is_tty = true;
    options->terminal.output_begin = submit_output_size(&options->submit);
    int r = submit_job(call, argc, argv, &job, err);
    if (r < 0 || options->submit.is_dry)
        return r;
    if (!options->is_detached)
        return run_job(call, job, options->submit.is_tty, &options->terminal, err);
    submit_print(call, job);
    return EXIT_OK;
}

const struct command command_run = {
    .name = "run",
    .aliases = { "srun" },
    .usage = "[OPTIONS] [--] COMMAND [ARGUMENT...]",
    .help = "Wait for GPUs, run a command in the foreground, and exit with its status",
    .detail =
        "Typed on a terminal, the command has a terminal of its own and this one is joined to it: every key\n"
        "goes to the command, Ctrl-] and d leaves it running, Ctrl-] and ? shows more. The job goes on\n"
        "when this terminal is lost; mgpu attach comes back to it.\n"
        "Otherwise the output of the command appears on standard output, and Ctrl-C is passed on as SIGINT;\n"
        "again within two seconds asks the job to end, and once more kills it.\n"
        "Ctrl-C while it waits cancels it.\n"
        "One word with blanks or shell characters is run by /bin/sh -c.\n"
        "Exit status: the command's own, 128+N when signal N ended it, 125 when mgpu itself failed,\n"
        "124 when its time limit ended it, 137 when it ran out of memory,\n"
        "126 or 127 when the command could not be executed or was not found, 130 after Ctrl-C.",
    .makes_jobs = true,
    .tables = { submit_rows, rows },
    .options_size = sizeof(struct run_options),
    .stops_at_operand = true,
    .is_job_status = true,
    .run = run,
    .clear = submit_options_clear,
};
