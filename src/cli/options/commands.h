/* SPDX-License-Identifier: MIT */
/* The verbs of the program this is linked into, found by name. */
#pragma once

#include "cli/options/call.h"

/* All verbs in the order of the help, terminated by NULL. Each program defines its own: mgpu's are in
 * cli/commands.c. */
extern const struct command *const commands[];

/* The verb with that name or alias, or NULL. */
const struct command *commands_find(const char *name);

/* Sets the error for an unknown verb, with the closest one as a hint. */
int commands_refuse(const char *name, struct error *err);
