/* SPDX-License-Identifier: MIT */
/* Shared memory that a job leaves on its node: it stays until it is removed, and is charged to no job. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/node/shared_memory.h"
#include "job/launch.h"

struct leftovers {
    uint32_t count;
    uint64_t bytes;
    char name[SHARED_MEMORY_NAME]; // of the largest file; printable, terminated
};

/* Finds files that the job's user has left since `started_wall_ms` and that no process uses. Finds nothing
 * for an exec step, or for a job that had its own /dev/shm. Called when no process of the job is
 * left. */
void leftovers_find(const struct launch_spec *spec, int64_t started_wall_ms, struct leftovers *ret);

/* Appends a clause about the leftovers to the text, if there are any. */
void leftovers_describe(const struct leftovers *leftovers, char *text, size_t size);
