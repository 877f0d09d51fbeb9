/* SPDX-License-Identifier: MIT */
/* Help texts, generated from the table of verbs. */
#pragma once

#include <stdio.h>

#include "cli/options/call.h"

void help_print_command(const struct command *command, FILE *out);
