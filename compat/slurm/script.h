/* SPDX-License-Identifier: MIT */
/* The script of a batch job: its text, checked with Slurm's messages. */
#pragma once

#include "base/error.h"

struct slurm_script {
    char *path; // absolute; for standard input, a name in the current directory
    char *text;
    char *name; // job name, unless specified
};

/* Reads the file, which is also searched for in PATH; NULL or "-": standard input. */
int slurm_script_read(struct slurm_script *script, const char *file, struct error *err);

/* Creates a script that runs one command line. */
void slurm_script_wrap(struct slurm_script *script, const char *command);

/* Adds the text of the file behind the first line of the script. */
int slurm_script_insert(struct slurm_script *script, const char *file, struct error *err);

void slurm_script_clear(struct slurm_script *script);
#define _cleanup_slurm_script_ _cleanup_(slurm_script_clear)
