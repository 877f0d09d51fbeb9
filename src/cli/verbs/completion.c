/* SPDX-License-Identifier: MIT */
/* mgpu completion SHELL, and the hidden __complete that its script calls at each key press. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/strings.h"
#include "cli/api/exit_code.h"
#include "cli/complete/complete.h"
#include "cli/complete/scripts.h"
#include "cli/verbs/verbs.h"

static int refuse_shell(const char *name, struct error *err)
{
    _cleanup_free_ char *shown = text_escape(name, 60);
    if (shown[0] == '\0')
        (void)error_set(err, -EINVAL, "no shell given: use bash, zsh or fish");
    else
        (void)error_set(err, -EINVAL, "unknown shell '%s': use bash, zsh or fish", shown);
    return error_hint(err, "%s", completion_scripts[0].try);
}

static int run_completion(struct call *call, int argc, char **argv, struct error *err)
{
    for (const struct completion_script *script = completion_scripts; argc == 1 && script->shell != NULL;
         script++)
        if (strcmp(script->shell, argv[0]) == 0) {
            (void)fputs(script->text, stdout);
            return EXIT_OK;
        }
    return refuse_shell(argc == 0 ? "" : argv[0], err);
}

static void complete_shells(const struct completion *completion)
{
    for (const struct completion_script *script = completion_scripts; script->shell != NULL; script++)
        complete_add(completion, script->shell, script->try);
}

static int run_complete(struct call *call, int argc, char **argv, struct error *err)
{
    complete_line(&call->client, argc, argv, stdout);
    return EXIT_OK;
}

const struct command command_completion = {
    .name = "completion",
    .usage = "bash|zsh|fish",
    .help = "Print a shell completion script",
    .detail = "To try it:  source <(mgpu completion bash)   mgpu completion fish | source",
    .complete_operand = complete_shells,
    .run = run_completion,
};

const struct command command_complete = {
    .name = "__complete",
    .usage = "-- WORD...",
    .help = "Print possible completions",
    .is_hidden = true,
    .is_silent = true,
    .stops_at_operand = true,
    .run = run_complete,
};
