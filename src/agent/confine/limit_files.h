/* SPDX-License-Identifier: MIT */
/* The files of cgroups in which limits are written, in v1 and v2. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "agent/confine/limits.h"

enum limit_hierarchy { HIERARCHY_NONE, HIERARCHY_V1, HIERARCHY_V2, HIERARCHIES };

/* Limits of an attempt; 0 and NULL: no limit. */
struct limit_values {
    uint64_t memory;
    uint32_t pids;
    uint32_t cpu_milli;
    const char *cpus; // list of its CPUs
    const char *dmem; // "REGION BYTES" of device memory
    const char *mems; // NUMA nodes whose memory it may use: required by a v1 cpuset
    bool is_step;     // of a step with its own limits, not of the attempt
};

/* Writes the values of this controller to the files of the directory. */
int limit_files_write(const char *dir, enum limit_hierarchy hierarchy, enum limit_controller controller,
    const struct limit_values *values, struct error *err);

/* The file that must exist for the controller to limit anything. */
const char *limit_files_first(enum limit_hierarchy hierarchy, enum limit_controller controller);

/* Reads the first line of a file below `dir`; false if there is no such file. */
bool limit_files_read(const char *dir, const char *file, char *text, size_t size);
