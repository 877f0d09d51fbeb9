/* SPDX-License-Identifier: MIT */
/*
 * The v1 hierarchies of this system, one per controller. All groups of an instance are children of one
 * directory, its base, so nothing needs to be enabled above them: BASE/mgpu.HASH.jJOB.ATTEMPT.
 */
#pragma once

#include <stdbool.h>

#include "agent/confine/limit_files.h"

/* Where the groups of the controller with this kernel name belong: below the cgroup delegated for jobs, else
 * below that of this process. Creates and removes a group there as a test. The caller frees *ret. */
int v1_find_base(const char *controller, const char *parent, const char *instance, enum limit_controller kind,
    char **ret, struct error *err);

/* True if groups can be created in this directory, which an earlier agent used. */
bool v1_is_base(const char *base, const char *instance, enum limit_controller kind, struct error *err);

/* Creates the attempt's group, or uses an existing one. Returns its directory, which the caller frees, or
 * NULL. */
char *v1_make(const char *base, const char *instance, const struct spool_id *id, struct error *err);

/* The group of a step below that of its attempt. The caller frees it. */
char *v1_step_path(const char *attempt, const struct spool_id *id);

/* Removes it, if there is one without processes. */
void v1_remove_step(const char *base, const char *instance, const struct spool_id *id);

/* Removes the attempt's group and those of its steps. 0 also if there is none. */
int v1_remove(const char *base, const char *instance, const struct spool_id *id);

typedef void v1_visit_fn(void *arg, const char *dir, const struct spool_id *id);

/* Visits the groups of this instance; step and rank are 0. */
void v1_list(const char *base, const char *instance, v1_visit_fn *visit, void *arg);

bool v1_is_populated(const char *dir);
