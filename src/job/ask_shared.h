/* SPDX-License-Identifier: MIT */
/* Requests as jobs have them: never changed, and one for all jobs that ask for the same. What is changed is a
 * copy. The users are counted without locks: a request and all its users belong to one thread. */
#pragma once

#include "job/ask.h"

/* A deep copy of which the caller is the only user. */
const struct job_ask *ask_shared_new(const struct job_ask *from);
/* One user more; returns `ask`, which came from ask_shared_new(). */
const struct job_ask *ask_shared_hold(const struct job_ask *ask);
/* One user less; freed with the last one. NULL is harmless. */
void ask_shared_drop(const struct job_ask *ask);

#define ASK_SHELF_SLOTS 256U

/* The requests that were seen last, of which it is a user. All zero: empty. */
struct ask_shelf {
    struct ask_slot {
        const struct job_ask *ask;
        struct buffer bytes;  // it, encoded
    } slots[ASK_SHELF_SLOTS]; // by hash
};

/* When one like *ask was seen lately, *ask becomes that one; else it is what the next are compared with. */
void ask_shelf_share(struct ask_shelf *shelf, const struct job_ask **ask);
void ask_shelf_clear(struct ask_shelf *shelf);
