/* SPDX-License-Identifier: MIT */
/*
 * mgpu completion bash, and the hidden __complete it calls: the words come from the tables at the moment of
 * the key press, so that the script never falls behind the program.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/field.h"
#include "cli/selector.h"

static const char bash_script[] =
    "# bash completion for mgpu; put it into /usr/share/bash-completion/completions/mgpu\n"
    "_mgpu()\n"
    "{\n"
    "    local word=${COMP_WORDS[COMP_CWORD]}\n"
    "    COMPREPLY=()\n"
    "    while IFS= read -r candidate; do\n"
    "        [[ $candidate == \"$word\"* ]] && COMPREPLY+=(\"$candidate\")\n"
    "    done < <(mgpu __complete \"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null)\n"
    "}\n"
    "complete -o default -F _mgpu mgpu\n";

static int run_completion(struct call *call, int argc, char **argv, struct error *err)
{
    (void)call;
    if (argc != 1 || strcmp(argv[0], "bash") != 0) {
        (void)error_set(err, -EINVAL, "which shell? Only bash is known");
        return error_hint(err, "source <(mgpu completion bash)");
    }
    (void)fputs(bash_script, stdout);
    return EXIT_OK;
}

static void print_options(const struct option_row *table)
{
    for (const struct option_row *row = table; row->name != NULL; row++)
        if (row->help != NULL)
            (void)printf("--%s\n", row->name);
}

static void print_verbs(void)
{
    for (size_t i = 0; commands[i] != NULL; i++)
        if (!commands[i]->is_hidden)
            (void)printf("%s\n", commands[i]->name);
}

/* My jobs; silent when nobody answers. */
static void print_jobs(struct call *call)
{
    _cleanup_buffer_ struct buffer path = { 0 };
    _cleanup_json_ json_t *answer = NULL;
    _cleanup_free_ char *user = selector_own_user();
    size_t index = 0;
    json_t *job = NULL;
    buffer_append_text(&path, API_PATH "/jobs?user=");
    http_append_encoded(&path, user);
    if (client_get(&call->client, buffer_text(&path), &answer, NULL) < 0)
        return;
    json_array_foreach(json_object_get(answer, "jobs"), index, job)(void)
        printf("%" PRId64 "\n", field_integer(job, "id", 0));
}

static void print_actions(const struct command *command)
{
    for (size_t i = 0; command->actions[i] != NULL; i++)
        (void)printf("%s\n", strchr(command->actions[i]->name, ' ') + 1);
}

/* `argv` is what was typed after mgpu; the last word is the one to complete. */
static int run_complete(struct call *call, int argc, char **argv, struct error *err)
{
    const struct command *command = argc > 1 ? commands_find(argv[0]) : NULL;
    const struct command *action = command != NULL && argc > 2 ? call_find_action(command, argv[1]) : NULL;
    const char *word = argc > 0 ? argv[argc - 1] : "";
    (void)err;
    if (command == NULL) {
        print_verbs();
        return EXIT_OK;
    }
    command = action != NULL ? action : command;
    if (word[0] == '-') {
        for (size_t i = 0; i < COMMAND_TABLES && command->tables[i] != NULL; i++)
            print_options(command->tables[i]);
        print_options(call_global_rows);
    } else if (command == &command_help) {
        print_verbs();
    } else if (command->actions != NULL) {
        print_actions(command);
    } else if (command->print_words != NULL && argc > 2) {
        command->print_words(stdout);
    } else if (command->takes_jobs) {
        print_jobs(call);
    }
    return EXIT_OK;
}

const struct command command_completion = {
    .name = "completion",
    .usage = "bash",
    .help = "Print a script that makes the shell complete mgpu's words",
    .run = run_completion,
};

const struct command command_complete = {
    .name = "__complete",
    .usage = "WORD...",
    .help = "Print the words that may come next",
    .is_hidden = true,
    .stops_at_operand = true,
    .run = run_complete,
};
