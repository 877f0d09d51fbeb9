/* SPDX-License-Identifier: MIT */
/* What changes outside a pass and must lead to one, or to the right one; and what must not, for ever. */
#include <stdlib.h>

#include "scene.h"
#include "unit_test.h"

static struct scene *open_with(uint32_t nodes, uint32_t gpus)
{
    struct scene *scene = scene_new();
    scene_open(scene, nodes, gpus);
    return scene;
}

/* As after a restart: jobs are known before nodes say what they have. */
TEST(jobs_that_came_before_their_model_start_when_it_comes)
{
    static char model[] = "H200";
    _cleanup_(scene_freep) struct scene *scene = open_with(1, 4);
    struct cluster *cluster = sched_cluster(scene->sched);
    uint64_t all = scene_add(scene, 4, 100), head = scene_add(scene, 4, 100);
    struct sched_job_spec spec = scene_job(scene, 1, 50);
    spec.key.request.model = model;
    uint64_t job = scene_submit(scene, &spec);
    struct cluster_node *node = cluster_set_node(cluster, "late", 64000, 256ULL << 30);
    cluster_set_gpu(cluster, node, 0, "GPU-late", "H200", 24ULL << 30, true);
    assert_true(sched_is_dirty(scene->sched));
    scene_wait(scene, 0);
    assert_true(scene_runs(scene, all));
    assert_false(scene_runs(scene, head));
    assert_true(scene_runs(scene, job));
}

TEST(a_wide_job_is_looked_at_anew_when_no_node_is_wide_enough_any_more)
{
    _cleanup_(scene_freep) struct scene *scene = open_with(3, 2);
    struct cluster *cluster = sched_cluster(scene->sched);
    struct cluster_node *node = cluster_find(cluster, "n0");
    cluster_set_gpu(cluster, node, 2, "GPU-0-2", "RTX 4090", 24ULL << 30, true);
    cluster_set_gpu(cluster, node, 3, "GPU-0-3", "RTX 4090", 24ULL << 30, true);
    uint64_t all = scene_add(scene, 4, 100);               // n0
    uint64_t others = scene_add(scene, 2, 100);            // n1
    struct sched_job_spec head = scene_job(scene, 2, 500); // n2 is paused: it waits for n0 or n1
    struct cluster_node *paused = cluster_find(cluster, "n2");
    paused->is_drained = true;
    cluster_touch(cluster, paused);
    scene_submit(scene, &head);
    uint64_t wide = scene_add(scene, 4, 100); // one node is enough: it needs 4 there
    scene_wait(scene, 0);
    assert_true(scene_runs(scene, all) && scene_runs(scene, others) && !scene_runs(scene, wide));
    cluster_forget_gpus(node); // n0 comes back without any
    cluster_touch(cluster, node);
    scene_wait(scene, 0);
    sched_withdraw(scene->sched, scene->now_ms, head.id);
    scene_wait(scene, 0);
    paused->is_drained = false;
    cluster_touch(cluster, paused);
    scene_wait(scene, 0);
    assert_false(scene_runs(scene, wide));
    scene_end(scene, others);
    assert_true(scene_runs(scene, wide)); // on n1 and n2
}

TEST(the_first_that_waits_has_a_reservation_beside_many_drained_nodes)
{
    _cleanup_(scene_freep) struct scene *scene = open_with(100, 4);
    struct cluster *cluster = sched_cluster(scene->sched);
    for (uint32_t i = 0; i < 60; i++) {
        cluster->nodes[i].is_drained = true;
        cluster_touch(cluster, &cluster->nodes[i]);
    }
    for (int i = 0; i < 40; i++)
        scene_add(scene, 3, 1000 + i);
    uint64_t head = scene_add(scene, 4, 100);
    struct sched_job_status status;
    assert_true(sched_job_status(scene->sched, head, scene->now_ms, &status));
    assert_int_equal(status.shadow_ms, scene->now_ms + 1000000);
}

TEST(a_job_over_its_limit_does_not_wake_all_the_time)
{
    _cleanup_(scene_freep) struct scene *scene = open_with(1, 4);
    struct sched_job_spec spec = scene_job(scene, 4, 100);
    spec.key.limit_ms = 100000;
    scene_submit(scene, &spec);
    scene_add(scene, 4, 100); // waits, with a reservation
    scene_wait(scene, 100);
    uint64_t before = sched_counts(scene->sched)->passes;
    scene_wait(scene, 60);
    assert_true(sched_counts(scene->sched)->passes - before <= 8);
}

TEST(an_empty_queue_sets_no_timers)
{
    _cleanup_(scene_freep) struct scene *scene = scene_new();
    scene->settings.policy = &policy_default;
    scene_open(scene, 1, 4);
    uint64_t first = scene_add(scene, 4, 100), second = scene_add(scene, 4, 100);
    scene_end(scene, first);
    scene_end(scene, second);
    scene_wait(scene, 300);
    assert_int_equal(sched_next_ms(scene->sched), TIME_NEVER);
}

/* GPUs of preemptible jobs count as free for others on a node where something has ended. */
TEST(a_job_behind_the_first_makes_others_give_way_too)
{
    _cleanup_(scene_freep) struct scene *scene = open_with(2, 4);
    struct sched_job_spec spec = scene_job(scene, 2, 1000);
    uint64_t first = scene_add(scene, 2, 1000);
    scene_add(scene, 4, 1000);
    spec.key.is_preemptible = true;
    uint64_t victim = scene_submit(scene, &spec);
    scene_add(scene, 8, 1000);               // the head: both nodes
    uint64_t job = scene_add(scene, 4, 100); // n0 as a whole, once the first is over
    assert_int_equal(scene->n_preempted, 0);
    scene_end(scene, first);
    assert_int_equal(scene->n_preempted, 1);
    assert_int_equal(scene->preempted[0], victim);
    sched_stopped(scene->sched, scene->now_ms, victim, 0);
    scene_wait(scene, 0);
    assert_true(scene_runs(scene, job));
}

/* Without a limit a job may not begin before a reservation of others: the plan must not keep the GPUs for it.
 */
TEST(gpus_reserved_for_later_are_not_kept_for_who_may_not_use_them)
{
    _cleanup_(scene_freep) struct scene *scene = open_with(1, 4);
    struct sched_request request = { .gpus = 4 };
    uint32_t uid = 9;
    char name[] = "class";
    struct sched_reservation reservation = { .id = 1,
        .name = name,
        .uids = &uid,
        .n_uids = 1,
        .from_ms = scene->now_ms + 1000000,
        .until_ms = scene->now_ms + 2000000 };
    assert_int_equal(
        sched_reserve(scene->sched, scene->now_ms, &request, &reservation, &(struct error){ 0 }), 0);
    free(reservation.gpus);
    uint64_t head = scene_add(scene, 4, 100);
    assert_false(scene_runs(scene, head));
    struct sched_job_spec spec = scene_job(scene, 4, 100);
    spec.key.limit_ms = 500000;
    assert_true(scene_runs(scene, scene_submit(scene, &spec)));
    struct sched_job_status status;
    assert_true(sched_job_status(scene->sched, head, scene->now_ms, &status));
    assert_int_equal(status.shadow_ms, reservation.until_ms);
}
