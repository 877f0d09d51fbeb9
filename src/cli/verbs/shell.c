/* SPDX-License-Identifier: MIT */
/* mgpu shell: run -T with the user's shell, and defaults for interactive use. */
#include <errno.h>
#include <stdlib.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "cli/follow/run_job.h"
#include "cli/follow/session.h"
#include "cli/options/ask.h"
#include "cli/submit/submit.h"
#include "cli/verbs/verbs.h"

struct shell_options {
    struct submit_options submit;
    struct terminal_options terminal;
};

/* Defaults unless specified otherwise: a forgotten shell releases its GPUs. */
static const struct {
    const char *key, *option, *value;
} defaults[] = {
    { "time_limit", "-t", "2h" },
    { "tty_idle", "--tty-idle", "30m" },
};

static const struct option_row rows[] = {
    { 0, "detach-keys", "KEYS", "keys to detach: ctrl-p,ctrl-q, or none (Ctrl-] d)",
        TERMINAL_KEYS(struct shell_options) },
    { 0 },
};

static int set_defaults(struct submit_options *options, struct error *err)
{
    int r = 0;
    if (options->ask == NULL)
        options->ask = json_object();
    for (size_t i = 0; r == 0 && i < sizeof(defaults) / sizeof(defaults[0]); i++)
        if (json_object_get(options->ask, defaults[i].key) == NULL)
            r = ask_set(options->ask, NULL, defaults[i].key, defaults[i].option, defaults[i].value, err);
    return r;
}

/* An image may not contain the user's own shell. */
static char sh[] = "/bin/sh", from_text[] = "-c", find_shell[] = "exec $(command -v bash || echo sh)";

static int run(struct call *call, int argc, char **argv, struct error *err)
{
    struct shell_options *options = call->options;
    const char *from_environment = getenv("SHELL");
    bool is_named = from_environment != NULL && *from_environment != '\0';
    _cleanup_free_ char *shell = xstrdup(is_named ? from_environment : "/bin/sh");
    char *command[] = { shell, NULL };
    char *inside[] = { sh, from_text, find_shell, NULL };
    _cleanup_json_ json_t *job = NULL;
    if (!session_is_on_terminal()) {
        (void)error_set(err, -EINVAL, "a shell needs a terminal");
        return error_hint(err, "mgpu run -- COMMAND runs one command");
    }
    int r = set_defaults(&options->submit, err);
    if (r < 0)
        return r;
    options->submit.is_tty = true;
    options->terminal.leaver = LEAVER_SHELL;
    call->is_followed = true;
    bool is_inside = options->submit.image.name != NULL;
    r = submit_job(call, is_inside ? 3 : 1, is_inside ? inside : command, &job, err);
    return r < 0 ? r : run_job(call, job, true, &options->terminal, err);
}

const struct command command_shell = {
    .name = "shell",
    .usage = "[OPTIONS]",
    .help = "Wait for GPUs and open a shell on them, for two hours unless -t is given",
    .detail =
        "Ctrl-] d detaches; mgpu attach reattaches. The shell is ended after 30 minutes without input or\n"
        "output, with a warning a minute before; --tty-idle sets another time, or none.\n"
        "Exit status: that of the shell.",
    .makes_jobs = true,
    .tables = { submit_rows, rows },
    .options_size = sizeof(struct shell_options),
    .stops_at_operand = true,
    .is_job_status = true,
    .takes_nothing = true,
    .run = run,
    .clear = submit_options_clear,
};
