/* SPDX-License-Identifier: MIT */
/* submit --file: one command a line, as it would be typed at a shell. */
#pragma once

#include "base/error.h"
#include "cli/options/call.h"
#include "cli/submit/plan.h"

#define COMMAND_FILE_MAX (16U << 20) // bytes

/* Adds a unit for each line that is neither blank nor a comment. "-" is standard input. The error has file
 * and line. */
int command_file_read(struct call *call, const char *path, struct plan *plan, struct error *err);
