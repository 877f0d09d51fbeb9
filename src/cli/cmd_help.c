/* SPDX-License-Identifier: MIT */
/* mgpu help [COMMAND|aliases] */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/help.h"

static void print_aliases_of(const struct command *command)
{
    for (size_t i = 0; command->aliases[i] != NULL; i++)
        (void)printf("  %-10s %s\n", command->aliases[i], command->name);
    for (size_t i = 0; command->actions != NULL && command->actions[i] != NULL; i++)
        print_aliases_of(command->actions[i]);
}

static void print_aliases(void)
{
    for (size_t i = 0; commands[i] != NULL; i++)
        print_aliases_of(commands[i]);
}

static int run(struct call *call, int argc, char **argv, struct error *err)
{
    (void)call;
    if (argc == 0) {
        help_print_all(stdout);
        return EXIT_OK;
    }
    if (strcmp(argv[0], "aliases") == 0) {
        print_aliases();
        return EXIT_OK;
    }
    const struct command *command = commands_find(argv[0]);
    if (command == NULL)
        return commands_refuse(argv[0], err);
    const struct command *action = argc > 1 ? call_find_action(command, argv[1]) : NULL;
    help_print_command(action != NULL ? action : command, stdout);
    return EXIT_OK;
}

const struct command command_help = {
    .name = "help",
    .usage = "[COMMAND [ACTION]|aliases]",
    .help = "Explain a command",
    .run = run,
};
