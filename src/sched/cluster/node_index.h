/* SPDX-License-Identifier: MIT */
/*
 * Finds nodes by what they have free and by when they will have it, without looking at each: a segment tree
 * over the nodes' positions whose inner nodes hold the maximum (free things) or minimum (times) of what is
 * below them. A touched node costs O(log nodes).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INDEX_TIMES 16U // "when will k GPUs be free" is kept for k up to this

#define WHOLE_NO_GPUS UINT32_MAX // to node_index_find_exact: nodes that have no GPU at all

/*
 * What a node offers to new jobs now, holds and reservations not counted. All 0 when it is down or drained,
 * but for what it has by its build: `gpus` and `models`.
 */
struct node_offer {
    uint32_t whole;     // GPUs with nothing on them
    uint32_t share;     // most thousandths free on one GPU that is empty or shared
    uint32_t part;      // most thousandths free of both such a GPU and its memory
    uint64_t gpu_mem;   // most bytes free on one such GPU
    uint32_t cpu_milli; // free
    uint64_t memory;    // free; UINT64_MAX when it is not counted
    uint64_t models;    // bit m % 64 of the models of its GPUs, empty or not
    uint32_t gpus;      // GPUs it has, given away or not
    uint32_t open;      // of these, those that may be given out once they are free
};

/* What a request needs of one node at least; a node that offers less cannot help it. */
struct node_need {
    uint32_t whole; // 0 for shares and CPU jobs; 1 for a job that may span nodes and is wider than a node
    uint32_t share; // 1 for a shared request by memory alone
    uint32_t part;  // a fraction without memory of its own needs as much of the memory
    uint64_t gpu_mem;
    uint32_t cpu_milli;
    uint64_t memory;
    uint64_t models; // the node must have one of these bits; 0: any
    uint32_t gpus;   // free or not
};

struct node_index;

struct node_index *node_index_new(void);
void node_index_free(struct node_index *index);

/* Replaces the row of a position (new ones grow the tree). `times[k-1]`: when k GPUs of the node will be free
 * at once, by what is expected of the jobs on it; TIME_NEVER: never. Ascending. */
void node_index_set(struct node_index *index, uint32_t position, const struct node_offer *offer);
void node_index_set_times(struct node_index *index, uint32_t position, const int64_t times[INDEX_TIMES]);
const struct node_offer *node_index_offer(const struct node_index *index, uint32_t position);

/* The first position >= from that offers what is needed, -1: none. Counts what it looks at in *work. */
int64_t node_index_find(
    const struct node_index *index, const struct node_need *need, uint32_t from, uint64_t *work);

/* As node_index_find, of nodes that have exactly `whole` GPUs free. */
int64_t node_index_find_exact(const struct node_index *index, const struct node_need *need, uint32_t whole,
    uint32_t from, uint64_t *work);

/* The most GPUs free on one node. */
uint32_t node_index_most_whole(const struct node_index *index);

/*
 * Positions in order of times[k-1], soonest first, lowest position on ties, only those whose models meet
 * `models` (0: any). Writes at most `max`; returns how many.
 */
size_t node_index_soonest(const struct node_index *index, uint32_t k, uint64_t models, uint32_t *positions,
    size_t max, uint64_t *work);

bool offer_meets(const struct node_offer *offer, const struct node_need *need);
