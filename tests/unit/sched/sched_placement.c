/* SPDX-License-Identifier: MIT */
#include "clusters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CASE(name, c) TEST_ON(name, struct cluster *c, clusters_open, clusters_close)

#define NODES 24U
#define WIDTH 8U
#define HELD  400U

/* "node:gpu,gpu node:gpu" */
static void assert_placed(
    struct cluster *c, const struct placement *placement, struct sched_request request, const char *expected)
{
    struct allocation found;
    char text[256] = "";
    size_t length = 0;
    if (clusters_place(c, placement, request, &found)) {
        for (size_t i = 0; i < found.n_gpus; i++) {
            const struct alloc_gpu *gpu = &found.gpus[i];
            bool is_new = i == 0 || gpu[-1].node != gpu->node;
            length +=
                (size_t)snprintf(text + length, sizeof(text) - length, "%s%s%s%u", is_new && i > 0 ? " " : "",
                    is_new ? c->nodes[gpu->node].name : ",", is_new ? ":" : "", gpu->gpu);
        }
        for (size_t i = 0; found.n_gpus == 0 && i < found.n_nodes; i++)
            (void)snprintf(text, sizeof(text), "%s", c->nodes[found.nodes[i].node].name);
    }
    allocation_clear(&found);
    assert_string_equal(text, expected);
}

CASE(best_fit_takes_the_fullest_node_and_first_fit_the_first, c)
{
    clusters_add(c, "a", 4);
    clusters_add(c, "b", 4);
    clusters_add(c, "c", 4);
    clusters_fill(c, "b", 2);
    clusters_fill(c, "c", 2);
    assert_placed(c, &placement_best_fit, (struct sched_request){ .gpus = 1 }, "b:2");
    assert_placed(c, &placement_first_fit, (struct sched_request){ .gpus = 1 }, "a:0");
    assert_placed(c, &placement_best_fit, (struct sched_request){ .gpus = 2 }, "c:2,3");
    assert_placed(c, &placement_best_fit, (struct sched_request){ .gpus = 4 }, "");
}

CASE(spread_takes_the_node_with_the_most_gpus_free, c)
{
    clusters_add(c, "a", 4);
    clusters_add(c, "b", 4);
    clusters_add(c, "c", 2);
    clusters_fill(c, "a", 1);
    assert_placed(c, &placement_spread, (struct sched_request){ .gpus = 1 }, "b:0");
    assert_placed(c, &placement_spread, (struct sched_request){ .gpus = 1 }, "a:1");
    assert_placed(c, &placement_spread, (struct sched_request){ .gpus = 2 }, "b:1,2");
    assert_placed(c, &placement_spread, (struct sched_request){ .gpus = 3 }, "");
    assert_placed(c, &placement_spread, (struct sched_request){ .gpus = 1, .share = 300 }, "a:2");
    assert_placed(c, &placement_spread, (struct sched_request){ .gpus = 1, .share = 300 }, "a:2");
}

/* "a" has a large GPU first, "b" a MIG instance, a middle one and a whole GPU that is divided into it. */
static void add_sizes(struct cluster *c)
{
    struct cluster_node *node = cluster_set_node(c, "a", 64000, 0);
    (void)cluster_set_gpu(c, node, 0, "a0", "NVIDIA H200", 141 * GIB, true);
    (void)cluster_set_gpu(c, node, 1, "a1", "NVIDIA L40", 48 * GIB, true);
    node = cluster_set_node(c, "b", 64000, 0);
    (void)cluster_set_gpu(c, node, 0, "b0", "NVIDIA H200", 142 * GIB, true);
    (void)cluster_set_gpu(c, node, 1, "b1", "MIG 3g.71gb", 71 * GIB, true);
    (void)cluster_set_gpu(c, node, 2, "b2", "MIG 1g.18gb", 16 * GIB, true);
    (void)cluster_set_gpu(c, node, 3, "b3", "MIG 1g.18gb+me", 16 * GIB, true);
}

