/* SPDX-License-Identifier: MIT */
/* mgpu node drain|resume; for operators. Jobs that run there go on; nothing new starts. The other actions are
 * in node_admit.c. */
#include <errno.h>
#include <stdio.h>

#include "base/buffer.h"
#include "cli/commands.h"
#include "cli/complete.h"
#include "cli/exit_code.h"
#include "cli/field.h"
#include "cli/node_admit.h"
#include "cli/outage.h"
#include "cli/outage_wait.h"

static int run(struct call *call, const char *action, int argc, char **argv, struct error *err)
{
    if (argc == 0) {
        (void)error_set(err, -EINVAL, "no node given");
        return error_hint(err, "mgpu nodes shows them");
    }
    for (int i = 0; i < argc; i++) {
        _cleanup_buffer_ struct buffer path = { 0 };
        _cleanup_json_ json_t *body = json_object();
        buffer_append_text(&path, API_PATH "/nodes/");
        http_append_encoded(&path, argv[i]);
        buffer_printf(&path, "/%s", action);
        int r = outage_post(call, buffer_text(&path), body, err);
        if (r < 0)
            return r;
    }
    for (int i = 0; i < argc && ((const struct outage_options *)call->options)->is_waiting; i++) {
        int r = outage_wait_node(call, argv[i], err);
        if (r < 0)
            return r;
    }
    return EXIT_OK;
}

static int run_drain(struct call *call, int argc, char **argv, struct error *err)
{
    return run(call, "drain", argc, argv, err);
}

static int run_resume(struct call *call, int argc, char **argv, struct error *err)
{
    return run(call, "resume", argc, argv, err);
}

static const struct command drain_command = {
    .name = "node drain",
    .usage = "[OPTIONS] NODE...",
    .help = "Start nothing new on these nodes (operators)",
    .tables = { outage_rows, outage_wait_rows },
    .options_size = sizeof(struct outage_options),
    .complete_operand = complete_nodes,
    .run = run_drain,
};

static const struct command resume_command = {
    .name = "node resume",
    .usage = "NODE...",
    .help = "Use these nodes again (operators)",
    .options_size = sizeof(struct outage_options),
    .complete_operand = complete_nodes,
    .run = run_resume,
};

static const struct command *const actions[] = { &drain_command, &resume_command, &node_token_command,
    &node_forget_command, NULL };

const struct command command_node = {
    .name = "node",
    .usage = "drain|resume|forget NODE... | token",
    .help = "Take nodes out of use and put them back; let machines join",
    .actions = actions,
};
