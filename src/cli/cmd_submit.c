/* SPDX-License-Identifier: MIT */
/* mgpu submit: queue a command and print its number, which is then durable. */
#include "base/memory.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/field.h"
#include "cli/submit.h"

static int submit(struct call *call, int argc, char **argv, struct error *err)
{
    const struct submit_options *options = call->options;
    _cleanup_json_ json_t *job = NULL;
    int r = submit_job(call, argc, argv, &job, err);
    if (r < 0 || options->is_dry)
        return r;
    submit_print(call, job);
    return EXIT_OK;
}

const struct command command_submit = {
    .name = "submit",
    .usage = "[OPTIONS] [--] COMMAND [ARGUMENT...]",
    .help = "Queue a command, print the number of its job, and return",
    .detail = "When the number is printed the job is stored and will run, whatever restarts meanwhile.\n"
              "One word with blanks or shell characters is run by /bin/sh -c.\n"
              "Each element of an array finds its number in MGPU_ARRAY_INDEX.",
    .tables = { submit_rows },
    .options_size = sizeof(struct submit_options),
    .stops_at_operand = true,
    .run = submit,
    .clear = submit_options_clear,
};
