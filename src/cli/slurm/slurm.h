/* SPDX-License-Identifier: MIT */
/*
 * The commands of Slurm for the same API: mgpu-slurm provides all of them, depending on the name it is called
 * by. They make no decisions. Output that clients of Slurm parse is reproduced exactly: docs/slurm.md.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "cli/options/call.h"
#include "cli/slurm/option.h"

#define SLURM_PROGRAM     "mgpu-slurm"
#define SLURM_VERSION     "22.05.8" // the version whose messages and formats are used
#define SLURM_MIN_JOB_AGE 300       // seconds for which ended jobs stay in squeue

struct slurm_program {
    const char *name;
    unsigned bit;                       // in the rows of its options
    const char *usage;                  // text after the name
    const char *help;                   // one line
    const struct slurm_option *options; // terminated by a NULL name; NULL: none
    /* Returns the exit status. `argv` begins with the name. */
    int (*run)(const struct slurm_program *program, int argc, char **argv);
};

enum {
    SLURM_SBATCH = 1,
    SLURM_SRUN = 2,
    SLURM_SALLOC = 4,
    SLURM_SQUEUE = 8,
    SLURM_SACCT = 16,
    SLURM_SINFO = 32,
    SLURM_SCANCEL = 64,
    SLURM_SCONTROL = 128,
    SLURM_OTHER = 256,
};
#define SLURM_SUBMITS (SLURM_SBATCH | SLURM_SRUN | SLURM_SALLOC)

/* Terminated by a NULL name. */
extern const struct slurm_program slurm_programs[];

/* The program with that name or path, or NULL. */
const struct slurm_program *slurm_program_find(const char *name);

/* Prints "sbatch: error: sentence" and the hint; returns 1. */
int slurm_fail(const struct slurm_program *program, const struct error *err);

/* The same for a request that failed: "squeue: error: WHAT: ...". If mgpud does not answer, prints the
 * message that clients look for: "slurm_load_jobs error: Unable to contact slurm controller". */
int slurm_fail_load(const char *what, const struct error *err);

/* True if the error means that mgpud does not answer. */
bool slurm_is_away(const struct error *err);

int slurm_run_sbatch(const struct slurm_program *program, int argc, char **argv);
int slurm_run_srun(const struct slurm_program *program, int argc, char **argv);
int slurm_run_salloc(const struct slurm_program *program, int argc, char **argv);
int slurm_run_squeue(const struct slurm_program *program, int argc, char **argv);
int slurm_run_sacct(const struct slurm_program *program, int argc, char **argv);
int slurm_run_sinfo(const struct slurm_program *program, int argc, char **argv);
int slurm_run_scancel(const struct slurm_program *program, int argc, char **argv);
int slurm_run_scontrol(const struct slurm_program *program, int argc, char **argv);
int slurm_run_other(const struct slurm_program *program, int argc, char **argv);
