/* SPDX-License-Identifier: MIT */
/* Which GPUs a request gets. Ways of choosing are members of one vtable, so that they can be compared and
 * replaced. */
#pragma once

#include <stdbool.h>

#include "sched/cluster.h"

struct placement {
    const char *name;
    /*
     * Chooses a node and GPUs that are free for `request` and not claimed. True with the node and the grants
     * (slots and memory filled in, in the order asked for); false when it does not fit now. Books nothing.
     */
    bool (*place)(const struct cluster *cluster, const struct sched_request *request,
        struct cluster_node **ret_node, struct record_list *ret_grants);
};

/* The plain reference: first node, first GPUs in order of index. */
extern const struct placement placement_first_fit;

/* The node, and for shares the GPU, that has the least left over. The default. */
extern const struct placement placement_best_fit;

/*
 * Keeps what a waiting request will need: marks up to as many GPUs as it asks for, empty ones first, then
 * those whose shares will end. Returns how many it marked; a later request in the same pass does not get
 * them.
 */
size_t placement_claim(struct cluster *cluster, const struct sched_request *request);
