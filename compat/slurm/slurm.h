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
#include "cli/submit/slurm_option.h"

#define SLURM_PROGRAM     "mgpu-slurm"
#define SLURM_MIN_JOB_AGE 300 // seconds for which squeue shows ended jobs

/* Terminated by a NULL name. */
extern const struct slurm_program slurm_programs[];

/* The program with that name or path, or NULL. */
const struct slurm_program *slurm_program_find(const char *name);

/* Prints "sbatch: error: sentence", or in the form specified by enum slurm_words, and "sbatch: note: hint".
 * Returns 1, or SLURM_EXIT_ERROR for commands that start something, if it is set. */
int slurm_fail(const struct slurm_program *program, const struct error *err);

/* Puts the failed operation ("Batch job submission failed") before the sentence, unless that stands alone;
 * returns the error's code. */
int slurm_wrap(struct error *err, const char *what);

/* Refuses operands of sacct, which takes none: prints them, and returns -EINVAL. */
int slurm_check_operands(int argc, char **argv, int first, struct error *err);

/* The same for a request that failed: "squeue: error: WHAT: ...". If mgpud does not answer, prints the
 * message that clients look for: "slurm_load_jobs error: Unable to contact slurm controller". */
int slurm_fail_load(const char *what, const struct error *err);

/* Waits for answers of mgpud as long as Slurm does for those of slurmctld: 10 s, or SLURM_MSG_TIMEOUT. */
void slurm_message_timeout(void);

/* Adopts SLURM_UMASK, if set: files of the job are created with it. */
void slurm_umask(void);

/* Slurm's message for a controller that is unreachable, or did not answer in time; NULL: it is another
 * error. */
const char *slurm_away_words(const struct error *err);

int slurm_run_sbatch(const struct slurm_program *program, int argc, char **argv);
int slurm_run_srun(const struct slurm_program *program, int argc, char **argv);
int slurm_run_salloc(const struct slurm_program *program, int argc, char **argv);
int slurm_run_squeue(const struct slurm_program *program, int argc, char **argv);
int slurm_run_sacct(const struct slurm_program *program, int argc, char **argv);
int slurm_run_sinfo(const struct slurm_program *program, int argc, char **argv);
int slurm_run_scancel(const struct slurm_program *program, int argc, char **argv);
int slurm_run_scontrol(const struct slurm_program *program, int argc, char **argv);
int slurm_run_sacctmgr(const struct slurm_program *program, int argc, char **argv);
int slurm_run_seff(const struct slurm_program *program, int argc, char **argv);
int slurm_run_sreport(const struct slurm_program *program, int argc, char **argv);
int slurm_run_restd(const struct slurm_program *program, int argc, char **argv);
int slurm_run_other(const struct slurm_program *program, int argc, char **argv);

/* `mgpu-slurm tables`: prints the tables of docs/slurm.md from those that the commands use. */
void slurm_document(void);
