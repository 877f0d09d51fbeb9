/* SPDX-License-Identifier: MIT */
/*
 * The name of an instance's cgroups, "mgpu.HASH". Instances in containers may have the same run directory by
 * path and the same cgroups; a state directory is one instance's alone (it is locked), so the name is made of
 * which directory that is as well. A file of the run directory keeps it.
 */
#pragma once

#include "base/error.h"

#define CONFINE_NAME_SIZE 24

/* To be called before cgroups are made. A run directory in which a version made some that named them by the
 * path alone keeps that name. */
int confine_name_choose(const char *run_dir, const char *state_dir, struct error *err);

/* The name that was chosen; without one, that of the path alone. */
void confine_name_read(const char *run_dir, char name[CONFINE_NAME_SIZE]);
