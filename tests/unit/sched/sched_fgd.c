/* SPDX-License-Identifier: MIT */
#include "clusters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sched/placement/fgd.h"

#define CASE(name, c) TEST_ON(name, struct cluster *c, clusters_open, clusters_close)

#define HELD 300U

static void add_nodes(struct cluster *c, uint32_t nodes, uint32_t gpus)
{
    for (uint32_t i = 0; i < nodes; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "n%u", i);
        clusters_add(c, name, gpus);
    }
}

static bool place(struct cluster *c, const struct placement *way, void *memory, struct sched_request request,
    struct allocation *ret)
{
    struct fit fit = clusters_fit();
    uint64_t work = 0;
    *ret = (struct allocation){ 0 };
    return placement_choose(way, memory, c, &request, &fit, ret, &work);
}

static void tell(struct cluster *c, const struct placement *way, void *memory)
{
    for (size_t i = 0; i < c->n_dirty; i++)
        way->dirty(memory, c, c->dirty[i]);
    c->n_dirty = 0;
}

CASE(fragments_are_what_the_typical_shapes_cannot_use, c)
{
    struct fgd_typicals typicals = { .n = 3 };
    typicals.shapes[0] = (struct fgd_shape){ .weight = 0.2, .cpu_milli = 1000 };
    typicals.shapes[1] = (struct fgd_shape){ .weight = 0.3, .gpus = 1, .share = 500, .cpu_milli = 4000 };
    typicals.shapes[2] = (struct fgd_shape){ .weight = 0.5, .gpus = 2, .share = SHARE_WHOLE };
    struct fgd_node node = { .cpu_milli = 4000, .n = 3, .free = { 1000, 400, 1000 } };
    /* No GPU is of use to a job without: 2400; half of one: not the 400; two whole ones: not the 400. */
    assert_int_equal((int)-fgd_rule_plain.value(&node, &typicals), 480 + 120 + 200);
    node.cpu_milli = 3999;
    assert_int_equal((int)-fgd_rule_plain.value(&node, &typicals), 480 + 720 + 200);
    node.free[0] = 999;
    assert_int_equal((int)(-fgd_rule_plain.value(&node, &typicals) * 10), (2399 * 2 + 2399 * 3 + 2399 * 5));
    assert_int_equal((int)fgd_rule_plain.score(-100, -100), 50);
    assert_int_equal((int)fgd_rule_plain.score(-1000, 0), 73);
}

CASE(what_a_shape_can_use_ends_with_the_cpus, c)
{
    struct fgd_typicals typicals = { .n = 3, .gpu_weight = 0.8 };
    typicals.holes[HOLE_UNITS] = 1;
    typicals.holes[40] = 0.25;
    typicals.shapes[0] = (struct fgd_shape){ .weight = 0.2, .cpu_milli = 1000 };
    typicals.shapes[1] = (struct fgd_shape){ .weight = 0.4, .gpus = 1, .share = 400, .cpu_milli = 4000 };
    typicals.shapes[2] = (struct fgd_shape){ .weight = 0.4, .gpus = 2, .share = SHARE_WHOLE };
    struct fgd_node node = { .cpu_milli = 20000, .n = 3, .free = { 1000, 400, 1000 } };
    /* Idle 2400. The share can use all, five times; two whole GPUs use 2000. The broken GPU is worth 250. */
    double use = (2400 + 2000) / 2.0, holes = 2250;
    assert_float_equal(fgd_rule_plus.value(&node, &typicals), use - 2400 + 10 * (holes - 2400), 1e-6);
    node.cpu_milli = 10000; // for 2.5 of the five
    use = (1200 + 2000) / 2.0;
    assert_float_equal(fgd_rule_plus.value(&node, &typicals), use - 2400 + 10 * (holes - 2400), 1e-6);
    node.cpu_milli = 3999; // for none
    use = 2000 / 2.0;
    assert_float_equal(fgd_rule_plus.value(&node, &typicals), use - 2400 + 10 * (holes - 2400), 1e-6);
    typicals.n = 0; // nothing is known: begun GPUs are worth nothing
    typicals.gpu_weight = typicals.holes[40] = 0;
    assert_float_equal(fgd_rule_plus.value(&node, &typicals), -2400 + 10 * (2000 - 2400), 1e-6);
}

CASE(published_best_fit_counts_what_is_left_in_whole_hundredths, c)
{
    struct fgd_node node = { .cpu_milli = 64000, .n = 2, .free = { 1000, 500 } };
    double value = fgd_rule_best_fit.value(&node, NULL);
    assert_float_equal(value, -(0.25 + 1500 / 16000.0), 1e-9);
    assert_int_equal((int)fgd_rule_best_fit.score(0, value), 65);
}

/* --- prices of holes --- */

