/* SPDX-License-Identifier: MIT */
/* What all verbs say alike: errors, help, and where help begins. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/options.h"
#include "sim/commands.h"

/* "mgpu-sim: sentence" and the hint, on standard error. Returns the exit status for it. */
int talk_error(const struct error *err, int status);
/* Usage, summary and options of a verb. */
void talk_help(const struct sim_command *command, const struct option_row *rows);
/* Options and operands of a verb; *ret_first is the first operand. -EINVAL with the operands' number wrong.
 */
int talk_parse(const struct sim_command *command, int argc, char **argv, const struct option_row *rows,
    void *target, int least, int most, int *ret_first, struct error *err);
