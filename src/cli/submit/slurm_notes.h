/* SPDX-License-Identifier: MIT */
/* Notes about scripts written for Slurm that would behave differently here without an error. */
#pragma once

#include <jansson.h>

#include "cli/submit/script.h"

/* Prints, once per script, which Slurm variables it uses that are not set, and that it gets a GPU although it
 * requests none. `ask` is the complete request. */
void slurm_notes_print(const struct script *script, const json_t *ask);
