/* SPDX-License-Identifier: MIT */
/* The commands of other small schedulers, by name. The program that is all of them is mgpu-compat. */
#pragma once

#define COMPAT_PROGRAM       "mgpu-compat"
#define SLURM_COMPAT_PROGRAM "mgpu-slurm" // the commands of Slurm

struct compat_name {
    const char *name;  // "mgpu_srun"
    const char *help;  // one line
    const char *rival; // another program of that name that must stay the one that is found, or NULL: what it
                       // belongs to
};

/* Ended by a NULL name. */
extern const struct compat_name compat_names[], slurm_names[];

/* The row of that name, which may be a path, or NULL. */
const struct compat_name *compat_name_find(const struct compat_name *names, const char *program);
