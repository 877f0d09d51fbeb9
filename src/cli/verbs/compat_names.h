/* SPDX-License-Identifier: MIT */
/* The commands of other schedulers, by name. They are provided by mgpu-compat. */
#pragma once

#define COMPAT_PROGRAM       "mgpu-compat"
#define SLURM_COMPAT_PROGRAM "mgpu-slurm" // provides the commands of Slurm

struct compat_name {
    const char *name;  // "mgpu_srun"
    const char *help;  // one line
    const char *rival; // the owner of another program with that name, which must not be hidden, or NULL
};

/* Terminated by a NULL name. */
extern const struct compat_name compat_names[], slurm_names[];

/* The row for that name, which may be a path, or NULL. */
const struct compat_name *compat_name_find(const struct compat_name *names, const char *program);
