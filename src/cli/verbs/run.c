/* SPDX-License-Identifier: MIT */
/* mgpu run: submits a job and waits until it ends. */
#include <errno.h>
#include <string.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "base/option_values.h"
#include "cli/api/exit_code.h"
#include "cli/follow/run_job.h"
#include "cli/follow/session.h"
#include "cli/submit/submit.h"
#include "cli/verbs/own_input.h"
#include "cli/verbs/verbs.h"
#include "job/spec.h"

struct run_options {
    struct submit_options submit;
    struct terminal_options terminal;
    bool is_detached, has_no_input;
};

static struct run_options *options_of(void *target)
{
    return ((struct call *)target)->options;
}

static int set_interactive(void *target, const char *value, struct error *err)
{
    options_of(target)->terminal.is_interactive = true;
    options_of(target)->submit.is_tty = true;
    options_of(target)->submit.is_never_tty = false;
    return 0;
}

static const struct option_row rows[] = {
    { 'd', "detach", NULL, "print the job number and return, like submit",
        OPTION_INNER(flag, struct run_options, is_detached) },
    { 'i', "interactive", NULL, "run on a terminal, and pass standard input to it", set_interactive },
    { 0, "no-input", NULL, "do not pass standard input to the job",
        OPTION_INNER(flag, struct run_options, has_no_input) },
    { 0, "ctrl-c", "forward|detach|cancel", "effect of Ctrl-C on a job without a terminal (forward)",
        TERMINAL_CTRL_C(struct run_options) },
    { 0, "detach-keys", "KEYS", "keys to detach: ctrl-p,ctrl-q, or none (Ctrl-] d)",
        TERMINAL_KEYS(struct run_options) },
    { 0 },
};

/* Indexed by --ctrl-c, and by whether the job has a terminal. */
static const enum leaver leavers[CTRL_C_CHOICES][2] = {
    [CTRL_C_FORWARD] = { LEAVER_RUN, LEAVER_RUN_TERMINAL },
    [CTRL_C_DETACH] = { LEAVER_RUN_DETACH, LEAVER_RUN_TERMINAL_DETACH },
    [CTRL_C_CANCEL] = { LEAVER_RUN_CANCEL, LEAVER_RUN_TERMINAL },
};

/* For a job without a terminal; a terminal is its own input. */
static int resolve_input(struct run_options *options, struct error *err)
{
    struct submit_options *submit = &options->submit;
    bool is_asked = submit->input != NULL && strcmp(submit->input, SPEC_INPUT_SENT) == 0;
    bool may_be_sent = !submit->is_tty && !options->is_detached;
    if (is_asked && options->has_no_input)
        return error_set(err, -EINVAL, "--input - and --no-input exclude each other");
    if (is_asked && !may_be_sent)
        return submit_refuse_input(err);
    bool is_free = submit->input == NULL && !options->has_no_input;
    bool is_sent = is_asked ? input_is_there(INPUT_TERMINAL)
                            : is_free && may_be_sent && input_is_there(INPUT_NO_TERMINAL);
    if (is_free && options->is_detached)
        submit_note_input();
    if (is_asked || is_sent)
        submit->input = is_sent ? SPEC_INPUT_SENT : NULL;
    options->terminal.is_input_sent = is_sent;
    return 0;
}

static int run(struct call *call, int argc, char **argv, struct error *err)
{
    struct run_options *options = call->options;
    _cleanup_json_ json_t *job = NULL;
    if (!options->submit.is_dry && !options->is_detached &&
        json_object_get(options->submit.ask, "array") != NULL) {
        (void)error_set(err, -EINVAL, "the output of many jobs cannot be shown in the foreground");
        return error_hint(err, "mgpu submit -a ..., or run -d, and then mgpu wait JOB");
    }
    /* For a job on several nodes, the output of all is shown, and a terminal only on request. */
    bool is_wide = json_integer_value(json_object_get(options->submit.ask, "nodes")) > 1;
    if (!options->is_detached && !options->submit.is_never_tty && !is_wide && session_is_on_terminal())
        options->submit.is_tty = true;
    options->terminal.leaver = leavers[options->terminal.ctrl_c][options->submit.is_tty];
    options->terminal.output_begin = submit_output_size(&options->submit);
    call->is_followed = call->is_shown = !options->is_detached;
    int r = options->submit.is_dry ? 0 : resolve_input(options, err);
    if (r == 0)
        r = submit_job(call, argc, argv, &job, err);
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
        "On a terminal, the command gets its own terminal, to which this one is attached: all keys go "
        "to\n"
        "the command, Ctrl-] d detaches, Ctrl-] ? shows more keys. The job survives the loss of this\n"
        "terminal; mgpu attach reattaches.\n"
        "Otherwise the output appears on standard output, and Ctrl-C is forwarded as SIGINT; a second one\n"
        "within two seconds ends the job, and a third kills it.\n"
        "Ctrl-C while the job waits cancels it.\n"
        "A single word with blanks or shell characters is run by /bin/sh -c.\n"
        "Exit status: that of the command, 128+N if signal N killed it, 125 if mgpu itself failed,\n"
        "124 if it reached its time limit, 137 if it ran out of memory,\n"
        "126 or 127 if the command could not be executed or was not found, 130 after Ctrl-C.",
    .makes_jobs = true,
    .tables = { submit_rows, rows },
    .options_size = sizeof(struct run_options),
    .stops_at_operand = true,
    .is_job_status = true,
    .run = run,
    .clear = submit_options_clear,
};
