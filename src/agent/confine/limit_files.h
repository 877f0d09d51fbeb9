/* SPDX-License-Identifier: MIT */
/* Which values are written into which files of a cgroup, in v1 and in v2. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "agent/confine/limits.h"

enum limit_hierarchy { HIERARCHY_NONE, HIERARCHY_V1, HIERARCHY_V2, HIERARCHIES };

/* What an attempt may use; 0 and NULL: not limited. */
struct limit_values {
    uint64_t memory;
    uint32_t pids;
    uint32_t cpu_milli;
    const char *cpus; // list of its own CPUs
    const char *mems; // NUMA nodes whose memory it may use: a v1 cpuset must say so
};

/* Writes the values of that controller into the files of the directory. */
int limit_files_write(const char *dir, enum limit_hierarchy hierarchy, enum limit_controller controller,
    const struct limit_values *values, struct error *err);

/* The file without which the controller cannot limit anything. */
const char *limit_files_first(enum limit_hierarchy hierarchy, enum limit_controller controller);

/* Reads the first line of a file below `dir`; false when there is no such file. */
bool limit_files_read(const char *dir, const char *file, char *text, size_t size);
