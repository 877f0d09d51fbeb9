/* SPDX-License-Identifier: MIT */
/* The batches of store/store.h without a store: a commit hands them over and the test decides what survives.
 */
#pragma once

#include "store/store.h"

struct change {
    struct job_event event;
    struct job_spec *spec; // submitted only
    uint64_t key_hash;
};

struct store_batch {
    uint64_t id;
    struct change *changes;
    size_t count;
};

void changes_free(struct change *changes, size_t count);
