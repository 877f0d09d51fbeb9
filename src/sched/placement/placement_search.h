/* SPDX-License-Identifier: MIT */
/* What the ways of placing share: finding the node where a part of a request leaves least over. */
#pragma once

#include "sched/placement/placement.h"

/* A search goes on where the last one for the same count ended, so that many equal parts cost one walk. */
struct search {
    const struct cluster *cluster;
    const struct sched_request *request;
    const struct fit *fit;
    struct node_need need;
    uint32_t count; // GPUs of the part sought last
    uint32_t whole; // free GPUs of the nodes looked at last
    uint32_t from;  // position to go on with
};

void search_init(struct search *search, const struct cluster *cluster, const struct sched_request *request,
    const struct fit *fit);

/*
 * The position where `count` GPUs fit that has the fewest whole ones free, the lowest on ties, and is not yet
 * in `found`; for shares the lowest. -1: none.
 */
int64_t search_best(struct search *search, uint32_t count, const struct allocation *found, uint64_t *work);

bool search_is_used(const struct allocation *found, uint32_t node);

/* Some node has by its build so many GPUs that suit the request, given away or not, up or not. */
bool search_one_node_is_enough(
    const struct cluster *cluster, const struct sched_request *request, uint64_t *work);
