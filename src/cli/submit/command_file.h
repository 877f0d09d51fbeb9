/* SPDX-License-Identifier: MIT */
/* submit --file: one command per line, as it would be typed in a shell. */
#pragma once

#include "base/error.h"
#include "cli/options/call.h"
#include "cli/submit/plan.h"

#define COMMAND_FILE_MAX (16U << 20) // bytes

/* Adds a unit for each line that is neither blank nor a comment. "-" is standard input. Errors include file
 * and line. */
int command_file_read(struct call *call, const char *path, struct plan *plan, struct error *err);
