/* SPDX-License-Identifier: MIT */
/*
 * The options of one command of Slurm as a table. What is read from the command line, from #SBATCH lines and
 * from SBATCH_ variables, --help, --usage and docs/slurm.md follow from the rows.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"

struct slurm_program;
struct slurm_option;

enum slurm_effect {
    SLURM_DONE,     // mgpu does it
    SLURM_RECORDED, // it is kept with the job and shown again, and changes nothing
    SLURM_ACCEPTED, // it makes no difference here
    SLURM_REFUSED,  // it would change the meaning and cannot be done
};

typedef int slurm_set_fn(
    void *target, const struct slurm_option *option, const char *value, struct error *err);

struct slurm_option {
    const char *name;
    int letter;           // 0: none
    const char *argument; // NULL: a flag; "[x]": may be left out
    unsigned programs;    // that have it
    enum slurm_effect effect;
    slurm_set_fn *set;    // of SLURM_DONE; value NULL: a flag, or left out
    const char *variable; // what follows SBATCH_, SRUN_ ... in the environment; NULL: none
    const char *help;     // of SLURM_REFUSED: why
    const char *key;      // for `set`: what it sets; of SLURM_RECORDED: the name of the note
};

/* Called for each option of SLURM_RECORDED. */
typedef void slurm_record_fn(void *target, const struct slurm_option *option, const char *value);

struct slurm_reading {
    const struct slurm_program *program;
    void *target;
    slurm_record_fn *record; // or NULL: of a command that records nothing
    const char *where;       // "script.sh: line 3", or NULL: the command line
};

/*
 * Reads options as getopt_long(3) does, whose sentences Slurm prints, too. With `stops` the first word that
 * is no option ends them. *ret_first is the first operand; operands come last in argv. -ENOENT: an unknown
 * option or one without its value, which has been printed.
 */
int slurm_options_read(const struct slurm_reading *reading, int argc, char **argv, bool stops, int *ret_first,
    struct error *err);

/* Sets the options that have a variable PREFIX_NAME in the environment. */
int slurm_options_from_environment(
    const struct slurm_reading *reading, const char *prefix, struct error *err);

/* The row of that name or letter that this program has, or NULL. */
const struct slurm_option *slurm_option_find(const struct slurm_program *program, const char *name);

/* --help, --usage and --version print and return true. */
bool slurm_options_answer(const struct slurm_program *program, int argc, char **argv);

/* "done", "recorded", ...: of the documentation. */
const char *slurm_effect_name(enum slurm_effect effect);
