/* SPDX-License-Identifier: MIT */
/*
 * Variables that describe the job, step or process in whose environment they are. A job submitted in a job is
 * no part of it, so they are left out of what it inherits: the client does so before it adds the variables
 * that the user gives (-e), the agent for clients that send their environment as it is.
 */
#pragma once

#include <stdbool.h>

#include "base/strings.h"

struct inherited_variable {
    const char *name; // with '*' at the end: all that begin so
    const char *with; // only if this one is set as well: the name is also used by others; NULL: always
    const char *what; // half a sentence for the documents
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
