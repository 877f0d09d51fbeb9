/* SPDX-License-Identifier: MIT */
/* The list of verbs for main() and the help. */
#include "sim/commands.h"

#include <stddef.h>

const struct sim_command *const sim_commands[] = { &command_run, &command_check, &command_bench,
    &command_pack, &command_journal, &command_tune, NULL };
