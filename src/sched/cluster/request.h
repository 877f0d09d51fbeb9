/* SPDX-License-Identifier: MIT */
/* A job's resource request in the scheduler's form. Equal requests are interchangeable. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "job/ask.h"

#define SHARE_WHOLE 1000U // thousandths of one GPU

/* A GPU selected by index. */
struct gpu_pick {
    char *node; // NULL: any node, the same for all such picks
    uint32_t index;
};

struct sched_request {
    uint32_t gpus;          // of the whole job
    uint32_t nodes;         // exact number; 0: as few as possible
    uint32_t gpus_per_node; // on each of `nodes`; 0: any distribution
    uint32_t share;         // thousandths of each GPU, 1 to 999; 0: no fraction requested
    uint64_t gpu_mem;       // bytes on each GPU; 0: not requested
    uint32_t cpu_milli;     // thousandths of a CPU on each node
    uint64_t memory;        // bytes of host memory on each node
    char *model;            // "h200", or "a100|h100": the GPU model's name contains one of these; NULL: any
    struct gpu_pick *picks; // exactly these, in this order; NULL: any
    size_t n_picks;
    uint32_t *allow; // only GPUs with these indexes, ascending; NULL: any
    size_t n_allow;
    char *partition;     // "debug", or "a,b": only nodes in one of these; NULL: any
    char *nodelist;      // "gpu1,gpu3": only these nodes; NULL: any
    char *exclude;       // "gpu2": not these; NULL: none
    uint64_t partitions; // these as bits, set by the scheduler; no part of the value
    /* Set by the scheduler, no part of the value: bars of nodes for this user are heeded. */
    bool heeds_bars;
    uint32_t uid;
    bool is_exclusive;    // nodes that run no other job
    uint32_t share_kind;  // enum share_kind: only nodes that enforce shares by it; 0, AUTO: any
    uint32_t adopted_pid; // pid of the process to adopt; 0: no adoption
};

/* True if it takes a part of a GPU that other jobs may share. */
bool request_is_shared(const struct sched_request *request);

/* True if it may be placed on several nodes: more than one requested, picks on several, or `nodes` 0 and no
 * picks. */
bool request_may_span(const struct sched_request *request);

/* Converts a validated request. The caller clears it. */
int request_from_ask(const struct job_ask *ask, struct sched_request *ret, struct error *err);

void request_copy(struct sched_request *to, const struct sched_request *from);
void request_clear(struct sched_request *request);
bool request_equal(const struct sched_request *a, const struct sched_request *b);
uint64_t request_hash(const struct sched_request *request);

/* "2 GPUs (h200) with 8 GiB each", for messages. */
void request_text(const struct sched_request *request, char *text, size_t size);
