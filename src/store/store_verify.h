/* SPDX-License-Identifier: MIT */
/* The complete check of the store, in the background: of each copy before it becomes a snapshot. */
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
    int64_t began_ms;        // boot clock: start of the copy; owned by its thread once that exists
    int64_t next_ms;         // no copy is started before
};

/* On the store's thread: true while no copy may be started. */
bool store_verify_is_busy(struct store *store);

/*
 * On the store's thread: copies the database into backup/ and checks the copy, on its own thread. A
 * sound one becomes the newest snapshot, a damaged one is removed. The result goes to the observer's
 * on_verified.
 */
void store_verify_begin(struct store *store);

/* Ends a check without a result, and its thread. `wait` false: only asks it to end. Safe when there is none.
 */
void store_verify_stop(struct store *store, bool wait);