static void assert_hole(const double *holes, uint32_t units, double expected)
{
    if (holes[units] < expected - 0.03 || holes[units] > expected + 0.03)
        fail_msg("a hole of %u is worth %.3f, not %.2f", units, holes[units], expected);
}

CASE(a_hole_is_worth_what_its_shares_would_cost_elsewhere, c)
{
    double demand[HOLE_UNITS + 1] = { 0 }, holes[HOLE_UNITS + 1];
    fgd_holes(demand, holes); // no shares are asked for
    assert_hole(holes, 99, 0);
    assert_hole(holes, 100, 1);
    demand[50] = 1; // two to a GPU
    fgd_holes(demand, holes);
    assert_hole(holes, 49, 0);
    assert_hole(holes, 50, 0.5);
    assert_hole(holes, 99, 0.5);
    demand[50] = 0;
    demand[60] = 1; // one to a GPU, which leaves room for 30 for nothing
    demand[30] = 0.5;
    fgd_holes(demand, holes);
    assert_hole(holes, 30, 0);
    assert_hole(holes, 60, 1);
    demand[30] = 4; // more than fit beside them: three to a GPU
    fgd_holes(demand, holes);
    assert_hole(holes, 30, 1 / 3.0);
    assert_hole(holes, 60, 2 / 3.0);
    for (uint32_t units = 1; units <= HOLE_UNITS; units++)
        assert_true(holes[units] >= holes[units - 1]);
}

CASE(shares_that_fill_a_gpu_meet, c)
{
    const struct placement *way = &placement_fgd;
    void *memory = way->open();
    struct sched_request large = { .gpus = 1, .share = 650 }, small = { .gpus = 1, .share = 300 };
    struct sched_request half = { .gpus = 1, .share = 450 }, one = { .gpus = 1 };
    struct allocation held[3];
    add_nodes(c, 1, 4);
    way->learn(memory, c, &large, 30);
    way->learn(memory, c, &small, 60);
    way->learn(memory, c, &half, 60);
    way->learn(memory, c, &one, 50);
    const struct sched_request *order[] = { &large, &half, &small };
    for (int i = 0; i < 3; i++) {
        tell(c, way, memory);
        assert_true(place(c, way, memory, *order[i], &held[i]));
        cluster_book(c, &held[i]);
    }
    assert_int_not_equal(held[1].gpus[0].gpu, held[0].gpus[0].gpu);
    assert_int_equal(held[2].gpus[0].gpu, held[0].gpus[0].gpu); // 650 + 300 and not 450 + 300
    for (int i = 0; i < 3; i++)
        allocation_clear(&held[i]);
    way->close(memory);
}

/* Like every placement that takes nodes in the order of their positions: jobs that end leave the same end
 * empty. */
CASE(of_equal_nodes_the_first_is_filled_whatever_its_name, c)
{
    static const char *const names[][3] = { { "a", "b", "c" }, { "c", "b", "a" }, { "b", "c", "a" } };
    const struct placement *way = &placement_fgd;
    struct sched_request half = { .gpus = 1, .share = 500 };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct allocation found;
        void *memory = way->open();
        cluster_clear(c);
        cluster_init(c);
        for (size_t k = 0; k < 3; k++)
            clusters_add(c, names[i][k], 1);
        tell(c, way, memory);
        assert_true(place(c, way, memory, half, &found));
        assert_string_equal(c->nodes[found.gpus[0].node].name, names[i][0]);
        allocation_clear(&found);
        way->close(memory);
    }
}

/* Four of a hundred are not typical, but eight of their GPUs are: a node with both GPUs free is kept for
 * them. */
CASE(a_request_is_as_typical_as_the_gpus_it_asks_for, c)
{
    const struct placement *way = &placement_fgd;
    void *memory = way->open();
    struct sched_request half = { .gpus = 1, .share = 500 }, one = { .gpus = 1 }, both = { .gpus = 2 };
    struct allocation first, second;
    add_nodes(c, 1, 1);
    clusters_fill(c, "n0", 1);
    clusters_add(c, "free", 2);
    clusters_add(c, "begun", 2);
    clusters_fill(c, "begun", 1);
    way->learn(memory, c, &half, 60);
    way->learn(memory, c, &one, 36);
    way->learn(memory, c, &both, 4);
    tell(c, way, memory);
    assert_true(place(c, way, memory, one, &first));
    assert_string_equal(c->nodes[first.gpus[0].node].name, "begun");
    cluster_book(c, &first);
    tell(c, way, memory);
    assert_true(place(c, way, memory, both, &second));
    assert_string_equal(c->nodes[second.gpus[0].node].name, "free");
    allocation_clear(&first);
    allocation_clear(&second);
    way->close(memory);
}

