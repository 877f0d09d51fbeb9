/* SPDX-License-Identifier: MIT */
#include "clusters.h"

#include "job/cluster_change.h"
#include "sched/placement/topology.h"

static const struct sched_request whole = { .gpus = 1 }, half = { .gpus = 1, .share = 500 };

static int open_cluster(void **state)
{
    static struct cluster cluster;
    cluster_init(&cluster);
    clusters_add(&cluster, "box", 8);
    *state = &cluster;
    return 0;
}

static int close_cluster(void **state)
{
    cluster_clear(*state);
    return 0;
}

#define CASE(name, c) TEST_ON(name, struct cluster *c, open_cluster, close_cluster)

static bool fits(struct cluster *c, const struct sched_request *request, const struct fit *fit)
{
    return fit_gpu(c, &c->nodes[0], &c->nodes[0].gpus[0], request, fit);
}

CASE(a_share_fits_while_thousandths_memory_and_slots_are_left, c)
{
    struct cluster_gpu *gpu = &c->nodes[0].gpus[0];
    struct fit fit = clusters_fit();
    struct sched_request memory = { .gpus = 1, .gpu_mem = 60 * GIB };
    gpu->share_slots = 2;
    gpu->share_booked = 500;
    gpu->memory_booked = 50 * GIB;
    assert_true(fits(c, &half, &fit));
    assert_false(fits(c, &whole, &fit));
    assert_false(fits(c, &memory, &fit));
    gpu->share_booked = 501;
    assert_false(fits(c, &half, &fit));
    gpu->share_booked = 100;
    gpu->share_slots = UINT64_MAX & ~1ULL;
    assert_false(fits(c, &half, &fit));
    gpu->share_slots = 0;
    gpu->share_booked = 0;
    gpu->memory_booked = 0;
    gpu->memory_bytes = 0; // not known
    assert_true(fits(c, &half, &fit));
    assert_false(fits(c, &memory, &fit));
}

CASE(external_process_does_not_block_its_own_adoption, c)
{
    struct cluster_gpu *gpu = &c->nodes[0].gpus[0];
    struct fit fit = clusters_fit();
    struct sched_request adopted = { .gpus = 1, .adopted_pid = 4711 },
                         other = { .gpus = 1, .adopted_pid = 4712 };
    gpu->closed = DEVICE_EXTERNAL;
    gpu->memory_external = GIB;
    gpu->adoptee = 4711;
    assert_true(fits(c, &adopted, &fit));
    assert_false(fits(c, &other, &fit));
    assert_false(fits(c, &whole, &fit));
    gpu->adoptee = 0;
    assert_false(fits(c, &adopted, &fit));
    gpu->adoptee = 4711;
    gpu->closed |= DEVICE_UNCLEAN;
    assert_false(fits(c, &adopted, &fit));
}

CASE(what_is_held_is_left_to_its_owner_and_to_those_who_end_before, c)
{
    struct cluster_gpu *gpu = &c->nodes[0].gpus[0];
    struct fit fit = clusters_fit();
    gpu->hold_from_ms = 500;
    gpu->hold_share = 600;
    gpu->hold_class = 7;
    assert_false(fits(c, &whole, &fit));
    assert_false(fits(c, &half, &fit));
    gpu->hold_share = 500;
    assert_true(fits(c, &half, &fit));
    gpu->hold_share = SHARE_WHOLE;
    assert_false(fits(c, &(struct sched_request){ .gpus = 1, .gpu_mem = 1 }, &fit));
    fit.end_ms = 500;
    assert_true(fits(c, &whole, &fit));
    fit.end_ms = 501;
    fit.class_number = 7;
    assert_true(fits(c, &whole, &fit));
    gpu->hold_class = fit.class_number = 0; // what is held for several is nobody's
    assert_false(fits(c, &whole, &fit));
}

