/* SPDX-License-Identifier: MIT */
/* mgpu gpus: who has which GPU, and how busy it is. */
#include <stdio.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/field.h"
#include "cli/gpu_columns.h"
#include "cli/watch.h"

struct gpus_options {
    bool is_line;
    int64_t watch_ms;
};

static int set_line(void *target, const char *value, struct error *err)
{
    (void)value, (void)err;
    ((struct gpus_options *)((struct call *)target)->options)->is_line = true;
    return 0;
}

static int set_watch(void *target, const char *value, struct error *err)
{
    return watch_parse(value, &((struct gpus_options *)((struct call *)target)->options)->watch_ms, err);
}

static const struct option_row rows[] = {
    { 0, "line", NULL, "one short line, for the status bar of tmux", set_line },
    { 'w', "watch", "[SECONDS]", "show it again and again (2)", set_watch },
    { 0 },
};

static int show(void *arg, FILE *out, struct error *err)
{
    struct call *call = arg;
    const struct gpus_options *options = call->options;
    struct screen screen;
    _cleanup_json_ json_t *answer = NULL;
    int r = client_get(&call->client, API_PATH "/gpus", &answer, err);
    if (r < 0)
        return r;
    if (options->is_line) {
        gpu_print_line(json_object_get(answer, "gpus"), out);
        return 0;
    }
    screen_open(&screen, STDOUT_FILENO, call->color);
    if (json_array_size(json_object_get(answer, "gpus")) == 0 && !list_is_machine(call)) {
        (void)fputs("no GPUs found; mgpu doctor says why\n", out);
        return 0;
    }
    r = list_print(call, &gpu_list, &screen, answer, out, err);
    if (r == 0 && !list_is_machine(call) && screen.is_tty)
        gpu_print_outside(json_object_get(answer, "gpus"), out);
    return r;
}

static int run(struct call *call, int argc, char **argv, struct error *err)
{
    const struct gpus_options *options = call->options;
    (void)argc, (void)argv;
    if (list_print_help(&call->list, &gpu_list, stdout))
        return EXIT_OK;
    int r = list_check(&call->list, &gpu_list, err);
    if (r < 0)
        return r;
    return options->watch_ms > 0 ? watch_run(call, options->watch_ms, show, call, err)
                                 : show(call, stdout, err);
}

const struct command command_gpus = {
    .name = "gpus",
    .aliases = { "status", "smi" },
    .usage = "[OPTIONS]",
    .help = "Show the GPUs, their jobs and how busy they are",
    .tables = { rows, call_list_rows },
    .options_size = sizeof(struct gpus_options),
    .takes_nothing = true,
    .run = run,
};
