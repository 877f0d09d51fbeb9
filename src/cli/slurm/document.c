/* SPDX-License-Identifier: MIT */
#include "cli/slurm/document.h"

#include <stdio.h>

#include "base/memory.h"
#include "cli/slurm/slurm.h"

/* Commands with the same table share a section, with a column that names them. */
static bool is_first_of_table(const struct slurm_program *program)
{
    for (const struct slurm_program *before = slurm_programs; before != program; before++)
        if (before->options == program->options)
            return false;
    return true;
}

static void print_programs(const struct slurm_program *program, unsigned bits)
{
    const char *separator = "";
    for (const struct slurm_program *row = program; row->name != NULL; row++)
        if (row->options == program->options && (row->bit & bits) != 0) {
            (void)printf("%s%s", separator, row->name);
            separator = ", ";
        }
}

static void print_cell(const char *text)
{
    for (const char *p = text; *p != '\0'; p++)
        (void)printf("%s%c", *p == '|' ? "\\" : "", *p);
}

static void print_option(const struct slurm_program *program, const struct slurm_option *option)
{
    bool is_optional = slurm_option_is_optional(option);
    (void)printf("| `");
    if (option->letter != 0)
        (void)printf("-%c`, `", option->letter);
    (void)printf("--%s", option->name);
    if (option->argument != NULL) {
        (void)printf("%s", is_optional ? "" : "=");
        print_cell(option->argument);
    }
    (void)printf("` | ");
    print_programs(program, option->programs);
    (void)printf(" | %s | ", slurm_effect_name(option->effect));
    print_cell(option->help);
    (void)printf(" |\n");
}

void slurm_document(void)
{
    for (const struct slurm_program *program = slurm_programs; program->name != NULL; program++) {
        if (program->options == NULL || !is_first_of_table(program))
            continue;
        (void)printf("### ");
        print_programs(program, ~0U);
        (void)printf("\n\n| option | of | here | |\n| --- | --- | --- | --- |\n");
        for (const struct slurm_option *row = program->options; row->name != NULL; row++)
            print_option(program, row);
        (void)printf("\n");
    }
}