CASE(memory_alone_counts_as_its_part_of_the_gpu, c)
{
    struct fgd_node view;
    _cleanup_(allocation_clear) struct allocation held;
    add_nodes(c, 1, 2);
    assert_true(clusters_place(
        c, &placement_best_fit, (struct sched_request){ .gpus = 1, .gpu_mem = 30 * GIB }, &held));
    fgd_node_read(c, &c->nodes[0], &view);
    assert_int_equal(view.free[0], 700);
    assert_int_equal(view.free[1], 1000);
    assert_int_equal(fgd_memory_share(25 * GIB, 100 * GIB), 250);
    assert_true(fgd_memory_share(101 * GIB, 100 * GIB) > SHARE_WHOLE);
}

CASE(typical_shapes_cover_most_of_what_was_asked_and_old_habits_fade, c)
{
    _cleanup_(fgd_counts_clear) struct fgd_counts counts;
    struct sched_request one = { .gpus = 1 }, half = { .gpus = 1, .share = 500 }, rare = { .gpus = 3 };
    add_nodes(c, 1, 8);
    fgd_counts_init(&counts);
    fgd_counts_learn(&counts, c, &one, 60);
    fgd_counts_learn(&counts, c, &half, 38);
    fgd_counts_learn(&counts, c, &rare, 2);
    fgd_counts_settle(&counts, c);
    assert_int_equal(counts.typicals.n, 2);
    assert_int_equal(counts.typicals.shapes[0].share, 500);
    assert_false(counts.typicals.is_all_plain);
    uint64_t epoch = counts.typicals.epoch;
    fgd_counts_learn(&counts, c, &rare, 99);
    fgd_counts_settle(&counts, c);
    assert_int_equal(counts.typicals.epoch, epoch); // again when as many have come as before
    fgd_counts_learn(&counts, c, &rare, 10001);
    fgd_counts_settle(&counts, c);
    assert_int_equal(counts.typicals.n, 1);
    assert_int_equal(counts.typicals.shapes[0].gpus, 3);
    assert_true(counts.typicals.is_all_plain);
    for (uint32_t i = 0; i < 1000; i++) // more shapes than there is room for
        fgd_counts_learn(&counts, c, &(struct sched_request){ .gpus = 1, .cpu_milli = i }, 1);
    assert_true(counts.n < 1000);
    fgd_counts_settle(&counts, c);
    assert_true(counts.typicals.n <= TYPICAL_MAX);
}

CASE(a_job_wider_than_all_nodes_counts_as_one_of_a_whole_node, c)
{
    _cleanup_(fgd_counts_clear) struct fgd_counts counts;
    add_nodes(c, 2, 4);
    fgd_counts_init(&counts);
    fgd_counts_learn(&counts, c, &(struct sched_request){ .gpus = 64 }, 50);
    fgd_counts_learn(&counts, c, &(struct sched_request){ .gpus = 6, .nodes = 2 }, 50);
    fgd_counts_settle(&counts, c);
    assert_int_equal(counts.typicals.n, 2);
    assert_int_equal(counts.typicals.shapes[0].gpus, 3);
    assert_int_equal(counts.typicals.shapes[1].gpus, 4);
}

CASE(a_share_goes_to_a_gpu_that_is_broken_already, c)
{
    void *memory = placement_fgd_plain.open();
    struct sched_request half = { .gpus = 1, .share = 500 }, one = { .gpus = 1 };
    struct allocation held[3];
    add_nodes(c, 3, 4);
    placement_fgd_plain.learn(memory, c, &half, 50);
    placement_fgd_plain.learn(memory, c, &one, 50);
    for (int i = 0; i < 3; i++) {
        tell(c, &placement_fgd_plain, memory);
        assert_true(place(c, &placement_fgd_plain, memory, half, &held[i]));
        cluster_book(c, &held[i]);
    }
    assert_int_equal(held[0].gpus[0].node, 0); // all are equal: the lowest
    assert_int_equal(held[1].gpus[0].node, 0);
    assert_int_equal(held[1].gpus[0].gpu, held[0].gpus[0].gpu);
    assert_int_equal(held[2].gpus[0].gpu, 1);
    for (int i = 0; i < 3; i++)
        allocation_clear(&held[i]);
    placement_fgd_plain.close(memory);
}

