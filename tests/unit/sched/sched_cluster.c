/* SPDX-License-Identifier: MIT */
#include "clusters.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sched/cluster/node_index.h"
#include "sched/from_record.h"

static int open_box(void **state)
{
    static struct cluster cluster;
    cluster_init(&cluster);
    clusters_add(&cluster, "box", 2);
    *state = &cluster;
    return 0;
}

#define CASE(name, c) TEST_ON(name, struct cluster *c, open_box, clusters_close)

static void assert_refused(
    struct cluster *c, struct sched_request request, const char *message, const char *hint)
{
    struct error err = { 0 };
    assert_int_equal(cluster_check(c, &request, &err), -EBADSLT);
    assert_string_equal(err.message, message);
    if (hint != NULL)
        assert_string_equal(err.hint, hint);
}

static void assert_possible(struct cluster *c, struct sched_request request)
{
    struct error err = { 0 };
    assert_int_equal(cluster_check(c, &request, &err), 0);
}

CASE(a_gpu_that_is_kept_whole_offers_nothing_to_shares, c)
{
    struct cluster_node *box = &c->nodes[0];
    struct node_offer offer;
    box->gpus[0].hold_from_ms = 1000;
    box->gpus[0].hold_share = SHARE_WHOLE;
    box->gpus[1].share_slots = 2;
    box->gpus[1].memory_booked = 90 * GIB;
    cluster_offer(box, HELD_IS_TAKEN, &offer);
    assert_int_equal(offer.share, SHARE_WHOLE);
    assert_int_equal(offer.gpu_mem, 10 * GIB);
    cluster_offer(box, HELD_IS_FREE, &offer);
    assert_int_equal(offer.gpu_mem, 100 * GIB);
}

CASE(a_removed_node_meets_no_request_until_it_is_back, c)
{
    char name[] = "big", only[] = "big";
    struct gpu_pick pick[] = { { name, 0 } };
    struct sched_request three = { .gpus = 3 }, listed = { .gpus = 1, .nodelist = only };
    clusters_add(c, "big", 4);
    double gpus = c->totals.gpus;
    assert_possible(c, three);
    cluster_remove_node(c, "big");
    cluster_remove_node(c, "big");
    cluster_remove_node(c, "nosuch");
    assert_true(c->totals.gpus == gpus - 4);
    assert_refused(c, three, "no node can run it: requested 3 GPUs; box has 2", NULL);
    assert_refused(c, listed, "there is no node 'big'", NULL);
    assert_refused(c, (struct sched_request){ .gpus = 1, .picks = pick, .n_picks = 1 },
        "no node is named \"big\"", "the nodes are: box");
    clusters_add(c, "big", 4);
    assert_true(c->totals.gpus == gpus);
    assert_possible(c, three);
    assert_possible(c, listed);
}

CASE(impossible_requests_on_one_node_are_refused_in_words, c)
{
    char elsewhere[] = "bax", model[] = "A100";
    struct gpu_pick five[] = { { NULL, 5 } }, node[] = { { elsewhere, 0 } };
    uint32_t allow[] = { 1 };
    assert_refused(c, (struct sched_request){ .gpus = 3 }, "no node can run it: requested 3 GPUs; box has 2",
        "request at most 2 GPUs; list them with: mgpu gpus");
    assert_refused(c, (struct sched_request){ .gpus = 1, .picks = five, .n_picks = 1 },
        "GPU 5 does not exist on box, which has 2", "see the GPUs and their numbers: mgpu gpus");
    assert_refused(c, (struct sched_request){ .gpus = 1, .picks = node, .n_picks = 1 },
        "no node is named \"bax\"", "did you mean box? The nodes are: box");
    assert_refused(c, (struct sched_request){ .gpus = 1, .gpu_mem = 101 * GIB },
        "no node has 1 GPU with 101 GiB of memory; the largest has 100 GiB",
        "request at most 100 GiB; list GPUs and their memory with: mgpu gpus");
    assert_refused(c, (struct sched_request){ .gpus = 1, .model = model },
        "no GPU has model \"A100\"; available: NVIDIA H200", "request one of these, or omit the model");
    assert_refused(c, (struct sched_request){ .gpus = 2, .allow = allow, .n_allow = 1 },
        "requested 2 GPUs; one node has at most 1 of those allowed, all nodes 1",
        "request at most 1, or allow more GPUs");
    assert_refused(c, (struct sched_request){ .gpus = 1, .cpu_milli = 16500 },
        "no node can run it: requested 16.5 CPUs; box has 16", "request at most 16 CPUs");
    assert_refused(c, (struct sched_request){ .cpu_milli = 1000, .memory = 65 * GIB },
        "no node can run it: requested 65 GiB of memory; box has 64 GiB", "request at most 64 GiB");
    assert_refused(c, (struct sched_request){ .gpus = 2, .nodes = 2 },
        "the cluster is too small: requested 2 nodes; there is 1", "request at most -N 1");
    assert_possible(c, (struct sched_request){ .gpus = 2, .gpu_mem = 100 * GIB, .cpu_milli = 16000 });
}

