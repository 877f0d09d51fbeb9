/* SPDX-License-Identifier: MIT */
/*
 * mgpu help [COMMAND [ACTION]|TOPIC]; for an unknown word, suggests the closest command or topic. On a
 * terminal, a command's man page is shown if installed, otherwise its tables.
 */
#include <errno.h>
#include <stdio.h>

#include "base/buffer.h"
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

/* --- the first page: it fits a terminal of 80 columns and 24 lines --- */

#define CALL_WIDTH  34
#define TITLE_WIDTH 16

static const struct {
    const char *call, *help;
} first_calls[] = {
    { "mgpu run -g 1 -- python train.py", "wait for a GPU, and run a command on it" },
    { "mgpu submit -g 2 -t 4h train.sh", "queue a script for two GPUs, and return" },
    { "mgpu ps", "list your jobs; -a lists all users' jobs" },
    { "mgpu why JOB", "show why a job waits, and when it starts" },
    { "mgpu logs -f JOB", "follow the output of a job" },
    { "mgpu cancel JOB", "end a job, or remove it from the queue" },
    { "mgpu gpus", "show who uses the GPUs; mgpu top: all of it" },
};

static void print_first_calls(FILE *out)
{
    (void)fputs("Begin with:\n", out);
    for (size_t i = 0; i < sizeof(first_calls) / sizeof(first_calls[0]); i++)
        (void)fprintf(out, "  %-*s %s\n", CALL_WIDTH, first_calls[i].call, first_calls[i].help);
}

/* The verbs from `first` on, up to the first one of the next group. */
static void print_names(const struct command_group *group, FILE *out)
{
    _cleanup_buffer_ struct buffer names = { 0 };
    bool is_here = false;
    for (size_t i = 0; commands[i] != NULL; i++) {
        is_here = commands[i] == group->first || (is_here && commands[i] != group[1].first);
        if (is_here && !commands[i]->is_hidden)
            buffer_printf(&names, " %s", commands[i]->name);
    }
    (void)fprintf(out, "  %-*s ", TITLE_WIDTH, group->title);
    help_text_print(buffer_text(&names) + 1, TITLE_WIDTH + 3, TITLE_WIDTH + 3, out);
}

static void print_purpose(FILE *out)
{
    (void)fputs("usage: mgpu [OPTIONS] COMMAND ...\n"
                "\n"
                "Shares the GPUs of this machine between its users.\n"
                "\n",
        out);
}

void help_print_first(FILE *out)
{
    print_purpose(out);
    print_first_calls(out);
    (void)fputc('\n', out);
    for (const struct command_group *group = command_groups; group->title != NULL; group++)
        print_names(group, out);
    (void)fputs("\nmgpu help describes all of them; mgpu COMMAND --help lists the options of one.\n", out);
}

/* --- all commands and topics --- */

static void print_groups(FILE *out)
{
    const struct command_group *group = command_groups;
    for (size_t i = 0; commands[i] != NULL; i++) {
        if (commands[i] == group->first)
            (void)fprintf(out, "%s%s:\n", group > command_groups ? "\n" : "", group->title);
        group += commands[i] == group->first;
        if (!commands[i]->is_hidden)
            help_print_entry(commands[i]->name, commands[i]->help, out);
    }
}

/* A terminal shows the end: it has what a newcomer needs. */
static void print_all(FILE *out)
{
    print_purpose(out);
    print_groups(out);
    (void)fputs("\nOptions of every command:\n", out);
    options_print(call_global_rows, out);
    (void)fputs("\nTopics:\n", out);
    for (const struct topic *topic = topics; topic->name != NULL; topic++)
        help_print_entry(topic->name, topic->help, out);
    (void)fputc('\n', out);
    print_first_calls(out);
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
