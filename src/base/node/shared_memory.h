/* SPDX-License-Identifier: MIT */
/* Finds shared memory that no process uses any more: files in /dev/shm, and System V segments. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHARED_MEMORY_MAX  256        // found at a time; more are counted as that many
#define SHARED_MEMORY_MIN  (1U << 20) // bytes of one user: less is not reported (locks, semaphores)
#define SHARED_MEMORY_NAME 64         // with its NUL; longer names are cut
#define SHARED_MEMORY_ALL  UINT32_MAX // of any user

/* One of them. */
struct shared_memory {
    uint32_t uid;                  // of its owner
    uint64_t bytes;                // of memory that it takes
    char name[SHARED_MEMORY_NAME]; // "torch_4711", or "segment 32768"
};

/*
 * Finds those of user `uid` that were created at `since_ms` (wall clock, milliseconds) or later. A file
 * counts as unused if no process that the caller may inspect has it open or mapped, a segment if no process
 * is attached to it. Returns the number of items in `ret`. Allocates nothing; inspects processes only if
 * there is a file.
 */
size_t shared_memory_find(uint32_t uid, int64_t since_ms, struct shared_memory ret[SHARED_MEMORY_MAX]);

/* False if there is certainly no such segment. */
bool shared_memory_may_have_segments(uint32_t uid, int64_t since_ms);

/* The same, in another folder than /dev/shm and with another table than /proc/sysvipc/shm; NULL: no segments.
 */
size_t shared_memory_find_in(const char *folder, const char *segments, uint32_t uid, int64_t since_ms,
    struct shared_memory ret[SHARED_MEMORY_MAX]);
