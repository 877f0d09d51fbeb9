/* SPDX-License-Identifier: MIT */
/*
 * The commands of Slurm, over the same API: mgpu-slurm is all of them, by the name that it is called by. They
 * decide nothing. What clients of Slurm parse is printed to the letter: docs/slurm.md.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "cli/options/call.h"
#include "cli/slurm/option.h"

#define SLURM_PROGRAM     "mgpu-slurm"
#define SLURM_VERSION     "22.05.8" // whose words and forms these are
#define SLURM_MIN_JOB_AGE 300       // seconds for which ended jobs stay in squeue
#define SLURM_PARTITION   "gpu"     // of all nodes

struct slurm_program {
    const char *name;
    unsigned bit;                       // in the rows of its options
    const char *usage;                  // what follows the name
    const char *help;                   // one line
    const struct slurm_option *options; // ended by a NULL name; NULL: none
    /* The exit status. `argv` begins with the name. */
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

/* Ended by a NULL name. */
extern const struct slurm_program slurm_programs[];

/* The program of that name or path, or NULL. */
const struct slurm_program *slurm_program_find(const char *name);

/* "sbatch: error: sentence" and the hint; returns 1. */
int slurm_fail(const struct slurm_program *program, const struct error *err);

/* The same for a request that mgpud refused or did not hear: "squeue: error: WHAT: ...". Where mgpud does not
 * answer it has the words that clients look for: "slurm_load_jobs error: Unable to contact slurm controller".
 */
int slurm_fail_load(const char *what, const struct error *err);

/* True when that is why. */
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
