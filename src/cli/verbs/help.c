/* SPDX-License-Identifier: MIT */
/*
 * mgpu help [COMMAND [ACTION]|TOPIC]; for an unknown word, suggests the closest command or topic. On a
 * terminal, a command's man page is shown if installed, otherwise its tables.
 */
#include <errno.h>
#include <stdio.h>

#include "base/memory.h"
#include "base/strings.h"
#include "cli/api/exit_code.h"
#include "cli/complete/complete.h"
#include "cli/options/commands.h"
#include "cli/options/foreign_words.h"
#include "cli/options/help.h"
#include "cli/show/man_page.h"
#include "cli/verbs/topics.h"
#include "cli/verbs/verbs.h"

static int refuse(const char *word, struct error *err)
{
    _cleanup_free_ const char **names = xcalloc(1, sizeof(char *));
    size_t count = 0;
    for (const struct topic *topic = topics; topic->name != NULL; topic++) {
        names = xreallocarray(names, count + 2, sizeof(char *));
        names[count++] = topic->name;
        names[count] = NULL;
    }
    for (size_t i = 0; commands[i] != NULL; i++) {
        names = xreallocarray(names, count + 2, sizeof(char *));
        names[count] = commands[i]->is_hidden ? NULL : commands[i]->name;
        count += commands[i]->is_hidden ? 0 : 1;
        names[count] = NULL;
    }
    _cleanup_free_ char *shown = text_escape(word, 60);
    const char *here = foreign_command_here(word);
    if (here != NULL) {
        (void)error_set(err, -EINVAL, "unknown command or topic '%s'", shown);
        return error_hint(err, "here: %s", here);
    }
    const char *near = text_nearest(word, names);
    if (near != NULL)
        return error_set(err, -EINVAL, "unknown command or topic '%s'. Did you mean '%s'?", shown, near);
    (void)error_set(err, -EINVAL, "unknown command or topic '%s'", shown);
    return error_hint(err, "all of them: mgpu help");
}

static void print_all(FILE *out)
{
    (void)fputs("usage: mgpu [OPTIONS] COMMAND ...\n"
                "\n"
                "Shares the GPUs of this machine between its users.\n"
                "\n",
        out);
    for (size_t i = 0; commands[i] != NULL; i++)
        if (!commands[i]->is_hidden)
            help_print_entry(commands[i]->name, commands[i]->help, out);
    (void)fputs("\nOptions of every command:\n", out);
    options_print(call_global_rows, out);
    (void)fputs("\nTopics:\n", out);
    for (const struct topic *topic = topics; topic->name != NULL; topic++)
        help_print_entry(topic->name, topic->help, out);
    (void)fputs("\nMore: mgpu help COMMAND, mgpu help TOPIC, man mgpu, man mgpu-COMMAND\n", out);
}

static int run(struct call *call, int argc, char **argv, struct error *err)
{
    if (argc == 0) {
        print_all(stdout);
        return EXIT_OK;
    }
    const struct command *command = commands_find(argv[0]);
    const struct command *action = command != NULL && argc > 1 ? call_find_action(command, argv[1]) : NULL;
    const struct topic *topic = topics_find(argv[0]);
    if (argc > (action != NULL ? 2 : 1))
        return error_set(err, -EINVAL, "'%.60s' is not expected here", argv[action != NULL ? 2 : 1]);
    if (command == NULL && topic == NULL)
        return refuse(argv[0], err);
    if (command != NULL && action == NULL && man_page_show(command))
        return EXIT_OK;
    if (command != NULL)
        help_print_command(action != NULL ? action : command, stdout);
    else
        topics_print(topic, stdout);
    return EXIT_OK;
}

/* Completes the actions of a verb after its name. */
static void complete_operand(const struct completion *completion)
{
    struct completion after = *completion;
    after.command = completion->first == NULL ? NULL : commands_find(completion->first);
    if (after.command != NULL && after.command->actions != NULL && completion->operands == 1)
        complete_actions(&after);
    if (completion->operands > 0)
        return;
    complete_verbs(completion);
    for (const struct topic *topic = topics; topic->name != NULL; topic++)
        complete_add(completion, topic->name, topic->help);
}

const struct command command_help = {
    .name = "help",
    .usage = "[COMMAND [ACTION]|TOPIC]",
    .help = "Explain a command or a topic",
    .complete_operand = complete_operand,
    .run = run,
};
