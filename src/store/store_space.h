/* SPDX-License-Identifier: MIT */
/* Disk space: new work is refused before the disk is full, and a reserve file lets running jobs end. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define STORE_SPACE_MIN    (8 << 20) // below this free space the store counts as full
#define STORE_RESERVE      (8 << 20) // size of the reserve file
#define STORE_INODES_MIN   16        // the same for free inodes
#define STORE_OPEN_NEEDS   (1 << 20) // below this free space at a start, the reserve is removed first
#define STORE_SPACE_AGE    250       // milliseconds after which the disk is checked again
#define STORE_RESERVE_NAME "reserve"

struct store;

/* The last check of the store's thread: the caller's thread never waits for the disk. */
struct store_space {
    atomic_bool has_reserve, is_low, lacks_inodes;
    atomic_bool is_asked; // a check has been requested
    _Atomic int64_t looked_ms;
};

/* At a start: creates the reserve if missing, or removes it if the store could not be opened otherwise. */
void store_space_open(struct store *store);

/* True if a start fails for lack of bytes or inodes: disk errors then do not mean damage. Sets an error with
 * a hint. */
bool store_space_is_out(const struct store *store, struct error *err);

/* New work is refused, as far as the store's thread knows; it looks again by itself then. */
bool store_space_is_short(const struct store *store);

/* On the store's thread: checks the disk unless that was done within STORE_SPACE_AGE. */
void store_space_check(struct store *store);

/* On the store's thread: removes the reserve; true if there was one. */
bool store_space_give_up(struct store *store);
