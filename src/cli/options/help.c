/* SPDX-License-Identifier: MIT */
/* Formats the rows of commands.c and of the option tables; there is no other help text. */
#include "cli/options/help.h"

#include <string.h>

#include "base/memory.h"
#include "base/options.h"
#include "cli/options/talk.h"

#define NAME_WIDTH 11

void help_print_entry(const char *name, const char *help, FILE *out)
{
    size_t width = strlen(name) > NAME_WIDTH ? strlen(name) : NAME_WIDTH;
    (void)fprintf(out, "  %-*s ", (int)width, name);
    help_text_print(help, width + 3, NAME_WIDTH + 3, out);
}

/* A line that ends inside a sentence continues in the next one; after a full stop or a colon, a new line
 * begins, as written. */
static void print_detail(const char *detail, FILE *out)
{
    _cleanup_free_ char *text = xstrdup(detail);
    for (char *p = text; *p != '\0'; p++)
        if (*p == '\n' && p > text && strchr(".:\n", p[-1]) == NULL && strchr(" \n", p[1]) == NULL)
            *p = ' ';
    (void)fputc('\n', out);
    help_text_print(text, 0, 0, out);
}

void help_print_command(const struct command *command, FILE *out)
{
    _cleanup_free_ char *verb = talk_verb(command->name);
    _cleanup_free_ char *usage = xasprintf("usage: %s%s %s\n", talk_program(), verb, command->usage);
    _cleanup_free_ char *help = xasprintf("%s.", command->help);
    help_text_print(usage, 0, strlen("usage: "), out);
    (void)fputc('\n', out);
    help_text_print(help, 0, 0, out);
    if (command->detail != NULL)
        print_detail(command->detail, out);
    for (size_t i = 0; command->actions != NULL && command->actions[i] != NULL; i++) {
        const struct command *action = command->actions[i];
        _cleanup_free_ char *call =
            xasprintf("%s  mgpu %s %s", i == 0 ? "\n" : "", action->name, action->usage);
        _cleanup_free_ char *text = xasprintf("      %s", action->help);
        help_text_print(call, 0, 4, out);
        help_text_print(text, 0, 0, out);
    }
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
