/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "lab/sim/nodes.h"
#include "lab/sim/parking.h"
#include "unit_test.h"

#define GPUS 4U

static void setup(struct cluster *cluster, struct parking *parking, const char *text)
{
    struct sim_nodes nodes = { 0 };
    struct parking_options options;
    struct error err = { 0 };
    assert_int_equal(nodes_read(&nodes, "2x4", &err), 0);
    *cluster = (struct cluster){ 0 };
    cluster_init(cluster);
    nodes_fill_cluster(&nodes, cluster);
    nodes_clear(&nodes);
    assert_int_equal(parking_options_read(&options, text, &err), 0);
    parking_init(parking, &options, cluster->n_nodes, 8);
}

static void teardown(struct cluster *cluster, struct parking *parking)
{
    parking_clear(parking);
    cluster_clear(cluster);
}

TEST(a_node_holds_no_more_parked_gpus_than_its_room_until_one_returns)
{
    struct cluster cluster;
    struct parking parking;
    struct alloc_gpu gpus[] = { { .node = 1, .gpu = 3 }, { .node = 1, .gpu = 2 } };
    struct alloc_node node = { .node = 1 };
    struct allocation place = { .nodes = &node, .n_nodes = 1, .gpus = gpus, .n_gpus = 2 };
    setup(&cluster, &parking, "room=1");
    for (uint32_t job = 0; job < GPUS / 2; job++) {
        assert_true(parking_allows(&parking, &cluster, job, &place));
        assert_int_equal(parking_add(&parking, &cluster, job, &place, 5), 3000 + 2 * 8000);
    }
    assert_false(parking_allows(&parking, &cluster, 7, &place));
    parking_remove(&parking, 0);
    parking_remove(&parking, 0);
    assert_true(parking_allows(&parking, &cluster, 7, &place));
    assert_int_equal(parking.held_milli[1], 2 * SHARE_WHOLE);
    teardown(&cluster, &parking);
}

/* Two jobs leave GPU 0 and GPU 1 of a node at 5 ms, one after the other. */
TEST(who_gets_gpus_waits_until_they_are_empty_and_no_longer)
{
    struct cluster cluster;
    struct parking parking;
    struct alloc_gpu gpus[] = { { .node = 1, .gpu = 0 }, { .node = 1, .gpu = 1 }, { .node = 1, .gpu = 2 } };
    struct alloc_node node = { .node = 1 };
    struct allocation first = { .nodes = &node, .n_nodes = 1, .gpus = &gpus[0], .n_gpus = 1 };
    struct allocation second = { .nodes = &node, .n_nodes = 1, .gpus = &gpus[1], .n_gpus = 1 };
    struct allocation both = { .nodes = &node, .n_nodes = 1, .gpus = gpus, .n_gpus = 2 };
    struct allocation other = { .nodes = &node, .n_nodes = 1, .gpus = &gpus[2], .n_gpus = 1 };
    setup(&cluster, &parking, "load=2s+4s/gpu");
    (void)parking_add(&parking, &cluster, 0, &first, 5);
    (void)parking_add(&parking, &cluster, 1, &second, 5);
    assert_int_equal(parking_delay(&parking, &first, 5), 6000);
    assert_int_equal(parking_delay(&parking, &second, 5), 12000);
    assert_int_equal(parking_delay(&parking, &both, 5), 12000);
    assert_int_equal(parking_delay(&parking, &other, 5), 0);
    assert_int_equal(parking_delay(&parking, &first, 4005), 2000);
    assert_int_equal(parking_delay(&parking, &first, 6005), 0);
    teardown(&cluster, &parking);
}

TEST(a_parked_job_is_bound_to_what_the_model_says)
{
    static const struct {
        const char *text;
        bool has_node;
        size_t n_allow;
    } rows[] = { { "where=any", false, 0 }, { "where=node", true, 0 }, { "where=gpu", true, 2 } };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct cluster cluster;
        struct parking parking;
        struct alloc_gpu gpus[] = { { .node = 1, .gpu = 3 }, { .node = 1, .gpu = 0 } };
        struct alloc_node node = { .node = 1 };
        struct allocation place = { .nodes = &node, .n_nodes = 1, .gpus = gpus, .n_gpus = 2 };
        struct sched_request request = { .gpus = 2 };
        setup(&cluster, &parking, rows[i].text);
        parking_bind(&parking, 3, &request);
        assert_null(request.nodelist);
        (void)parking_add(&parking, &cluster, 3, &place, 0);
        parking_bind(&parking, 3, &request);
        assert_int_equal(request.nodelist != NULL, rows[i].has_node);
        if (rows[i].has_node)
            assert_string_equal(request.nodelist, cluster.nodes[1].name);
        assert_int_equal(request.n_allow, rows[i].n_allow);
        if (request.n_allow > 0) {
            assert_int_equal(request.allow[0], 0);
            assert_int_equal(request.allow[1], 3);
        }
        teardown(&cluster, &parking);
    }
}

TEST(jobs_of_several_nodes_and_a_part_of_the_commands_are_never_parked)
{
    struct cluster cluster;
    struct parking parking;
    struct alloc_gpu gpus[] = { { .node = 0, .gpu = 0 }, { .node = 1, .gpu = 0 } };
    struct alloc_node nodes[] = { { .node = 0 }, { .node = 1 } };
    struct allocation wide = { .nodes = nodes, .n_nodes = 2, .gpus = gpus, .n_gpus = 2 };
    struct allocation one = { .nodes = nodes, .n_nodes = 1, .gpus = gpus, .n_gpus = 1 };
    unsigned allowed = 0;
    setup(&cluster, &parking, "refuse=25%");
    for (uint64_t command = 0; command < 4000; command++) {
        parking_know(&parking, 3, command);
        assert_false(parking_allows(&parking, &cluster, 3, &wide));
        allowed += parking_allows(&parking, &cluster, 3, &one);
    }
    assert_in_range(allowed, 2850, 3150);
    teardown(&cluster, &parking);
}

TEST(a_model_that_cannot_be_is_refused_with_the_value)
{
    static const char *const rows[][2] = {
        { "where=box", "where=box" },
        { "wher=any", "'wher'" },
        { "any", "'any'" },
        { "room=-1", "room=-1" },
        { "room=2x", "room=2x" },
        { "room=nan", "room=nan" },
        { "save=3s+8s/cpu", "8s/cpu" },
        { "load=soon", "soon" },
        { "refuse=101", "101" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct parking_options options;
        struct error err = { 0 };
        assert_true(parking_options_read(&options, rows[i][0], &err) < 0);
        assert_non_null(strstr(err.message, rows[i][1]));
    }
}
