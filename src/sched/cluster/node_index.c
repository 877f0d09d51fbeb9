/* SPDX-License-Identifier: MIT */
/*
 * The tree is stored in arrays: the root is 1, the children of i are 2i and 2i + 1, the leaf of position p is
 * capacity + p. The row of an inner node has the maximum of each resource on any one node below it, so a
 * subtree that cannot satisfy a need is skipped as a whole. `wholes` has one bit per number of free GPUs that
 * occurs below, which makes "exactly k free" a query of the same kind.
 */
#include "sched/cluster/node_index.h"

#include <string.h>

#include "base/containers/heap.h"
#include "base/memory.h"
#include "sched/cluster/cluster.h"

#define WHOLES_MANY    62U // this many or more
#define WHOLES_NO_GPUS 63U
#define CAPACITY_FIRST 16U

struct row {
    struct node_offer offer;
    uint64_t wholes;
};

_Static_assert(sizeof(struct row) == 6 * sizeof(uint32_t) + 4 * sizeof(uint64_t),
    "rows are compared as bytes, so they must not have padding");

struct node_index {
    uint32_t capacity; // a power of two
    struct row *rows;
    int64_t (*times)[INDEX_TIMES]; // NULL until the first is set
};

struct node_index *node_index_new(void)
{
    struct node_index *index = xcalloc(1, sizeof(*index));
    index->capacity = CAPACITY_FIRST;
    index->rows = xcalloc(2 * CAPACITY_FIRST, sizeof(*index->rows));
    return index;
}

void node_index_free(struct node_index *index)
{
    if (index == NULL)
        return;
    free(index->rows);
    free(index->times);
    free(index);
}

bool offer_meets(const struct node_offer *offer, const struct node_need *need)
{
    return offer->whole >= need->whole && offer->share >= need->share && offer->part >= need->part &&
           offer->gpu_mem >= need->gpu_mem && offer->cpu_milli >= need->cpu_milli &&
           offer->memory >= need->memory && offer->gpus >= need->gpus &&
           (need->models == 0 || (offer->models & need->models) != 0);
}

#define MAX_OF(a, b) ((a) > (b) ? (a) : (b))

static void join_rows(const struct row *a, const struct row *b, struct row *ret)
{
    *ret = (struct row){
        .offer = { .whole = MAX_OF(a->offer.whole, b->offer.whole),
            .share = MAX_OF(a->offer.share, b->offer.share),
            .part = MAX_OF(a->offer.part, b->offer.part),
            .gpu_mem = MAX_OF(a->offer.gpu_mem, b->offer.gpu_mem),
            .cpu_milli = MAX_OF(a->offer.cpu_milli, b->offer.cpu_milli),
            .memory = MAX_OF(a->offer.memory, b->offer.memory),
            .models = a->offer.models | b->offer.models,
            .gpus = MAX_OF(a->offer.gpus, b->offer.gpus),
            .open = MAX_OF(a->offer.open, b->offer.open) },
        .wholes = a->wholes | b->wholes,
    };
}

static bool join_times(const int64_t *a, const int64_t *b, int64_t *ret)
{
    bool is_changed = false;
    for (uint32_t k = 0; k < INDEX_TIMES; k++) {
        int64_t soonest = a[k] < b[k] ? a[k] : b[k];
        is_changed = is_changed || soonest != ret[k];
        ret[k] = soonest;
    }
    return is_changed;
}

static void rebuild_times(struct node_index *index)
{
    for (uint32_t i = index->capacity - 1; i > 0; i--)
        (void)join_times(index->times[2 * i], index->times[2 * i + 1], index->times[i]);
}

static int64_t (*new_times(uint32_t capacity))[INDEX_TIMES]
{
    int64_t(*times)[INDEX_TIMES] = xcalloc(2 * (size_t)capacity, sizeof(*times));
    for (size_t i = 0; i < 2 * (size_t)capacity; i++)
        for (uint32_t k = 0; k < INDEX_TIMES; k++)
            times[i][k] = TIME_NEVER;
    return times;
}

static void grow(struct node_index *index, uint32_t position)
{
    uint32_t old = index->capacity, capacity = old;
    while (capacity <= position)
        capacity *= 2;
    if (capacity == old)
        return;
    struct row *rows = xcalloc(2 * (size_t)capacity, sizeof(*rows));
    memcpy(rows + capacity, index->rows + old, old * sizeof(*rows));
    free(index->rows);
    index->rows = rows;
    index->capacity = capacity;
    for (uint32_t i = capacity - 1; i > 0; i--)
        join_rows(&rows[2 * i], &rows[2 * i + 1], &rows[i]);
    if (index->times == NULL)
        return;
    int64_t(*times)[INDEX_TIMES] = new_times(capacity);
    memcpy(times + capacity, index->times + old, old * sizeof(*times));
    free(index->times);
    index->times = times;
    rebuild_times(index);
}