CASE(what_its_node_calls_closed_is_given_to_nobody, c)
{
    struct cluster_gpu *gpu = &c->nodes[0].gpus[0];
    struct fit fit = clusters_fit();
    const uint32_t bits[] = { DEVICE_EXTERNAL, DEVICE_UNHEALTHY, DEVICE_UNCLEAN, 1U << 20 };
    for (size_t i = 0; i < sizeof(bits) / sizeof(bits[0]); i++) {
        gpu->closed = bits[i];
        assert_false(fits(c, &whole, &fit));
        assert_false(fits(c, &half, &fit));
    }
    gpu->closed = 0;
    assert_true(fits(c, &whole, &fit));
}

CASE(a_crowded_gpu_takes_no_further_share, c)
{
    struct cluster_gpu *gpu = &c->nodes[0].gpus[0];
    struct fit fit = clusters_fit();
    gpu->share_slots = 2;
    gpu->share_booked = 100;
    gpu->closed = DEVICE_CROWDED;
    assert_false(fits(c, &half, &fit));
    gpu->share_slots = 0; // those who crowded it have gone
    gpu->share_booked = 0;
    assert_true(fits(c, &half, &fit));
    assert_true(fits(c, &whole, &fit));
    gpu->closed = 0;
}

CASE(memory_of_others_leaves_the_rest_to_shares_and_nothing_whole, c)
{
    struct cluster_gpu *gpu = &c->nodes[0].gpus[0];
    struct fit fit = clusters_fit();
    struct sched_request rest = { .gpus = 1, .gpu_mem = 30 * GIB };
    gpu->memory_external = 70 * GIB;
    assert_false(fits(c, &whole, &fit));
    assert_false(fits(c, &half, &fit));
    assert_true(fits(c, &rest, &fit));
    gpu->memory_booked = 1;
    gpu->share_slots = 2;
    assert_false(fits(c, &rest, &fit));
    gpu->memory_external = UINT64_MAX;
    assert_false(fits(c, &(struct sched_request){ .gpus = 1, .gpu_mem = 1 }, &fit));
    gpu->memory_external = gpu->memory_booked = gpu->share_slots = 0;
}

CASE(held_cpus_and_memory_are_kept_as_well, c)
{
    struct cluster_node *node = &c->nodes[0];
    struct fit fit = clusters_fit();
    struct sched_request request = { .gpus = 1, .cpu_milli = 8000, .memory = 32 * GIB };
    node->hold_from_ms = 10;
    node->hold_cpu_milli = 8000;
    node->hold_memory = 32 * GIB;
    assert_true(fit_host(node, &request, &fit));
    node->hold_cpu_milli++;
    assert_false(fit_host(node, &request, &fit));
    node->hold_cpu_milli = 0;
    node->hold_memory++;
    assert_false(fit_host(node, &request, &fit));
    node->memory = 0; // not known, not counted
    assert_true(fit_host(node, &request, &fit));
    node->is_drained = true;
    assert_false(fit_host(node, &request, &fit));
}

CASE(a_reservation_keeps_out_others_now_and_those_who_might_not_end_in_time, c)
{
    struct cluster_booking booking = { .reservation = 5, .from_ms = 100, .until_ms = 200 };
    struct cluster_gpu *gpu = &c->nodes[0].gpus[0];
    const uint64_t own[] = { 5 };
    struct fit fit = clusters_fit();
    gpu->bookings = &booking;
    gpu->n_bookings = 1;
    assert_false(fits(c, &whole, &fit));
    fit.limit_ms = 100;
    assert_true(fits(c, &whole, &fit));
    fit.limit_ms = 101;
    fit.may_give_way = true;
    assert_true(fits(c, &whole, &fit));
    fit.now_ms = 100;
    assert_false(fits(c, &whole, &fit));
    fit.reservations = own;
    fit.n_reservations = 1;
    assert_true(fits(c, &whole, &fit));
    fit.n_reservations = 0;
    fit.now_ms = 200;
    assert_true(fits(c, &whole, &fit));
    gpu->bookings = NULL;
    gpu->n_bookings = 0;
}

