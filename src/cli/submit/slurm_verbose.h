/* SPDX-License-Identifier: MIT */
/* What -v of squeue and sinfo prints first: the options, in Slurm's form. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/strings.h"

struct slurm_option;

enum slurm_verbose_kind { SLURM_SAY_FLAG, SLURM_SAY_COUNT, SLURM_SAY_TEXT };

/* A line "KEY = VALUE". */
struct slurm_verbose {
    const char *key;
    const char *option; // name in the options that were given; NULL: never given
    enum slurm_verbose_kind kind;
    const char *none; // of SLURM_SAY_TEXT: the value without the option
};

/* Adds an option that was given to `given`; -v is counted. `value` NULL: a flag. */
void slurm_verbose_note(struct strings *given, const struct slurm_option *option, const char *value);

/* How often -v was given. */
int slurm_verbose_level(const struct strings *given);

/* The lines of the two programs, up to one with a NULL key. */
extern const struct slurm_verbose slurm_verbose_squeue[], slurm_verbose_sinfo[];

/* With -v, prints the lines between rules on standard output; false: without it. */
bool slurm_verbose_print(const struct slurm_verbose *lines, const struct strings *given);

/* With -v, prints how many jobs there are now. */
void slurm_verbose_count(const struct strings *given, size_t count);
