/* SPDX-License-Identifier: MIT */
/*
 * A set is rated by its worst pair, then by the sum over its pairs, then by the value of the remaining GPUs
 * to each other, so that a single GPU does not break up a group that a larger job could use. Few candidates
 * are tried in all combinations; with many, a set is grown from each GPU by repeatedly adding the nearest.
 */
#include "sched/placement/topology.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define EXACT_GPUS  16U   // sets of this size are masks
#define EXACT_TRIES 2000U // combinations
#define GROWN_TRIES 16U

/* The value of a pair; each step outweighs a few pairs of the step below. */
enum { FAR = 0, SAME_NUMA = 1, SAME_SWITCH = 4, NVLINK = 16 };

struct quality {
    uint32_t loosest, sum, rest;
};

static uint32_t closeness(const struct cluster_node *node, uint32_t a, uint32_t b)
{
    const struct cluster_gpu *left = &node->gpus[a], *right = &node->gpus[b];
    if (b < 64 && (left->links >> b & 1) != 0)
        return NVLINK;
    if (left->pcie_switch >= 0 && left->pcie_switch == right->pcie_switch)
        return SAME_SWITCH;
    return left->numa >= 0 && left->numa == right->numa ? SAME_NUMA : FAR;
}

static bool is_better(const struct quality *a, const struct quality *b)
{
    if (a->loosest != b->loosest)
        return a->loosest > b->loosest;
    if (a->sum != b->sum)
        return a->sum > b->sum;
    return a->rest > b->rest;
}

/* `is_in[i]`: whether candidate i is in the set. */
static struct quality judge(const uint8_t *pairs, const bool *is_in, uint32_t n)
{
    struct quality quality = { .loosest = NVLINK };
    for (uint32_t i = 0; i < n; i++) {
        const uint8_t *row = pairs + (size_t)i * n;
        for (uint32_t k = i + 1; k < n; k++) {
            if (is_in[i] != is_in[k])
                continue;
            if (!is_in[i]) {
                quality.rest += row[k];
                continue;
            }
            quality.sum += row[k];
            quality.loosest = row[k] < quality.loosest ? row[k] : quality.loosest;
        }
    }
    return quality;
}

static uint32_t combinations(uint32_t n, uint32_t count)
{
    uint64_t tries = 1;
    for (uint32_t i = 1; i <= count && tries <= EXACT_TRIES; i++)
        tries = tries * (n - count + i) / i;
    return tries > EXACT_TRIES ? EXACT_TRIES + 1 : (uint32_t)tries;
}

/* The next combination in order of the lowest positions first: {0,1}, {0,2}, ... {1,2} ... */
static bool next_set(uint32_t *set, uint32_t n, uint32_t count)
{
    uint32_t i = count;
    while (i > 0 && set[i - 1] == n - count + i - 1)
        i--;
    if (i == 0)
        return false;
    set[i - 1]++;
    for (; i < count; i++)
        set[i] = set[i - 1] + 1;
    return true;
}

static void choose_exactly(const uint8_t *pairs, uint32_t n, uint32_t count, bool *best)
{
    uint32_t set[EXACT_GPUS];
    struct quality best_quality = { 0 };
    bool is_first = true;
    for (uint32_t i = 0; i < count; i++)
        set[i] = i;
    do {
        bool is_in[EXACT_GPUS] = { false };
        for (uint32_t i = 0; i < count; i++)
            is_in[set[i]] = true;
        struct quality quality = judge(pairs, is_in, n);
        if (is_first || is_better(&quality, &best_quality)) {
            best_quality = quality;
            memcpy(best, is_in, n * sizeof(*best));
        }
        is_first = false;
    } while (next_set(set, n, count));
}

static void grow(const uint8_t *pairs, uint32_t n, uint32_t count, bool *is_in, uint32_t *worth)
{
    for (uint32_t taken = 1; taken < count; taken++) {
        uint32_t nearest = n;
        for (uint32_t k = 0; k < n; k++)
            if (!is_in[k] && (nearest == n || worth[k] > worth[nearest]))
                nearest = k;
        is_in[nearest] = true;
        for (uint32_t k = 0; k < n; k++)
            worth[k] += pairs[(size_t)nearest * n + k];
    }
}

static void choose_grown(const uint8_t *pairs, uint32_t n, uint32_t count, bool *best)
{
    _cleanup_free_ bool *is_in = xcalloc(n, sizeof(*is_in));
    _cleanup_free_ uint32_t *worth = xcalloc(n, sizeof(*worth));
    struct quality best_quality = { 0 };
    uint32_t step = n > GROWN_TRIES ? n / GROWN_TRIES : 1;
    for (uint32_t seed = 0; seed < n; seed += step) {
        memset(is_in, 0, n * sizeof(*is_in));
        is_in[seed] = true;
        for (uint32_t k = 0; k < n; k++)
            worth[k] = pairs[(size_t)seed * n + k];
        grow(pairs, n, count, is_in, worth);
        struct quality quality = judge(pairs, is_in, n);
        if (seed == 0 || is_better(&quality, &best_quality)) {
            best_quality = quality;
            memcpy(best, is_in, n * sizeof(*best));
        }
    }
}

static void order_by_index(const struct cluster_node *node, uint32_t *positions, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        uint32_t moved = positions[i], at = i;
        for (; at > 0 && node->gpus[positions[at - 1]].index > node->gpus[moved].index; at--)
            positions[at] = positions[at - 1];
        positions[at] = moved;
    }
}

static bool is_described(const struct cluster_node *node, const uint32_t *positions, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct cluster_gpu *gpu = &node->gpus[positions[i]];
        if (gpu->links != 0 || gpu->pcie_switch >= 0 || gpu->numa >= 0)
            return true;
    }
    return false;
}

/* Every pair is as close as every other, as on a board with an NVLink switch. */
static bool is_uniform(const uint8_t *pairs, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = i + 1; k < n; k++)
            if (pairs[(size_t)i * n + k] != pairs[1])
                return false;
    return true;
}

void topology_choose(const struct cluster_node *node, uint32_t *positions, uint32_t n, uint32_t count)
{
    order_by_index(node, positions, n);
    if (count >= n || count == 0 || !is_described(node, positions, n))
        return;
    _cleanup_free_ uint8_t *pairs = xcalloc((size_t)n * n, 1);
    _cleanup_free_ bool *best = xcalloc(n, sizeof(*best));
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < n; k++)
            pairs[(size_t)i * n + k] = (uint8_t)closeness(node, positions[i], positions[k]);
    if (is_uniform(pairs, n))
        return;
    if (n <= EXACT_GPUS && combinations(n, count) <= EXACT_TRIES)
        choose_exactly(pairs, n, count, best);
    else
        choose_grown(pairs, n, count, best);
    uint32_t front = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t chosen = positions[i];
        if (!best[i])
            continue;
        memmove(positions + front + 1, positions + front, (i - front) * sizeof(*positions));
        positions[front++] = chosen;
    }
}
