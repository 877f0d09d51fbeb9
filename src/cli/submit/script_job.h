/* SPDX-License-Identifier: MIT */
/* The job of a command that names a script with option lines: as the operand of submit, in a list, in a job
 * file. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/strings.h"
#include "cli/options/call.h"
#include "cli/submit/script.h"

/*
 * True if the first word of a shell command names a script with option lines, and the command needs no shell;
 * `words` are then its words. The script is to be cleared in any case; its path is one of the words.
 */
bool script_job_open(struct script *script, const char *command, struct strings *words);

/*
 * The request that runs the script with these words, the first of which is its path. Its option lines have
 * been applied to the options of the call. Warns and notes as submit does. The caller releases it.
 */
int script_job_make(struct call *call, struct script *script, int argc, char **argv, unsigned *left_out,
    json_t **ret, struct error *err);
