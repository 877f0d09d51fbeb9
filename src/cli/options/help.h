/* SPDX-License-Identifier: MIT */
/* Help texts, generated from the table of verbs. */
#pragma once

#include <stdio.h>

#include "cli/options/call.h"

/* A line of a list: a name and its description. */
void help_print_entry(const char *name, const char *help, FILE *out);

void help_print_command(const struct command *command, FILE *out);