static uint64_t wholes_bit(uint32_t whole)
{
    if (whole == WHOLE_NO_GPUS)
        return 1ULL << WHOLES_NO_GPUS;
    return 1ULL << (whole < WHOLES_MANY ? whole : WHOLES_MANY);
}

void node_index_set(struct node_index *index, uint32_t position, const struct node_offer *offer)
{
    grow(index, position);
    uint32_t at = index->capacity + position;
    index->rows[at].offer = *offer;
    index->rows[at].wholes = wholes_bit(offer->gpus == 0 ? WHOLE_NO_GPUS : offer->whole);
    for (at /= 2; at > 0; at /= 2) {
        struct row joined;
        join_rows(&index->rows[2 * at], &index->rows[2 * at + 1], &joined);
        if (memcmp(&joined, &index->rows[at], sizeof(joined)) == 0)
            return;
        index->rows[at] = joined;
    }
}

void node_index_set_times(struct node_index *index, uint32_t position, const int64_t times[INDEX_TIMES])
{
    grow(index, position);
    if (index->times == NULL)
        index->times = new_times(index->capacity);
    uint32_t at = index->capacity + position;
    memcpy(index->times[at], times, sizeof(index->times[at]));
    for (at /= 2; at > 0; at /= 2)
        if (!join_times(index->times[2 * at], index->times[2 * at + 1], index->times[at]))
            return;
}

const struct node_offer *node_index_offer(const struct node_index *index, uint32_t position)
{
    static const struct node_offer nothing = { 0 };
    return position < index->capacity ? &index->rows[index->capacity + position].offer : &nothing;
}

static bool row_meets(const struct row *row, const struct node_need *need, uint64_t wholes)
{
    return (row->wholes & wholes) != 0 && offer_meets(&row->offer, need);
}

/*
 * The search goes up from the leaf `from` while a subtree has nothing to its right, and down into the first
 * subtree that may match. The maxima of an inner row may come from two different nodes; the search then
 * leaves that subtree on its right side and continues.
 */
static int64_t find(const struct node_index *index, const struct node_need *need, uint64_t wholes,
    uint32_t from, uint64_t *work)
{
    if (from >= index->capacity)
        return -1;
    uint32_t at = index->capacity + from;
    for (;;) {
        ++*work;
        if (row_meets(&index->rows[at], need, wholes)) {
            if (at >= index->capacity)
                return at - index->capacity;
            at *= 2;
            continue;
        }
        while ((at & 1) != 0)
            at /= 2;
        if (at == 0)
            return -1;
        at++;
    }
}

int64_t node_index_find(
    const struct node_index *index, const struct node_need *need, uint32_t from, uint64_t *work)
{
    return find(index, need, UINT64_MAX, from, work);
}

int64_t node_index_find_exact(const struct node_index *index, const struct node_need *need, uint32_t whole,
    uint32_t from, uint64_t *work)
{
    int64_t position = find(index, need, wholes_bit(whole), from, work);
    while (whole >= WHOLES_MANY && whole != WHOLE_NO_GPUS && position >= 0 &&
           node_index_offer(index, (uint32_t)position)->whole != whole)
        position = find(index, need, wholes_bit(whole), (uint32_t)position + 1, work);
    return position;
}

uint32_t node_index_most_whole(const struct node_index *index)
{
    return index->rows[1].offer.whole;
}

/* --- in order of time: a heap of subtrees by the soonest time in them, opened at the top: the number of a
 * subtree is the position of its leftmost leaf, its detail the node of the tree --- */

static void push_subtree(
    const struct node_index *index, struct heap *heap, uint32_t k, uint64_t models, struct heap_item item)
{
    item.at_ms = index->times[item.detail][k - 1];
    if (item.at_ms != TIME_NEVER && (models == 0 || (index->rows[item.detail].offer.models & models) != 0))
        heap_push(heap, item);
}

size_t node_index_soonest(const struct node_index *index, uint32_t k, uint64_t models, uint32_t *positions,
    size_t max, uint64_t *work)
{
    if (index->times == NULL || k == 0)
        return 0;
    if (k > INDEX_TIMES)
        k = INDEX_TIMES;
    struct heap heap = { 0 };
    size_t count = 0;
    push_subtree(index, &heap, k, models, (struct heap_item){ .number = 0, .detail = 1 });
    while (heap.count > 0 && count < max) {
        const struct heap_item top = heap_pop(&heap);
        ++*work;
        if (top.detail >= index->capacity) {
            positions[count++] = top.number;
            continue;
        }
        int level = __builtin_clz(top.detail), leaf = __builtin_clz(index->capacity);
        uint32_t half = 1U << (level - leaf - 1);
        push_subtree(
            index, &heap, k, models, (struct heap_item){ .number = top.number, .detail = 2 * top.detail });
        push_subtree(index, &heap, k, models,
            (struct heap_item){ .number = top.number + half, .detail = 2 * top.detail + 1 });
    }
    heap_clear(&heap);
    return count;
}