CASE(impossible_requests_on_several_nodes_say_what_would_fit, c)
{
    clusters_add(c, "wide", 4);
    assert_possible(c, (struct sched_request){ .gpus = 6 });
    assert_refused(c, (struct sched_request){ .gpus = 6, .nodes = 1 },
        "no node can run it: requested 6 GPUs; wide has 4", "request at most 4 GPUs per node, or -N 2");
    assert_refused(c, (struct sched_request){ .gpus = 7 },
        "no node can run it: requested 7 GPUs; all 2 nodes together have 6, the largest, wide, "
        "has "
        "4",
        NULL);
    assert_refused(c, (struct sched_request){ .gpus = 10, .nodes = 2, .gpus_per_node = 5 },
        "no node can run it: requested 5 GPUs on each of 2 nodes; wide has 4", NULL);
    assert_possible(c, (struct sched_request){ .gpus = 5, .nodes = 2 });
    assert_refused(c, (struct sched_request){ .gpus = 6, .nodes = 2 },
        "no 2 nodes can run it: requested 3 GPUs on each of 2 nodes; only 1 of 2 nodes has 3 "
        "that "
        "qualify",
        "request fewer GPUs, or omit -N to divide them in any way");
    clusters_add(c, "small", 1);
    assert_refused(c, (struct sched_request){ .gpus = 8, .nodes = 3 },
        "no node can run it: requested 8 GPUs; all 3 nodes together have 7, the largest, wide, "
        "has "
        "4",
        NULL);
    assert_refused(c, (struct sched_request){ .gpus = 7, .nodes = 3 },
        "no 3 nodes can run it: requested 3 GPUs on 1 and 2 on 2 of 3 nodes; only 2 of 3 nodes "
        "have "
        "2 that qualify",
        NULL);
    clusters_add(c, "bare", 0)->cpu_milli = 64000;
    assert_possible(c, (struct sched_request){ .cpu_milli = 64000 });
    struct error err = { 0 };
    struct sched_request both = { .gpus = 1, .cpu_milli = 64000 };
    assert_int_equal(cluster_check(c, &both, &err), -EBADSLT);
    assert_string_equal(err.message, "no node has all requested resources: 1 GPU, 64 CPUs");
}

CASE(a_node_that_has_not_spoken_is_not_judged, c)
{
    (void)cluster_node(c, "other");
    assert_possible(c, (struct sched_request){ .gpus = 3 });
    _cleanup_(cluster_clear) struct cluster empty;
    cluster_init(&empty);
    assert_possible(&empty, (struct sched_request){ .gpus = 3 });
}

CASE(what_is_paused_drained_or_lost_counts_as_there, c)
{
    struct cluster_node *node = cluster_find(c, "box");
    node->gpus[0].is_paused = true;
    node->gpus[1].is_present = false;
    node->is_drained = true;
    assert_possible(c, (struct sched_request){ .gpus = 2 });
}

CASE(a_booking_survives_that_its_gpu_is_described_later, c)
{
    struct cluster_node *node = cluster_node(c, "late");
    uint32_t position = node->position;
    (void)cluster_gpu(node, 0, "GPU-late");
    struct alloc_gpu gpu = { .node = position };
    struct alloc_node host = { .node = position };
    struct allocation held = { .gpus = &gpu, .n_gpus = 1, .nodes = &host, .n_nodes = 1 };
    cluster_book(c, &held);
    node = cluster_set_node(c, "late", 1000, 0);
    assert_int_equal(node->position, position);
    cluster_set_gpu(c, node, 3, "GPU-late", "", 24 * GIB, true);
    assert_int_equal(node->gpus[0].index, 3);
    assert_int_equal(node_index_offer(c->index, position)->whole, 0);
    cluster_release(c, &held);
    assert_int_equal(node_index_offer(c->index, position)->whole, 1);
}

CASE(indexes_may_move_and_bookings_stay_with_the_card, c)
{
    clusters_fill(c, "box", 1);
    struct cluster_node *node = cluster_find(c, "box");
    cluster_forget_gpus(node);
    cluster_set_gpu(c, node, 1, "box-0", "", 24 * GIB, true);
    cluster_set_gpu(c, node, 0, "box-1", "", 24 * GIB, true);
    assert_string_equal(node->gpus[0].uuid, "box-0");
    assert_true(node->gpus[0].is_exclusive);
    assert_string_equal(cluster_find_index(node, 0)->uuid, "box-1");
    assert_false(cluster_find_index(node, 0)->is_exclusive);
}

