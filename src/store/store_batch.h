/* SPDX-License-Identifier: MIT */
/* The contents of a batch, for the thread that writes it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "job/job.h"
#include "store/store_thread.h"

/* An event with the resulting row, or one row of cluster_state. */
struct store_change {
    char *kind, *key; // of cluster_state; NULL: an event
    bool is_removal;  // of cluster_state
    uint64_t seq;
    uint64_t job;
    uint32_t attempt;
    enum job_event_type type;
    int64_t wall_ms;
    struct buffer event;     // encoded; or the value of cluster_state
    struct job *row;         // the job after the event; NULL for a change of the cluster
    struct spec_bytes *spec; // submitted only, and not for elements; else NULL
    uint64_t key_hash;       // of a spec with a submit key
};

struct store_batch {
    struct store_request request;
    uint64_t id;
    struct store_change *changes;
    size_t count, capacity;
    uint64_t gap; // numbers to skip; 0: none
};

/* The id of the batch committed by this request; 0 if it is no commit. */
uint64_t store_batch_of_request(const struct store_request *request);
