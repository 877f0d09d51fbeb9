/* SPDX-License-Identifier: MIT */
/* The batches of store/store.h without a store: a commit hands them over and the test decides what survives.
 */
#pragma once

#include "store/store.h"

struct change {
    struct job_event event;
    struct job_spec *spec; // submitted only, and not for elements of an array
    uint64_t key_hash;
};

/* A row of cluster_state that is put or taken away. */
struct state_change {
    char *kind, *key;
    struct buffer value;
    bool is_removal;
};

struct store_batch {
    uint64_t id;
    struct change *changes;
    size_t count;
    struct state_change *states; // in the order of the calls
    size_t n_states;
    uint64_t gap;
};

void changes_free(struct change *changes, size_t count);
void state_changes_free(struct state_change *states, size_t count);
