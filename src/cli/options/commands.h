/* SPDX-License-Identifier: MIT */
/* The verbs of the program that is linked: how they are found by name. */
#pragma once

#include "cli/options/call.h"

/* All verbs in the order of the help, ended by NULL. Each program defines its own: mgpu's are in
 * cli/commands.c. */
extern const struct command *const commands[];

/* The verb of that name or alias, or NULL. */
const struct command *commands_find(const char *name);

/* Refuses an unknown verb, with the nearest one. */
int commands_refuse(const char *name, struct error *err);
