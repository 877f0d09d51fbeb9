/* SPDX-License-Identifier: MIT */
/* The #SBATCH lines of a script, for sbatch and for `mgpu submit`. */
#pragma once

#include "base/error.h"
#include "base/strings.h"
#include "cli/submit/slurm_option.h"

#define SLURM_LINE_MARK "#SBATCH"

/* Sets the options of the #SBATCH lines of `text`, which end at the first command. `name` is that of the
 * script in messages. `kept` owns the texts of the options. */
int slurm_lines_read(const char *text, const char *name, const struct slurm_reading *reading,
    struct strings *kept, struct error *err);
