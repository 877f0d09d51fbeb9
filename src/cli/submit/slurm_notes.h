/* SPDX-License-Identifier: MIT */
/* What a script written for Slurm would do differently here without an error. */
#pragma once

#include <jansson.h>

#include "cli/submit/script.h"

/* Why an option of #SBATCH has no effect, for those that change what runs; NULL: it changes nothing here. */
const char *slurm_option_note(const char *option);

/* Tells, once for each script, which variables of Slurm it uses that are not set, and that it gets a GPU
 * although it asks for none. `ask` is what was asked for altogether. */
void slurm_notes_tell(const struct script *script, const json_t *ask);
