/* SPDX-License-Identifier: MIT */
/* The state of limits.c, for the limits of single steps. */
#pragma once

#include "agent/confine/cpu_pool.h"
#include "agent/confine/limit_files.h"
#include "agent/confine/limits.h"
#include "agent/confine/name.h"

#define LIMITS_MEMS_SIZE 1024

/* The kernel's names. */
extern const char *const limits_controllers[LIMIT_CONTROLLERS];

struct limits_place {
    enum limit_hierarchy hierarchy;
    char *base;      // of v1, also while v2 is used: old groups may exist there
    bool has_groups; // created there by this or an earlier agent
    struct error why;
};

struct limits {
    char instance[CONFINE_NAME_SIZE]; // the prefix of all group names of mgpu
    struct limits_place places[LIMIT_CONTROLLERS];
    struct cpu_pool pool;
    char mems[LIMITS_MEMS_SIZE];
    char *regions; // text of dmem.capacity; NULL: there is none
};

/* Reads a list of CPUs. False: there is no such file, or it is empty. */
bool limits_read_cpus(const char *dir, const char *file, struct cpu_set *ret);
