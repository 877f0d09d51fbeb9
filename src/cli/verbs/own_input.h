/* SPDX-License-Identifier: MIT */
/* Standard input of a command that submits a job and does not wait for it. */
#pragma once

#include "base/error.h"

/* -EINVAL: `--input -` needs a command that waits. */
int submit_refuse_input(struct error *err);

/* Prints that a file given as standard input is not passed on. Nothing if it has been read in part: a loop of
 * the shell reads it. */
void submit_note_input(void);
