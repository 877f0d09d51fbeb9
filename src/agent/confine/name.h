/* SPDX-License-Identifier: MIT */
/*
 * The name of an instance's cgroups, "mgpu.HASH". Instances in containers may have the same path of the run
 * directory and the same cgroups, but each has its own state directory (which is locked), so the hash
 * includes the identity of that directory. A file in the run directory stores the name.
 */
#pragma once

#include "base/error.h"

#define CONFINE_NAME_SIZE 24

/* To be called before any cgroup is created. A run directory used by an old version, which derived names from
 * the path alone, keeps that name. */
int confine_name_choose(const char *run_dir, const char *state_dir, struct error *err);

/* The stored name; without one, the name derived from the path. */
void confine_name_read(const char *run_dir, char name[CONFINE_NAME_SIZE]);
