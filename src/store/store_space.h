/* SPDX-License-Identifier: MIT */
/* Room on the disk: new work is refused before there is none, and a reserve lets running jobs end. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define STORE_SPACE_MIN    (8 << 20) // less than this free: the store counts as full
#define STORE_RESERVE      (8 << 20) // size of the reserve file
#define STORE_OPEN_NEEDS   (1 << 20) // less than this free at a start: the reserve goes first
#define STORE_SPACE_AGE    250       // milliseconds for which a look at the disk is believed
#define STORE_RESERVE_NAME "reserve"

struct store;

struct store_space {
    atomic_bool has_reserve;
    atomic_bool is_asked; // the thread was asked to make the reserve again
    bool is_low;          // on the caller's thread
    int64_t looked_ms;
};

/* At a start: makes the reserve when it is missing, or gives it up when nothing could be opened without. */
void store_space_open(struct store *store);

/* True when a start fails for want of bytes or inodes: then no error of the disk means damage. Says so, with
 * a hint. */
bool store_space_is_out(const struct store *store, struct error *err);

/* On the store's thread: true when there was a reserve, which is free space now. */
bool store_space_give_up(struct store *store);
