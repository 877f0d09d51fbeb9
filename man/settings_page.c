/* SPDX-License-Identifier: MIT */
/*
 * Writes the source (scdoc) of mgpu.yaml(5): standard input, with the list of all settings, from their
 * tables, in the place of its line @SETTINGS@. Runs at build time only.
 */
#include <stdio.h>
#include <string.h>

#include "controller/config/settings.h"

/* scdoc gives these a meaning. */
static void print_text(const char *text)
{
    for (; *text != '\0'; text++) {
        if (strchr("*_\\<>#~", *text) != NULL)
            (void)putchar('\\');
        (void)putchar(*text);
    }
}

static void print_setting(const struct option_row *row, bool is_live)
{
    if (row->help == NULL)
        return;
    (void)printf("*%s*: _", row->name);
    print_text(row->argument != NULL ? row->argument : "true|false");
    (void)printf("_\n\t");
    char first[2] = { row->help[0], '\0' };
    if (first[0] >= 'a' && first[0] <= 'z')
        first[0] = (char)(first[0] - 'a' + 'A');
    print_text(first);
    print_text(row->help + 1);
    (void)printf(".");
    if (row->preset != NULL) {
        (void)printf(" Default: *");
        print_text(row->preset);
        (void)printf("*.");
    }
    (void)printf("%s\n\n", is_live ? "" : " Takes effect at a restart.");
}

int main(void)
{
    char line[4096];
    while (fgets(line, sizeof(line), stdin) != NULL) {
        if (strcmp(line, "@SETTINGS@\n") != 0) {
            (void)fputs(line, stdout);
            continue;
        }
        for (const struct settings_table *table = settings_tables; table->rows != NULL; table++)
            for (const struct option_row *row = table->rows; row->name != NULL; row++)
                print_setting(row, table->is_live);
    }
    return ferror(stdin) != 0 || fflush(stdout) != 0;
}
