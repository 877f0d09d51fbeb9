/* SPDX-License-Identifier: MIT */
/* Commands and options of other programs that users type from habit, and their equivalents here. */
#pragma once

#include "base/options.h"

struct foreign_command {
    const char *name;
    const char *here; // what to type instead
};

/* The last row has name NULL. */
extern const struct foreign_command foreign_commands[];

/* For options_know(); the last row has name NULL. */
extern const struct option_meaning foreign_options[];

/* What to type instead of this command, or NULL if no other program's is known by that name. */
const char *foreign_command_here(const char *name);