CASE(an_offer_follows_what_is_booked_and_closed, c)
{
    struct allocation held;
    struct node_offer offer = *node_index_offer(c->index, 0);
    assert_int_equal(offer.whole, 2);
    assert_int_equal(offer.cpu_milli, 16000);
    assert_true(clusters_place(c, &placement_best_fit,
        (struct sched_request){ .gpus = 2, .share = 300, .cpu_milli = 4000, .memory = GIB }, &held));
    offer = *node_index_offer(c->index, 0);
    assert_int_equal(offer.whole, 0);
    assert_int_equal(offer.share, 700);
    assert_true(offer.gpu_mem == 70 * GIB);
    assert_int_equal(offer.cpu_milli, 12000);
    assert_true(offer.memory == 63 * GIB);
    cluster_release(c, &held);
    allocation_clear(&held);
    c->nodes[0].is_drained = true;
    cluster_touch(c, &c->nodes[0]);
    offer = *node_index_offer(c->index, 0);
    assert_int_equal(offer.whole + offer.share + offer.cpu_milli + offer.open, 0);
    assert_int_equal(offer.gpus, 2);
}

CASE(an_offer_leaves_out_what_is_closed_and_what_others_take, c)
{
    struct cluster_node *node = &c->nodes[0];
    node->gpus[0].closed = DEVICE_EXTERNAL;
    node->gpus[1].memory_external = 30 * GIB;
    cluster_touch(c, node);
    struct node_offer offer = *node_index_offer(c->index, 0);
    assert_int_equal(offer.open, 1);
    assert_int_equal(offer.whole, 0);
    assert_true(offer.gpu_mem == 70 * GIB);
    assert_in_range(offer.part, 700, 701);
    node->gpus[1].share_slots = 2;
    node->gpus[1].closed = DEVICE_CROWDED;
    cluster_touch(c, node);
    offer = *node_index_offer(c->index, 0);
    assert_int_equal(offer.open, 1);
    assert_int_equal(offer.share + offer.gpu_mem, 0);
}

CASE(a_record_says_what_is_closed, c)
{
    char name[] = "new", first[] = "GPU-a", second[] = "GPU-b";
    struct cluster_device devices[] = {
        { .uuid = first, .memory_bytes = GIB, .closed = DEVICE_UNCLEAN },
        { .uuid = second, .index = 1, .memory_bytes = GIB, .memory_external = GIB / 4 },
    };
    struct cluster_change up = {
        .kind = CHANGE_NODE_UP, .node = name, .devices = { .items = devices, .count = 2 }
    };
    const struct cluster_node *node = cluster_take_node(c, &up);
    assert_int_equal(node->gpus[0].closed, DEVICE_UNCLEAN);
    assert_true(node->gpus[1].memory_external == GIB / 4);
    devices[0].closed = 0;
    devices[1].memory_external = 0;
    node = cluster_take_node(c, &up);
    assert_int_equal(node->gpus[0].closed, 0);
    assert_true(node->gpus[1].memory_external == 0);
}

CASE(a_touched_node_is_listed_once_until_it_was_looked_at, c)
{
    clusters_add(c, "second", 1);
    assert_int_equal(c->n_dirty, 2);
    c->n_dirty = 0;
    uint64_t version = c->version;
    cluster_touch(c, &c->nodes[1]);
    cluster_touch(c, &c->nodes[1]);
    assert_int_equal(c->n_dirty, 1);
    assert_int_equal(c->dirty[0], 1);
    assert_true(c->version == version + 2);
}

CASE(thousands_of_nodes_are_found_by_name, c)
{
    char name[32];
    for (int i = 0; i < 3000; i++) {
        (void)snprintf(name, sizeof(name), "n%d", i);
        (void)cluster_node(c, name);
    }
    for (int i = 0; i < 3000; i++) {
        (void)snprintf(name, sizeof(name), "n%d", i);
        assert_int_equal(cluster_find(c, name)->position, i + 1);
    }
    assert_null(cluster_find(c, "n3000"));
    assert_int_equal(c->n_nodes, 3001);
}

/* Slurm's types of GPUs have no blanks. */
CASE(an_underscore_stands_for_a_blank_of_a_model, c)
{
    char slurm[] = "nvidia_h200", both[] = "a100|nvidia_h", other[] = "nvidia_h100", blank[] = "nvidia-h200";
    assert_possible(c, (struct sched_request){ .gpus = 1, .model = slurm });
    assert_possible(c, (struct sched_request){ .gpus = 1, .model = both });
    assert_refused(c, (struct sched_request){ .gpus = 1, .model = other },
        "no GPU has model \"nvidia_h100\"; available: NVIDIA H200", NULL);
    assert_refused(c, (struct sched_request){ .gpus = 1, .model = blank },
        "no GPU has model \"nvidia-h200\"; available: NVIDIA H200", NULL);
}
