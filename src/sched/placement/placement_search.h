/* SPDX-License-Identifier: MIT */
/* Shared by the placement strategies: finds the node with the least left over after a part of a request. */
#pragma once

#include "sched/placement/placement.h"

/* A search continues where the last one with the same count stopped, so that many equal parts need only one
 * pass over the nodes. */
struct search {
    const struct cluster *cluster;
    const struct sched_request *request;
    const struct fit *fit;
    struct node_need need;
    uint32_t count; // GPUs of the part last searched for
    uint32_t whole; // free GPUs of the nodes last examined
    uint32_t from;  // position to continue at
};

void search_init(struct search *search, const struct cluster *cluster, const struct sched_request *request,
    const struct fit *fit);

/*
 * The position with the fewest free whole GPUs, then the lowest, where `count` GPUs fit and that is not in
 * `found`; for shares the lowest. -1: none.
 */
int64_t search_best(struct search *search, uint32_t count, const struct allocation *found, uint64_t *work);

bool search_is_used(const struct allocation *found, uint32_t node);

/* True if some node has enough GPUs that suit the request, free or not, up or down. */
bool search_one_node_is_enough(
    const struct cluster *cluster, const struct sched_request *request, uint64_t *work);
