/* SPDX-License-Identifier: MIT */
#include "clusters.h"

#include <stdlib.h>

#include "sched/cluster/node_index.h"

#define NODES 150U

struct model {
    struct node_index *index;
    struct node_offer offers[NODES];
    int64_t times[NODES][INDEX_TIMES];
    uint32_t seed;
};

static uint32_t draw(struct model *model, uint32_t limit)
{
    model->seed = model->seed * 1664525U + 1013904223U;
    return (model->seed >> 8) % limit;
}

static void set_random(struct model *model, uint32_t at)
{
    struct node_offer *offer = &model->offers[at];
    *offer = (struct node_offer){ .whole = draw(model, 9),
        .share = draw(model, 1001),
        .gpu_mem = draw(model, 100),
        .cpu_milli = draw(model, 64),
        .memory = draw(model, 64),
        .models = 1ULL << draw(model, 3),
        .gpus = 8 };
    if (draw(model, 10) == 0)
        *offer = (struct node_offer){ .cpu_milli = draw(model, 64), .memory = UINT64_MAX };
    node_index_set(model->index, at, offer);
    int64_t at_ms = 0;
    for (uint32_t k = 0; k < INDEX_TIMES; k++) {
        at_ms = k < 8 ? at_ms + draw(model, 5) : TIME_NEVER;
        model->times[at][k] = at_ms;
    }
    node_index_set_times(model->index, at, model->times[at]);
}

static int open_model(void **state)
{
    struct model *model = calloc(1, sizeof(*model));
    model->index = node_index_new();
    model->seed = 7;
    for (uint32_t i = 0; i < NODES; i++)
        set_random(model, i);
    *state = model;
    return 0;
}

static int close_model(void **state)
{
    struct model *model = *state;
    node_index_free(model->index);
    free(model);
    return 0;
}

#define CASE(name, model) TEST_ON(name, struct model *model, open_model, close_model)

static int64_t find_slowly(struct model *model, const struct node_need *need, int64_t whole, uint32_t from)
{
    for (uint32_t i = from; i < NODES; i++) {
        bool is_exact = whole < 0 || (whole == WHOLE_NO_GPUS
                                             ? model->offers[i].gpus == 0
                                             : model->offers[i].gpus > 0 && model->offers[i].whole == whole);
        if (is_exact && offer_meets(&model->offers[i], need))
            return i;
    }
    return -1;
}

CASE(it_finds_what_a_walk_over_all_nodes_finds, model)
{
    uint64_t work = 0;
    for (int round = 0; round < 5000; round++) {
        set_random(model, draw(model, NODES));
        struct node_need need = { .whole = draw(model, 9),
            .share = draw(model, 900),
            .gpu_mem = draw(model, 100),
            .cpu_milli = draw(model, 60),
            .models = draw(model, 4) };
        uint32_t from = draw(model, NODES + 5);
        int64_t whole = draw(model, 12) == 0 ? WHOLE_NO_GPUS : need.whole;
        assert_int_equal(
            node_index_find(model->index, &need, from, &work), find_slowly(model, &need, -1, from));
        need = (struct node_need){ .cpu_milli = need.cpu_milli };
        assert_int_equal(node_index_find_exact(model->index, &need, (uint32_t)whole, from, &work),
            find_slowly(model, &need, whole, from));
    }
}

CASE(the_soonest_come_in_order_of_time_and_position, model)
{
    uint64_t work = 0;
    for (uint32_t k = 1; k <= 9; k++) {
        uint32_t positions[NODES];
        size_t count = node_index_soonest(model->index, k, 1, positions, NODES, &work);
        size_t expected = 0;
        for (uint32_t i = 0; i < NODES; i++)
            expected += k <= 8 && (model->offers[i].models & 1) != 0;
        assert_int_equal(count, expected);
        for (size_t i = 0; i < count; i++) {
            assert_true((model->offers[positions[i]].models & 1) != 0);
            int64_t now = model->times[positions[i]][k - 1];
            int64_t before = i > 0 ? model->times[positions[i - 1]][k - 1] : -1;
            assert_true(before < now || (before == now && positions[i - 1] < positions[i]));
        }
        assert_int_equal(node_index_soonest(model->index, k, 0, positions, 3, &work), k <= 8 ? 3 : 0);
    }
}

CASE(a_position_that_was_never_set_is_not_found, model)
{
    struct node_need anything = { 0 };
    uint64_t work = 0;
    assert_int_equal(node_index_find(model->index, &anything, NODES, &work), -1);
    assert_int_equal(node_index_find(model->index, &anything, 100000, &work), -1);
    node_index_set(model->index, 5000, &(struct node_offer){ .whole = 12, .gpus = 12 });
    assert_int_equal(node_index_find(model->index, &anything, NODES, &work), 5000);
    assert_int_equal(node_index_most_whole(model->index), 12);
    assert_int_equal(node_index_offer(model->index, 5000)->whole, 12);
}
