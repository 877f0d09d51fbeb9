/* SPDX-License-Identifier: MIT */
/* Formats the rows of commands.c and of the option tables; there is no other help text. */
#include "cli/options/help.h"

#include <string.h>

#include "base/memory.h"
#include "cli/options/talk.h"

void help_print_command(const struct command *command, FILE *out)
{
    _cleanup_free_ char *verb = talk_verb(command->name);
    (void)fprintf(out, "usage: %s%s %s\n\n%s.\n", talk_program(), verb, command->usage, command->help);
    if (command->detail != NULL)
        (void)fprintf(out, "\n%s\n", command->detail);
    for (size_t i = 0; command->actions != NULL && command->actions[i] != NULL; i++)
        (void)fprintf(out, "%s  mgpu %s %s\n      %s\n", i == 0 ? "\n" : "", command->actions[i]->name,
            command->actions[i]->usage, command->actions[i]->help);
    if (command->print_more != NULL)
        command->print_more(out);
    const struct option_row *tables[COMMAND_TABLES + 1] = { NULL };
    memcpy(tables, command->tables, sizeof(command->tables));
    if (tables[0] != NULL)
        (void)fputs("\nOptions:\n", out);
    options_print_all(tables, out);
    (void)fputs("\nOptions of every command:\n", out);
    options_print(call_global_rows, out);
}