static void try_kept(struct cluster *c, const struct placement *way)
{
    static const uint32_t shares[] = { 0, 250, 500, 700 };
    void *kept = way->open(), *counted = NULL;
    struct allocation held[HELD];
    uint32_t seed = 3, n = 0;
    struct sched_request requests[8];
    for (uint32_t i = 0; i < 8; i++) {
        requests[i] = (struct sched_request){ .gpus = 1, .share = shares[i % 4], .cpu_milli = 500 * (i + 1) };
        way->learn(kept, c, &requests[i], 10 * (i + 1));
    }
    for (int round = 0; round < 800; round++) {
        const struct sched_request *request = &requests[clusters_draw(&seed, 8)];
        struct allocation fresh;
        counted = way->open();
        for (uint32_t i = 0; i < 8; i++)
            way->learn(counted, c, &requests[i], 10 * (i + 1));
        tell(c, way, kept);
        bool is_placed = place(c, way, kept, *request, &held[n]);
        assert_int_equal(place(c, way, counted, *request, &fresh), is_placed);
        if (is_placed)
            assert_memory_equal(fresh.gpus, held[n].gpus, sizeof(fresh.gpus[0]));
        allocation_clear(&fresh);
        way->close(counted);
        if (is_placed)
            cluster_book(c, &held[n++]);
        while (n > 0 && (n == HELD || !is_placed)) {
            uint32_t i = clusters_draw(&seed, n);
            is_placed = n < HELD;
            cluster_release(c, &held[i]);
            allocation_clear(&held[i]);
            held[i] = held[--n];
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        cluster_release(c, &held[i]);
        allocation_clear(&held[i]);
    }
    way->close(kept);
}

CASE(kept_scores_choose_as_fresh_ones, c)
{
    add_nodes(c, 40, 4);
    try_kept(c, &placement_fgd);
    try_kept(c, &placement_fgd_plain);
    try_kept(c, &placement_best_fit_plain);
}

/* More nodes than are scored for one decision, and shapes that change all the time: some scores are old. */
CASE(nothing_that_fits_is_refused_while_scores_are_due, c)
{
    const struct placement *way = &placement_fgd;
    void *memory = way->open(), *again = way->open();
    uint32_t seed = 11, placed = 0;
    struct allocation a, b;
    add_nodes(c, 1500, 1);
    for (int round = 0; round < 6000; round++) {
        struct sched_request request = {
            .gpus = 1, .share = 100 + 50 * clusters_draw(&seed, 19), .cpu_milli = 100
        };
        way->learn(memory, c, &request, 1);
        way->learn(again, c, &request, 1);
        for (size_t i = 0; i < c->n_dirty; i++)
            way->dirty(again, c, c->dirty[i]);
        tell(c, way, memory);
        bool is_placed = place(c, way, memory, request, &a), fits = false;
        assert_int_equal(place(c, way, again, request, &b), is_placed);
        for (size_t i = 0; i < c->n_nodes && !fits; i++)
            fits = c->nodes[i].gpus[0].share_booked + request.share <= SHARE_WHOLE;
        assert_int_equal(is_placed, fits);
        if (is_placed) {
            assert_memory_equal(a.gpus, b.gpus, sizeof(a.gpus[0]));
            cluster_book(c, &a);
        }
        placed += is_placed;
        allocation_clear(&a);
        allocation_clear(&b);
    }
    assert_true(placed > 1500 && placed < 6000);
    way->close(memory);
    way->close(again);
}

CASE(a_node_that_is_held_is_passed_over_and_comes_back, c)
{
    void *memory = placement_fgd.open();
    struct sched_request half = { .gpus = 1, .share = 500 };
    struct allocation found;
    add_nodes(c, 3, 1);
    tell(c, &placement_fgd, memory);
    assert_true(place(c, &placement_fgd, memory, half, &found));
    uint32_t best = found.gpus[0].node;
    allocation_clear(&found);
    for (int round = 0; round < 2; round++) {
        bool is_held = round == 0;
        c->nodes[best].gpus[0].hold_from_ms = is_held ? 0 : TIME_NEVER;
        c->nodes[best].gpus[0].hold_share = SHARE_WHOLE;
        assert_true(place(c, &placement_fgd, memory, half, &found));
        assert_int_equal(found.gpus[0].node != best, is_held);
        allocation_clear(&found);
    }
    placement_fgd.close(memory);
}

CASE(whole_gpus_alone_are_placed_as_best_fit_does, c)
{
    void *memory = placement_fgd.open();
    uint32_t seed = 5;
    add_nodes(c, 20, 8);
    for (int round = 0; round < 60; round++) {
        struct sched_request request = { .gpus = 1 + clusters_draw(&seed, 4) };
        struct allocation a, b;
        placement_fgd.learn(memory, c, &request, 1);
        tell(c, &placement_fgd, memory);
        bool is_placed = place(c, &placement_fgd, memory, request, &a);
        assert_int_equal(place(c, &placement_best_fit, NULL, request, &b), is_placed);
        if (is_placed) {
            assert_memory_equal(a.gpus, b.gpus, request.gpus * sizeof(a.gpus[0]));
            cluster_book(c, &a);
        }
        allocation_clear(&a);
        allocation_clear(&b);
    }
    placement_fgd.close(memory);
}
