/* SPDX-License-Identifier: MIT */
/* mgpu node drain|resume|fence; for operators. Running jobs on a drained node are not affected, but no new
 * jobs start there. Fencing confirms that no process is running on the node any more. The other actions are
 * in node_admit.c. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/option_values.h"
#include "base/strings.h"
#include "cli/api/exit_code.h"
#include "cli/cluster/node_admit.h"
#include "cli/complete/complete.h"
#include "cli/options/maintenance.h"
#include "cli/options/maintenance_wait.h"
#include "cli/verbs/verbs.h"

#define NAME_MAX_SHOWN 100

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
        int r = maintenance_post(call, buffer_text(&path), body, err);
        if (r < 0)
            return r;
    }
    for (int i = 0; i < argc && ((const struct maintenance_options *)call->options)->is_waiting; i++) {
        int r = maintenance_wait_node(call, argv[i], err);
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

struct fence_options {
    struct maintenance_options maintenance; // must be first: its options are shared
    bool is_yes;
};

static const struct option_row fence_rows[] = {
    { 'y', "yes", NULL, "do not ask for confirmation", OPTION_INNER(flag, struct fence_options, is_yes) },
    { 0 },
};

static bool is_confirmed(int argc, char **argv)
{
    char answer[8] = "";
    (void)fprintf(stderr, "Have you made sure that");
    for (int i = 0; i < argc; i++) {
        _cleanup_free_ char *name = text_escape(argv[i], NAME_MAX_SHOWN);
        (void)fprintf(stderr, "%s %s", i > 0 ? "," : "", name);
    }
    (void)fprintf(
        stderr, " %s off? A job that is still running there will run twice. [y/N] ", argc > 1 ? "are" : "is");
    return fgets(answer, sizeof(answer), stdin) != NULL && (answer[0] == 'y' || answer[0] == 'Y');
}

static int run_fence(struct call *call, int argc, char **argv, struct error *err)
{
    const struct fence_options *options = call->options;
    if (argc > 0 && !options->is_yes && isatty(STDIN_FILENO) != 1) {
        (void)error_set(err, -EINVAL, "cannot ask for confirmation: standard input is not a terminal");
        return error_hint(err, "make sure that it is off, then use -y");
    }
    if (argc > 0 && !options->is_yes && !is_confirmed(argc, argv))
        return error_set(err, -ECANCELED, "nothing was fenced");
    return run(call, "fence", argc, argv, err);
}

static const struct command fence_command = {
    .name = "node fence",
    .usage = "[OPTIONS] NODE...",
    .help = "Confirm that these nodes are off: their attempts have ended (operators)",
    .tables = { maintenance_reason_rows, fence_rows },
    .options_size = sizeof(struct fence_options),
    .complete_operand = complete_nodes,
    .run = run_fence,
};

static const struct command drain_command = {
    .name = "node drain",
    .usage = "[OPTIONS] NODE...",
    .help = "Start no new jobs on these nodes (operators)",
    .tables = { maintenance_rows, maintenance_wait_rows },
    .options_size = sizeof(struct maintenance_options),
    .complete_operand = complete_nodes,
    .run = run_drain,
};

static const struct command resume_command = {
    .name = "node resume",
    .usage = "NODE...",
    .help = "Put these nodes back into service (operators)",
    .options_size = sizeof(struct maintenance_options),
    .complete_operand = complete_nodes,
    .run = run_resume,
};

static const struct command *const actions[] = { &drain_command, &resume_command, &fence_command,
    &node_token_command, &node_forget_command, NULL };

const struct command command_node = {
    .name = "node",
    .usage = "drain|resume|fence|forget NODE... | token",
    .help = "Take nodes out of service and resume them; let machines join",
    .actions = actions,
    .list_command = "nodes",
};
