/* SPDX-License-Identifier: MIT */
/* mgpu help [COMMAND|aliases] */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/help.h"

static void print_aliases(void)
{
    for (size_t i = 0; commands[i] != NULL; i++)
        for (size_t a = 0; commands[i]->aliases[a] != NULL; a++)
            (void)printf("  %-10s %s\n", commands[i]->aliases[a], commands[i]->name);
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
    help_print_command(command, stdout);
    return EXIT_OK;
}

const struct command command_help = {
    .name = "help",
    .usage = "[COMMAND|aliases]",
    .help = "Explain a command",
    .run = run,
};
