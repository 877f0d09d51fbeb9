/* SPDX-License-Identifier: MIT */
/* mgpu without a verb on a terminal: the GPUs, the user's jobs, and suggested commands. */
#include <stdio.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "cli/api/exit_code.h"
#include "cli/options/selector.h"
#include "cli/show/gpu_columns.h"
#include "cli/show/ps.h"
#include "cli/verbs/verbs.h"

#define COMMAND_LINES 3U // suggested commands
#define GPUS_MIN      4U

/* Keeps as many GPUs as half of the screen has lines; returns how many were removed. */
static size_t fit_gpus(json_t *gpus)
{
    unsigned rows = 0, columns = 0;
    size_t count = json_array_size(gpus), kept = count;
    if (screen_size(&rows, &columns) && count > rows / 2)
        kept = rows / 2 > GPUS_MIN ? rows / 2 - 2 : GPUS_MIN - 2;
    while (json_array_size(gpus) > kept)
        (void)json_array_remove(gpus, json_array_size(gpus) - 1);
    return count > kept ? count - kept : 0;
}

static int run(struct call *call, int argc, char **argv, struct error *err)
{
    struct screen screen;
    _cleanup_json_ json_t *gpus = NULL;
    _cleanup_buffer_ struct buffer path = { 0 };
    screen_open(&screen, STDOUT_FILENO, call->color);
    int r = client_get(&call->client, API_PATH "/gpus?sparse=1", &gpus, err);
    if (r < 0)
        return r;
    size_t hidden = fit_gpus(json_object_get(gpus, "gpus"));
    r = list_print(call, &gpu_list, &screen, gpus, stdout, err);
    if (r < 0)
        return r;
    if (hidden > 0)
        (void)printf("and %zu more: mgpu gpus\n", hidden);
    (void)fputc('\n', stdout);
    _cleanup_free_ char *user = selector_own_user();
    buffer_append_text(&path, API_PATH "/jobs?user=");
    http_append_encoded(&path, user);
    /* Header, GPUs, possibly the number of others, and a blank line; below the jobs, a blank line and the
     * commands. */
    size_t lines = 1 + json_array_size(json_object_get(gpus, "gpus")) + (hidden > 0) + 1 + 1 + COMMAND_LINES;
    struct ps_choice choice = { .is_folded = !list_is_machine(call), .lines = lines };
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
