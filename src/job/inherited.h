/* SPDX-License-Identifier: MIT */
/*
 * Variables that describe the job, step or process that has them. A job submitted from within a job must not
 * inherit them: the client removes them before it adds the user's variables (-e), and the agent removes them
 * for clients that send their environment unchanged.
 */
#pragma once

#include <stdbool.h>

#include "base/strings.h"

struct inherited_variable {
    const char *name; // with '*' at the end: all with this prefix
    const char *with; // only if this one is set as well: others use the name, too; NULL: always
    const char *what; // half a sentence for the documentation
};

/* Ends with an entry without a name. */
extern const struct inherited_variable inherited_variables[];

/* "NAME=value" entries; the value of a variable, or NULL. */
typedef const char *inherited_get_fn(const void *environment, const char *name);

/* True if `environment` is that of a job of mgpu, or of a command of salloc. */
bool inherited_is_in_job(const void *environment, inherited_get_fn *get);

/* True if the variable describes that job. */
bool inherited_describes(const char *name, const void *environment, inherited_get_fn *get);

/* Removes these variables if `env` is the environment of a job. */
void inherited_drop(struct strings *env);
