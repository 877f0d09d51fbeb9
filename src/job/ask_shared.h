/* SPDX-License-Identifier: MIT */
/* Shared requests: immutable, and one object for all jobs with the same request. A change makes a copy. The
 * last user frees it, on any thread. */
#pragma once

#include "job/ask.h"

/* A deep copy with one reference, the caller's. */
const struct job_ask *ask_shared_new(const struct job_ask *from);
/* It with another reference. */
const struct job_ask *ask_shared_hold(const struct job_ask *ask);
/* It as the only item of a list, with another reference: until the list's item is dropped. */
struct record_list ask_shared_list(const struct job_ask *ask);
/* Drops a reference; the last one frees it. NULL is allowed. */
void ask_shared_drop(const struct job_ask *ask);

#define ASK_CACHE_SLOTS 256U

/* Cache of recent requests; holds a reference to each. All zero: empty. */
struct ask_cache {
    struct ask_slot {
        const struct job_ask *ask;
        struct buffer bytes;  // `ask` in encoded form
    } slots[ASK_CACHE_SLOTS]; // by hash
};

/* If the cache has a request equal to *ask, replaces *ask by it; else adds *ask to the cache. */
void ask_cache_share(struct ask_cache *cache, const struct job_ask **ask);
void ask_cache_clear(struct ask_cache *cache);