CASE(model_and_allowed_set_decide_which_gpus_suit, c)
{
    struct fit fit = clusters_fit();
    char one[] = "a100|h200", other[] = "a100";
    uint32_t allow[] = { 1, 3 };
    struct sched_request request = { .gpus = 1, .model = one };
    assert_true(fits(c, &request, &fit));
    request.model = other;
    assert_false(fits(c, &request, &fit));
    request = (struct sched_request){ .gpus = 2, .allow = allow, .n_allow = 2 };
    assert_int_equal(fit_count(c, &c->nodes[0], &request, &fit, 8), 2);
    _cleanup_(allocation_clear) struct allocation found = { 0 };
    fit_take(c, &c->nodes[0], &request, &fit, 2, -1, &found);
    assert_int_equal(found.gpus[0].gpu, 1);
    assert_int_equal(found.gpus[1].gpu, 3);
}

CASE(a_share_goes_where_least_is_left_over_or_to_the_gpu_named, c)
{
    struct fit fit = clusters_fit();
    struct cluster_gpu *gpus = c->nodes[0].gpus;
    struct allocation found = { 0 };
    gpus[4].share_slots = 2;
    gpus[4].share_booked = 400;
    gpus[4].memory_booked = 40 * GIB;
    fit_take(c, &c->nodes[0], &half, &fit, 1, -1, &found);
    fit_take(c, &c->nodes[0], &half, &fit, 1, 6, &found);
    assert_int_equal(found.gpus[0].gpu, 4);
    assert_int_equal(found.gpus[0].slot, 2);
    assert_int_equal(found.gpus[0].share, 500);
    assert_true(found.gpus[0].memory == 50 * GIB);
    assert_int_equal(found.gpus[1].gpu, 6);
    assert_int_equal(found.n_nodes, 1);
    allocation_clear(&found);
    gpus[4].share_slots = gpus[4].share_booked = 0;
    gpus[4].memory_booked = 0;
}

/* --- topology --- */

static void assert_chosen(struct cluster *c, uint32_t count, uint64_t candidates, uint64_t expected)
{
    uint32_t positions[64], n = 0;
    uint64_t chosen = 0;
    for (uint32_t i = 0; i < 64; i++)
        if ((candidates >> i & 1) != 0)
            positions[n++] = i;
    topology_choose(&c->nodes[0], positions, n, count);
    for (uint32_t i = 0; i < count; i++)
        chosen |= 1ULL << positions[i];
    assert_int_equal(chosen, expected);
}

CASE(without_a_topology_the_lowest_indexes_are_taken, c)
{
    assert_chosen(c, 3, 0xfe, 0x0e);
}

CASE(gpus_behind_one_switch_go_together_and_singles_do_not_break_pairs, c)
{
    for (int16_t i = 0; i < 8; i++) {
        c->nodes[0].gpus[i].numa = i / 4;
        c->nodes[0].gpus[i].pcie_switch = i / 2;
    }
    assert_chosen(c, 2, 0xfe, 0x0c); // 0 is taken: not 1 and 2
    assert_chosen(c, 1, 0xfb, 0x08); // 2 is taken: its partner is alone
    assert_chosen(c, 4, 0xfe, 0xf0); // one NUMA node as a whole
    assert_chosen(c, 2, 0x55, 0x05); // no pair of a switch is left: one NUMA node
}

CASE(nvlink_counts_more_than_a_switch, c)
{
    struct cluster_gpu *gpus = c->nodes[0].gpus;
    for (int16_t i = 0; i < 8; i++)
        gpus[i].pcie_switch = i / 4;
    gpus[0].links = 1 << 5;
    gpus[5].links = 1 << 0;
    assert_chosen(c, 2, 0xff, 0x21);
    assert_chosen(c, 4, 0xff, 0x0f); // all pairs count: one link does not make a group
}

CASE(many_gpus_are_grown_into_a_close_group, c)
{
    struct cluster_node *node = clusters_add(c, "box", 40);
    for (int16_t i = 0; i < 40; i++)
        node->gpus[i].pcie_switch = i % 4;
    uint64_t group = 0;
    for (int i = 1; i < 40; i += 4)
        group |= 1ULL << i;
    assert_chosen(c, 10, ((1ULL << 40) - 1) & ~0x10DULL, group);
}
