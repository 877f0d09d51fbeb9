/* SPDX-License-Identifier: MIT */
/* Prints a configuration file with every setting commented out, from the tables of settings; packages install
 * it. */
#include <stdio.h>
#include <string.h>

#include "controller/config/settings.h"

/* "[::]:9124" would be read as a list. */
static bool is_plain(const char *value)
{
    return value[strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/%-")] ==
               '\0' &&
           value[0] != '%';
}

static void print_row(const struct option_row *row)
{
    if (row->help == NULL)
        return;
    (void)printf("\n# %s\n", row->help);
    if (row->argument != NULL && row->preset != NULL)
        (void)printf("# %s\n", row->argument);
    const char *value = row->preset != NULL ? row->preset : row->argument != NULL ? row->argument : "true";
    const char *quote = row->preset == NULL || is_plain(value) ? "" : "\"";
    (void)printf("#%s: %s%s%s\n", row->name, quote, value, quote);
}

static void print_rows(bool is_live)
{
    for (const struct settings_table *table = settings_tables; table->rows != NULL; table++)
        for (const struct option_row *row = table->rows; row->name != NULL && table->is_live == is_live;
             row++)
            print_row(row);
}

void settings_print_example(void)
{
    (void)printf(
        "# Settings of mgpud, see mgpud(8). Each line below shows a default, or what can be given; remove "
        "the '#'\n"
        "# at its beginning to change it. 'systemctl reload mgpud' reads this file again; it ends no job.\n"
        "# 'mgpud --check-config' finds mistakes, 'mgpu config list --origin' shows what is in force.\n"
        "\n# --- These take effect at a reload ---\n");
    print_rows(true);
    (void)printf("\n# Users and groups with their own limits or shares\n"
                 "#users:\n"
                 "#  ada: { max-gpus: 8, shares: 2 }\n"
                 "#groups:\n"
                 "#  students: { max-jobs: 2, department: physics }\n"
                 "#departments:\n"
                 "#  physics: { shares: 2 }\n"
                 "\n# Partitions: sets of nodes, for mgpu submit -P\n"
                 "#partitions:\n"
                 "#  debug: { nodes: \"gpu[1-2]\", max-time: 1h, max-gpus: 2, priority: 100 }\n"
                 "#  course: { nodes: gpu3, users: [bo, \"group:students\"] }\n"
                 "\n# Roles: admin, operator, user, viewer; root is always admin\n"
                 "#roles:\n"
                 "#  admin: [ada]\n"
                 "#  operator: [bo, \"group:staff\"]\n"
                 "#  others: user\n");
    (void)printf("\n# --- These take effect at a restart of mgpud, which ends no job either ---\n");
    print_rows(false);
}
