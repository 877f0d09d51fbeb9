/* SPDX-License-Identifier: MIT */
/* The verbs of the program this is linked into, found by name. */
#pragma once

#include "cli/options/call.h"

/* All verbs in the order of the help, terminated by NULL. Each program defines its own: mgpu's are in
 * cli/commands.c. */
extern const struct command *const commands[];

/* Successive verbs with one purpose: each group ends where the next one begins. Terminated by a row without a
 * title. */
struct command_group {
    const char *title;
    const struct command *first;
};

extern const struct command_group command_groups[];

/* The verb with that name or alias, or NULL. */
const struct command *commands_find(const char *name);

/* Sets the error for an unknown verb, with the closest one as a hint. */
int commands_refuse(const char *name, struct error *err);
