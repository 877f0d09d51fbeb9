/* SPDX-License-Identifier: MIT */
/* mgpu without a verb on a terminal: the GPUs, the user's jobs, and suggested commands. */
#include <stdio.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "cli/verbs/verbs.h"
#include "cli/api/exit_code.h"
#include "cli/term/field.h"
#include "cli/show/gpu_columns.h"
#include "cli/show/ps.h"
#include "cli/options/selector.h"

static int run(struct call *call, int argc, char **argv, struct error *err)
{
    struct screen screen;
    _cleanup_json_ json_t *gpus = NULL;
    _cleanup_buffer_ struct buffer path = { 0 };
    (void)argc, (void)argv;
    screen_open(&screen, STDOUT_FILENO, call->color);
    int r = client_get(&call->client, API_PATH "/gpus?sparse=1", &gpus, err);
    if (r < 0)
        return r;
    r = list_print(call, &gpu_list, &screen, gpus, stdout, err);
    if (r < 0)
        return r;
    (void)fputc('\n', stdout);
    _cleanup_free_ char *user = selector_own_user();
    buffer_append_text(&path, API_PATH "/jobs?user=");
    http_append_encoded(&path, user);
    struct ps_choice choice = { .is_folded = !list_is_machine(call) };
    if (choice.is_folded)
        buffer_append_text(&path, "&fold=1");
    r = ps_show(call, buffer_text(&path), &choice, stdout, err);
    if (r < 0)
        return r;
    (void)fputs("\n"
                "mgpu run -g 1 -- COMMAND   run something\n"
                "mgpu ps -a                 all users' jobs\n"
                "mgpu help                  all commands\n",
        stdout);
    return EXIT_OK;
}

const struct command command_overview = {
    .name = "",
    .usage = "",
    .help = "Show the GPUs and your jobs",
    .is_hidden = true,
    .run = run,
};
