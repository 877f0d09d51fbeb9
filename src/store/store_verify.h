/* SPDX-License-Identifier: MIT */
/* The whole check of the store behind the running program: of each copy that is to become a snapshot. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct store;

struct store_verifier {
    pthread_t id;
    bool is_started;         // and not joined; of the store's thread
    atomic_bool is_running;  // until the result has been handed over
    atomic_bool is_stopping; // the store closes
    int64_t began_ms;        // boot clock: when the copy was begun; of its thread once there is one
    int64_t next_ms;         // no copy is begun before
};

/* On the store's thread: true while no copy may be begun. */
bool store_verify_is_busy(struct store *store);

/*
 * On the store's thread: copies the database into backup/ and checks the copy, on a thread of its own. A
 * sound one becomes the newest snapshot, a damaged one is removed. The result goes to the observer's
 * on_verified.
 */
void store_verify_begin(struct store *store);

/* Ends a check without a result, and its thread. `wait` false: only asks it to end. Safe when there is none.
 */
void store_verify_stop(struct store *store, bool wait);