CASE(a_request_by_memory_gets_the_smallest_gpu_that_has_it, c)
{
    const struct placement *const all[] = { &placement_fgd, &placement_best_fit, &placement_first_fit };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        cluster_clear(c);
        cluster_init(c);
        add_sizes(c);
        const struct sched_request small = { .gpus = 1, .gpu_mem = 12 * GIB };
        assert_placed(c, all[i], small, "b:2");
        assert_placed(c, all[i], small, "b:3");
        assert_placed(c, all[i], small, "a:1"); // the instances are full
        assert_placed(c, all[i], ((struct sched_request){ .gpus = 1, .gpu_mem = 60 * GIB }), "b:1");
        assert_placed(c, all[i], ((struct sched_request){ .gpus = 1, .gpu_mem = 120 * GIB }), "a:0");
    }
}

CASE(mig_instances_are_requested_by_their_profile, c)
{
    static const struct {
        const char *model, *expected;
        uint32_t gpus;
    } rows[] = {
        { "1g.18gb", "b:2", 1 },
        { "1G.18GB+me", "b:3", 1 },
        { "1g.18gb", "", 2 },
        { "mig", "b:1,2,3", 3 },
        { "3g.71gb|1g.18gb", "b:1,2", 2 },
        { "h200", "a:0 b:0", 2 }, // whole GPUs
        { "g.18gb", "", 1 },
        { NULL, "a:0,1", 2 },
        { NULL, "a:0,1 b:0", 3 }, // several GPUs, none of which is an instance
        { NULL, "", 4 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct error err = { 0 };
        cluster_clear(c);
        cluster_init(c);
        add_sizes(c);
        _cleanup_free_ char *model = xstrdup(rows[i].model);
        const struct sched_request request = { .gpus = rows[i].gpus, .model = model };
        assert_placed(c, &placement_fgd, request, rows[i].expected);
        assert_int_equal(cluster_check(c, &request, &err) == 0, rows[i].expected[0] != '\0');
    }
}

CASE(best_fit_fills_the_fullest_gpu_with_shares, c)
{
    struct gpu_pick picks[] = { { (char[]){ "b" }, 1 } };
    clusters_add(c, "a", 2);
    clusters_add(c, "b", 2);
    assert_placed(c, &placement_best_fit,
        (struct sched_request){ .gpus = 1, .share = 600, .picks = picks, .n_picks = 1 }, "b:1");
    assert_placed(c, &placement_best_fit, (struct sched_request){ .gpus = 1, .share = 300 }, "b:1");
    assert_placed(c, &placement_best_fit, (struct sched_request){ .gpus = 1, .share = 300 }, "a:0");
    assert_placed(c, &placement_best_fit, (struct sched_request){ .gpus = 1, .gpu_mem = 65 * GIB }, "a:0");
    assert_placed(c, &placement_best_fit, (struct sched_request){ .gpus = 2, .share = 900 }, "");
}

CASE(named_gpus_are_given_in_the_order_asked_or_not_at_all, c)
{
    char a[] = "a", b[] = "b";
    struct gpu_pick any[] = { { NULL, 3 }, { NULL, 1 } }, named[] = { { b, 0 }, { a, 2 }, { b, 2 } };
    clusters_add(c, "a", 4);
    clusters_add(c, "b", 4);
    clusters_fill(c, "a", 2);
    assert_placed(
        c, &placement_best_fit, (struct sched_request){ .gpus = 2, .picks = any, .n_picks = 2 }, "b:3,1");
    assert_placed(
        c, &placement_best_fit, (struct sched_request){ .gpus = 2, .picks = any, .n_picks = 2 }, "");
    assert_placed(c, &placement_best_fit, (struct sched_request){ .gpus = 3, .picks = named, .n_picks = 3 },
        "b:0 a:2 b:2");
}

CASE(jobs_without_gpus_go_where_gpus_are_least_disturbed, c)
{
    struct sched_request job = { .cpu_milli = 10000 };
    clusters_add(c, "a", 4);
    clusters_add(c, "b", 4);
    clusters_add(c, "bare", 0);
    clusters_fill(c, "b", 1);
    const char *const expected[] = { "bare", "b", "a", "" };
    for (size_t i = 0; i < 4; i++)
        assert_placed(c, &placement_best_fit, job, expected[i]);
}

CASE(a_job_wider_than_any_node_takes_whole_nodes_and_the_rest_where_it_fits_best, c)
{
    clusters_add(c, "a", 4);
    clusters_add(c, "b", 4);
    clusters_add(c, "c", 4);
    clusters_fill(c, "a", 1);
    assert_placed(c, &placement_fgd, (struct sched_request){ .gpus = 4, .nodes = 5 }, "");
    assert_placed(c, &placement_best_fit, (struct sched_request){ .gpus = 6 }, "b:0,1,2,3 a:1,2");
    assert_placed(c, &placement_best_fit, (struct sched_request){ .gpus = 5 }, "c:0,1,2,3 a:3");
}

CASE(unequal_nodes_serve_a_wide_job_from_the_widest, c)
{
    clusters_add(c, "s1", 2);
    clusters_add(c, "w", 4);
    clusters_add(c, "s2", 2);
    clusters_add(c, "s3", 2);
    clusters_fill(c, "s1", 1);
    assert_placed(c, &placement_best_fit, (struct sched_request){ .gpus = 7 }, "w:0,1,2,3 s2:0,1 s1:1");
}

CASE(wide_nodes_that_could_never_serve_do_not_keep_a_job_waiting, c)
{
    clusters_add(c, "poor", 8)->memory = GIB;
    clusters_add(c, "a", 4);
    clusters_add(c, "b", 4);
    assert_placed(c, &placement_best_fit, (struct sched_request){ .gpus = 8, .memory = 32 * GIB },
        "a:0,1,2,3 b:0,1,2,3");
}

CASE(job_on_n_nodes_is_allocated_on_each, c)
{
    clusters_add(c, "a", 4);
    clusters_add(c, "b", 4);
    clusters_add(c, "c", 4);
    clusters_fill(c, "b", 2);
    assert_placed(c, &placement_best_fit, (struct sched_request){ .gpus = 4, .nodes = 2 }, "b:2,3 a:0,1");
    assert_placed(
        c, &placement_best_fit, (struct sched_request){ .gpus = 6, .nodes = 2, .gpus_per_node = 3 }, "");
    _cleanup_(allocation_clear) struct allocation found;
    assert_true(clusters_place(
        c, &placement_best_fit, (struct sched_request){ .nodes = 3, .cpu_milli = 1000 }, &found));
    assert_int_equal(found.n_nodes, 3);
}

/* --- the reference simulator's choices --- */

struct reference {
    uint32_t free[NODES];
};

static int best_of(const struct reference *ref, uint32_t gpus, uint64_t used)
{
    int best = -1;
    for (uint32_t i = 0; i < NODES; i++)
        if ((used >> i & 1) == 0 && ref->free[i] >= gpus && (best < 0 || ref->free[i] < ref->free[best]))
            best = (int)i;
    return best;
}

/* `parts[node]`: GPUs taken there. */
static bool place_like_reference(struct reference *ref, uint32_t gpus, uint32_t parts[NODES])
{
    uint32_t full = gpus > WIDTH ? gpus / WIDTH : 0, rest = gpus - full * WIDTH, found = 0;
    uint64_t used = 0;
    memset(parts, 0, NODES * sizeof(*parts));
    for (uint32_t i = 0; i < NODES && found < full; i++) {
        if (ref->free[i] < WIDTH)
            continue;
        parts[i] = WIDTH;
        used |= 1ULL << i;
        found++;
    }
    int best = rest > 0 ? best_of(ref, rest, used) : 0;
    if (found < full || best < 0)
        return false;
    if (rest > 0)
        parts[best] = rest;
    for (uint32_t i = 0; i < NODES; i++)
        ref->free[i] -= parts[i];
    return true;
}

CASE(consolidate_chooses_as_the_reference_simulator, c)
{
    struct reference ref;
    struct allocation held[HELD];
    uint32_t seed = 11, n = 0, placed = 0, wide = 0;
    char name[16];
    for (uint32_t i = 0; i < NODES; i++) {
        (void)snprintf(name, sizeof(name), "n%u", i);
        clusters_add(c, name, WIDTH);
        ref.free[i] = WIDTH;
    }
    for (int round = 0; round < 3000; round++) {
        static const uint32_t sizes[] = { 1, 1, 1, 2, 3, 4, 8, 8, 12, 16, 20, 25 };
        uint32_t gpus = sizes[clusters_draw(&seed, sizeof(sizes) / sizeof(sizes[0]))], parts[NODES],
                 got[NODES] = { 0 };
        bool is_placed = place_like_reference(&ref, gpus, parts);
        assert_int_equal(
            clusters_place(c, &placement_consolidate, (struct sched_request){ .gpus = gpus }, &held[n]),
            is_placed);
        for (size_t i = 0; i < held[n].n_gpus; i++)
            got[held[n].gpus[i].node]++;
        if (is_placed)
            assert_memory_equal(got, parts, sizeof(got));
        n += is_placed;
        placed += is_placed;
        wide += is_placed && gpus > WIDTH;
        while (n > 0 && (!is_placed || n == HELD) && clusters_draw(&seed, 3) > 0) {
            uint32_t i = clusters_draw(&seed, n);
            for (size_t k = 0; k < held[i].n_gpus; k++)
                ref.free[held[i].gpus[k].node]++;
            cluster_release(c, &held[i]);
            allocation_clear(&held[i]);
            held[i] = held[--n];
        }
    }
    assert_true(placed > 1000 && wide > 100);
    for (uint32_t i = 0; i < n; i++)
        allocation_clear(&held[i]);
}

/* --- every way finds something if and only if something fits --- */

static void add_random_nodes(struct cluster *c, uint32_t *seed)
{
    static const char *const models[] = { "A100", "H200", "L4" };
    for (uint32_t i = 0; i < NODES; i++) {
        char name[16], uuid[32];
        (void)snprintf(name, sizeof(name), "n%u", i);
        struct cluster_node *node = cluster_set_node(
            c, name, 1000 * (1 + clusters_draw(seed, 32)), clusters_draw(seed, 2) * 64 * GIB);
        uint32_t gpus = clusters_draw(seed, 9), model = clusters_draw(seed, 3);
        for (uint32_t k = 0; k < gpus; k++) {
            (void)snprintf(uuid, sizeof(uuid), "%u-%u", i, k);
            struct cluster_gpu *gpu = cluster_set_gpu(
                c, node, k, uuid, models[clusters_draw(seed, 8) == 0 ? 0 : model], 80 * GIB, true);
            gpu->pcie_switch = (int16_t)(k / 2);
            gpu->is_paused = clusters_draw(seed, 20) == 0;
            gpu->closed = clusters_draw(seed, 20) == 0 ? 1U << clusters_draw(seed, 4) : 0;
            gpu->memory_external = clusters_draw(seed, 20) == 0 ? clusters_draw(seed, 90) * GIB : 0;
        }
        node->is_drained = clusters_draw(seed, 20) == 0;
        cluster_touch(c, node);
    }
}

static void hold_at_random(struct cluster *c, uint32_t *seed)
{
    struct cluster_node *node = &c->nodes[clusters_draw(seed, NODES)];
    node->hold_from_ms = clusters_draw(seed, 2000);
    node->hold_cpu_milli = 1000 * clusters_draw(seed, 8);
    for (size_t i = 0; i < node->n_gpus; i++) {
        node->gpus[i].hold_from_ms = clusters_draw(seed, 3) == 0 ? clusters_draw(seed, 2000) : TIME_NEVER;
        node->gpus[i].hold_share = clusters_draw(seed, 2) == 0 ? SHARE_WHOLE : clusters_draw(seed, 1000);
    }
}

static bool fits_somewhere(
    const struct cluster *c, const struct sched_request *request, const struct fit *fit)
{
    for (size_t i = 0; i < c->n_nodes; i++)
        if (fit_host(&c->nodes[i], request, fit) &&
            fit_count(c, &c->nodes[i], request, fit, request->gpus) >= request->gpus)
            return true;
    return false;
}

static struct sched_request random_request(uint32_t *seed, char *model, uint32_t *allow)
{
    struct sched_request request = {
        .nodes = 1, .gpus = clusters_draw(seed, 5), .cpu_milli = 500 * clusters_draw(seed, 9)
    };
    if (clusters_draw(seed, 3) == 0)
        request.memory = clusters_draw(seed, 20) * GIB;
    if (request.gpus == 0) {
        request.cpu_milli += 500;
        return request;
    }
    if (clusters_draw(seed, 2) == 0)
        request.share = 50 * (1 + clusters_draw(seed, 19));
    if (clusters_draw(seed, 4) == 0)
        request.gpu_mem = (1 + clusters_draw(seed, 60)) * GIB;
    if (clusters_draw(seed, 4) == 0)
        request.model = model;
    if (clusters_draw(seed, 5) == 0) {
        request.allow = allow;
        request.n_allow = 4;
    }
    return request;
}

static void try_way(struct cluster *c, const struct placement *way, uint32_t seed)
{
    void *memory = way->open != NULL ? way->open() : NULL;
    struct allocation held[HELD];
    uint32_t n = 0, placed = 0, refused = 0, allow[] = { 0, 2, 3, 5 };
    char model[] = "a100|l4";
    add_random_nodes(c, &seed);
    for (int round = 0; round < 1500; round++) {
        struct sched_request request = random_request(&seed, model, allow);
        struct fit fit = clusters_fit();
        struct error err;
        uint64_t work = 0;
        hold_at_random(c, &seed);
        if (way->learn != NULL)
            way->learn(memory, c, &request, 1);
        for (size_t i = 0; way->dirty != NULL && i < c->n_dirty; i++)
            way->dirty(memory, c, c->dirty[i]);
        c->n_dirty = 0;
        bool is_placed = placement_choose(way, memory, c, &request, &fit, &held[n], &work);
        assert_int_equal(is_placed, fits_somewhere(c, &request, &fit));
        placed += is_placed;
        refused += !is_placed;
        if (is_placed) {
            assert_int_equal(held[n].n_gpus, request.gpus);
            cluster_book(c, &held[n++]);
        }
        assert_int_equal(cluster_invariant(c, &err), 0);
        while (n > 0 && (!is_placed || n == HELD) && clusters_draw(&seed, 4) > 0) {
            uint32_t i = clusters_draw(&seed, n);
            cluster_release(c, &held[i]);
            allocation_clear(&held[i]);
            held[i] = held[--n];
        }
    }
    assert_true(placed > 300 && refused > 100);
    for (uint32_t i = 0; i < n; i++) {
        cluster_release(c, &held[i]);
        allocation_clear(&held[i]);
    }
    for (size_t i = 0; i < c->n_nodes; i++)
        for (size_t k = 0; k < c->nodes[i].n_gpus; k++)
            assert_true(cluster_gpu_is_empty(&c->nodes[i].gpus[k]));
    if (way->close != NULL)
        way->close(memory);
}

CASE(every_way_places_what_fits_somewhere_and_nothing_else, c)
{
    for (size_t i = 0; placements[i] != NULL; i++) {
        for (uint32_t seed = 1; seed <= 4; seed++) {
            cluster_clear(c);
            cluster_init(c);
            try_way(c, placements[i], seed);
        }
    }
}

CASE(ways_are_found_by_name, c)
{
    assert_ptr_equal(placement_find("fgd"), &placement_fgd);
    assert_ptr_equal(placement_find("best-fit"), &placement_best_fit);
    assert_null(placement_find("worst-fit"));
}
