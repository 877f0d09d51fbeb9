/* SPDX-License-Identifier: MIT */
/* The script of a batch job: its text, checked in Slurm's words, and its #SBATCH lines. */
#pragma once

#include "base/error.h"
#include "base/strings.h"
#include "cli/slurm/option.h"

struct slurm_script {
    char *path; // absolute; of standard input a name in the current directory
    char *text;
    char *name; // of the job when it has no other
};

/* Reads the file, which is looked for in PATH too; NULL or "-": standard input. */
int slurm_script_read(struct slurm_script *script, const char *file, struct error *err);

/* The script that runs one command line. */
void slurm_script_wrap(struct slurm_script *script, const char *command);

/* Sets the options of its #SBATCH lines, which end at the first command. Their texts stay with `kept`. */
int slurm_script_options(const struct slurm_script *script, const struct slurm_reading *reading,
    struct strings *kept, struct error *err);

void slurm_script_clear(struct slurm_script *script);
#define _cleanup_slurm_script_ _cleanup_(slurm_script_clear)
