/* SPDX-License-Identifier: MIT */
/*
 * An index of nodes by their free resources and by when resources become free: a segment tree over node
 * positions. Its inner nodes hold the maximum (free resources) or minimum (times) of their subtrees. Updating
 * a node costs O(log nodes).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INDEX_TIMES 16U // times at which k GPUs become free are kept for k up to this

#define WHOLE_NO_GPUS UINT32_MAX // for node_index_find_exact: nodes without GPUs

/*
 * What a node offers to new jobs now, without holds and reservations. All 0 if it is down or drained, except
 * its total hardware: `gpus` and `models`.
 */
struct node_offer {
    uint32_t whole;     // empty GPUs
    uint32_t share;     // maximum of free thousandths on an empty or shared GPU
    uint32_t part;      // maximum of free thousandths of both such a GPU and its memory
    uint32_t cpu_milli; // free
    uint64_t gpu_mem;   // maximum of free bytes on such a GPU
    uint64_t memory;    // free; UINT64_MAX if not limited
    uint64_t models;    // bit m % 64 of the models of its GPUs, empty or not
    uint32_t gpus;      // all GPUs, free or not
    uint32_t open;      // those of them that may be allocated once free
};

/* The minimum a request needs of one node; a node that offers less cannot help it. */
struct node_need {
    uint32_t whole; // 0 for shares and CPU jobs; 1 for a job on several nodes that is wider than one node
    uint32_t share; // 1 for a shared request by memory alone
    uint32_t part;  // a fraction without a memory request needs the same fraction of memory
    uint64_t gpu_mem;
    uint32_t cpu_milli;
    uint64_t memory;
    uint64_t models; // the node must have one of these models; 0: any
    uint32_t gpus;   // free or not
};

struct node_index;

struct node_index *node_index_new(void);
void node_index_free(struct node_index *index);

/* Sets the row of a position (new positions grow the tree). `times[k-1]`: when k GPUs of the node are
 * expected to be free at once; TIME_NEVER: never. Ascending. */
void node_index_set(struct node_index *index, uint32_t position, const struct node_offer *offer);
void node_index_set_times(struct node_index *index, uint32_t position, const int64_t times[INDEX_TIMES]);
const struct node_offer *node_index_offer(const struct node_index *index, uint32_t position);

/* The first position >= from that satisfies the need, -1: none. Adds the number of tree nodes visited to
 * *work. */
int64_t node_index_find(
    const struct node_index *index, const struct node_need *need, uint32_t from, uint64_t *work);

/* Like node_index_find, but only nodes with exactly `whole` free GPUs. */
int64_t node_index_find_exact(const struct node_index *index, const struct node_need *need, uint32_t whole,
    uint32_t from, uint64_t *work);

/* The maximum number of free GPUs on one node. */
uint32_t node_index_most_whole(const struct node_index *index);

/*
 * Positions by ascending times[k-1], then by position, only those whose models intersect `models` (0: any).
 * Writes at most `max`; returns the number written.
 */
size_t node_index_soonest(const struct node_index *index, uint32_t k, uint64_t models, uint32_t *positions,
    size_t max, uint64_t *work);

bool offer_meets(const struct node_offer *offer, const struct node_need *need);
