/* SPDX-License-Identifier: MIT */
/* Partitions and nodes that one job has alone: where jobs start, in what order, and what keeps them waiting.
 */
#include <errno.h>
#include <string.h>

#include "scene.h"
#include "sched/why.h"
#include "unit_test.h"

static char debug_name[] = "debug", rest_name[] = "rest";
static char n1[] = "n1", n0[] = "n0";
static char *debug_nodes[] = { n1 }, *rest_nodes[] = { n0 };

/* "debug" has n1 and the priority 5, "rest" has n0. */
static void divide(struct scene *scene)
{
    const struct cluster_partition partitions[] = {
        { .name = debug_name, .nodes = { .items = debug_nodes, .count = 1 }, .priority = 5 },
        { .name = rest_name, .nodes = { .items = rest_nodes, .count = 1 } },
    };
    sched_set_partitions(scene->sched, scene->now_ms, partitions, 2);
}

static int open_scene(void **state)
{
    struct scene *scene = scene_new();
    scene_open(scene, 2, 2);
    divide(scene);
    *state = scene;
    return 0;
}

static int close_scene(void **state)
{
    struct scene *scene = *state;
    struct error err = { 0 };
    assert_int_equal(sched_invariant(scene->sched, &err), 0);
    scene_free(scene);
    return 0;
}

#define CASE(name, scene) TEST_ON(name, struct scene *scene, open_scene, close_scene)

static struct sched_job_spec in(struct scene *scene, char *partition, uint32_t gpus)
{
    struct sched_job_spec spec = scene_job(scene, gpus, 60);
    spec.key.request.partition = partition; // borrowed
    return spec;
}

static uint64_t add(struct scene *scene, char *partition, uint32_t gpus)
{
    struct sched_job_spec spec = in(scene, partition, gpus);
    return scene_submit(scene, &spec);
}

CASE(jobs_start_on_the_nodes_of_their_partition, scene)
{
    for (int i = 0; i < 2; i++)
        assert_int_equal(scene_start_of(scene, add(scene, debug_name, 1))->node, 1);
    uint64_t late = add(scene, debug_name, 1);
    assert_false(scene_runs(scene, late));
    assert_int_equal(scene_start_of(scene, add(scene, rest_name, 1))->node, 0);
    static char both[] = "debug,rest";
    assert_int_equal(scene_start_of(scene, add(scene, both, 1))->node, 0);
}

CASE(a_blocked_partition_holds_nothing_of_another, scene)
{
    (void)add(scene, debug_name, 2);
    assert_false(scene_runs(scene, add(scene, debug_name, 2)));
    struct sched_job_spec longer = in(scene, rest_name, 2);
    longer.key.estimate_ms = 3600 * 1000;
    assert_true(scene_runs(scene, scene_submit(scene, &longer)));
}

CASE(a_partition_of_higher_priority_comes_first, scene)
{
    uint64_t all = scene_add(scene, 4, 60);
    assert_true(scene_runs(scene, all));
    uint64_t plain = scene_add(scene, 2, 60), urgent = add(scene, debug_name, 2);
    struct sched_job_status status;
    assert_true(sched_job_status(scene->sched, urgent, scene->now_ms, &status));
    assert_int_equal(status.position, 1);
    assert_true(sched_job_status(scene->sched, plain, scene->now_ms, &status));
    assert_int_equal(status.position, 2);
}

CASE(of_several_partitions_the_highest_priority_counts, scene)
{
    int32_t priority = 0;
    assert_true(cluster_partition_bits(sched_cluster(scene->sched), "debug,rest", &priority) != 0);
    assert_int_equal(priority, 5);
    (void)cluster_partition_bits(sched_cluster(scene->sched), "rest,debug", &priority);
    assert_int_equal(priority, 5);
}

CASE(waiting_jobs_follow_a_change_of_the_partitions, scene)
{
    struct why why;
    static char gone[] = "gone";
    uint64_t job = add(scene, gone, 1);
    why_reasons(scene->sched, scene->now_ms, job, false, &why);
    assert_int_equal(why.reasons[0].code, WHY_PARTITION);
    assert_string_equal(why.reasons[0].text, "the configuration has no partition gone");
    const struct cluster_partition partition = { .name = gone,
        .nodes = { .items = debug_nodes, .count = 1 } };
    sched_set_partitions(scene->sched, scene->now_ms, &partition, 1);
    sched_pass(scene->sched, scene->now_ms);
    assert_int_equal(scene_start_of(scene, job)->node, 1);
    divide(scene); // a running job keeps its node
    assert_true(scene_runs(scene, job));
}

CASE(a_request_larger_than_its_partition_is_refused, scene)
{
    struct error err = { 0 };
    struct sched_job_spec spec = in(scene, debug_name, 3);
    assert_int_equal(sched_check(scene->sched, &spec, &err), -EBADSLT);
    assert_string_equal(err.message, "partition debug: no node can run it: requested 3 GPUs; n1 has 2");
    spec.key.request.gpus = 2;
    assert_int_equal(sched_check(scene->sched, &spec, &err), 0);
}

CASE(forecasts_know_partitions, scene)
{
    _cleanup_(why_clear) struct why why;
    (void)add(scene, debug_name, 2);
    uint64_t late = add(scene, debug_name, 1);
    why_explain(scene->sched, scene->now_ms, late, NULL, &why);
    assert_int_equal(why.eta_ms, scene->now_ms + 60000);
    assert_non_null(strstr(why.reasons[0].text, "in partition debug; 0 of 2 are free"));
}

/* --- alone --- */

static uint64_t add_alone(struct scene *scene, char *partition, uint32_t gpus, int64_t seconds)
{
    struct sched_job_spec spec = scene_job(scene, gpus, seconds);
    spec.key.request.partition = partition;
    spec.key.request.is_exclusive = true;
    return scene_submit(scene, &spec);
}

CASE(an_exclusive_job_has_its_node_alone, scene)
{
    uint64_t small = add(scene, debug_name, 1), alone = add_alone(scene, debug_name, 1, 60);
    assert_false(scene_runs(scene, alone));
    scene_end(scene, small);
    assert_true(scene_runs(scene, alone));
    uint64_t late = add(scene, debug_name, 1), host = add(scene, debug_name, 0);
    assert_false(scene_runs(scene, late) || scene_runs(scene, host));
    scene_end(scene, alone);
    assert_true(scene_runs(scene, late) && scene_runs(scene, host));
}

CASE(a_waiting_exclusive_job_is_not_starved_by_small_ones, scene)
{
    uint64_t small = add(scene, debug_name, 1), alone = add_alone(scene, debug_name, 1, 60);
    struct sched_job_spec longer = in(scene, debug_name, 1);
    longer.key.estimate_ms = 3600 * 1000;
    assert_false(scene_runs(scene, scene_submit(scene, &longer))); // it would end after `small`
    scene_end(scene, small);
    assert_true(scene_runs(scene, alone));
}

CASE(an_exclusive_job_takes_a_node_that_is_free, scene)
{
    (void)add(scene, debug_name, 1);
    assert_int_equal(scene_start_of(scene, add_alone(scene, NULL, 1, 60))->node, 0);
}
