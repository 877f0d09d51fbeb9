/* SPDX-License-Identifier: MIT */
/* How many jobs without GPUs a node starts at a time (node_starts). */
#include <string.h>

#include "scene.h"
#include "sched/sched_private.h"
#include "sched/why.h"
#include "unit_test.h"

static int open_scene(void **state)
{
    struct scene *scene = scene_new();
    scene->settings.node_starts = 2;
    scene_open(scene, 1, 4);
    *state = scene;
    return 0;
}

#define CASE(name, scene) TEST_ON(name, struct scene *scene, open_scene, scene_close)

static uint64_t add_cpu(struct scene *scene)
{
    return scene_add(scene, 0, 600);
}

/* The command runs; the next job that waited for this may start. */
static void note_start(struct scene *scene, uint64_t job)
{
    sched_started(scene->sched, scene->now_ms, job);
    sched_pass(scene->sched, scene->now_ms);
}

CASE(the_next_job_is_allocated_when_a_start_is_reported, scene)
{
    uint64_t jobs[6];
    for (size_t i = 0; i < 6; i++)
        jobs[i] = add_cpu(scene);
    for (size_t i = 0; i + 2 < 6; i++) {
        assert_true(scene_runs(scene, jobs[i + 1]));
        assert_false(scene_runs(scene, jobs[i + 2]));
        note_start(scene, jobs[i]);
        assert_true(scene_runs(scene, jobs[i + 2]));
    }
}

CASE(an_end_or_a_return_before_the_start_counts_too, scene)
{
    uint64_t first = add_cpu(scene), second = add_cpu(scene), third = add_cpu(scene), fourth = add_cpu(scene);
    scene_end(scene, first);
    assert_true(scene_runs(scene, third));
    assert_false(scene_runs(scene, fourth));
    sched_stopped(scene->sched, scene->now_ms, second, 0);
    sched_withdraw(scene->sched, scene->now_ms, second);
    sched_pass(scene->sched, scene->now_ms);
    assert_true(scene_runs(scene, fourth));
}

TEST_WITH(jobs_with_gpus_and_on_several_nodes_do_not_wait, open_scene, scene_close)
{
    struct scene *scene = *state;
    scene_free(scene);
    *state = scene = scene_new();
    scene->settings.node_starts = 1;
    scene_open(scene, 2, 4);
    (void)add_cpu(scene);
    (void)add_cpu(scene);
    uint64_t blocked = add_cpu(scene);
    assert_false(scene_runs(scene, blocked));
    assert_true(scene_runs(scene, scene_add(scene, 1, 600)));
    struct sched_job_spec wide = scene_job(scene, 0, 600);
    wide.key.request.nodes = 2;
    assert_true(scene_runs(scene, scene_submit(scene, &wide)));
    assert_false(scene_runs(scene, blocked));
}

TEST_WITH(another_node_takes_it, open_scene, scene_close)
{
    struct scene *scene = *state;
    scene_free(scene);
    *state = scene = scene_new();
    scene->settings.node_starts = 1;
    scene_open(scene, 2, 4);
    assert_true(scene_runs(scene, add_cpu(scene)));
    assert_true(scene_runs(scene, add_cpu(scene)));
    assert_false(scene_runs(scene, add_cpu(scene)));
}

/* The user's home hangs: the commands never start. */
CASE(a_start_that_hangs_delays_others_for_a_bounded_time, scene)
{
    (void)add_cpu(scene);
    (void)add_cpu(scene);
    uint64_t third = add_cpu(scene);
    scene_wait(scene, 29);
    assert_false(scene_runs(scene, third));
    scene_wait(scene, 2);
    assert_true(scene_runs(scene, third));
}

CASE(nothing_is_preempted_for_it, scene)
{
    struct sched_job_spec yielding = scene_job(scene, 0, 600);
    yielding.key.is_preemptible = true;
    (void)scene_submit(scene, &yielding);
    (void)add_cpu(scene);
    uint64_t third = add_cpu(scene);
    assert_false(scene_runs(scene, third));
    assert_int_equal(scene->n_preempted, 0);
}

CASE(the_first_in_the_queue_is_the_next_to_start, scene)
{
    uint64_t first = add_cpu(scene);
    (void)add_cpu(scene);
    uint64_t third = add_cpu(scene);
    struct sched_job_spec urgent = scene_job(scene, 0, 600);
    urgent.key.priority = 10;
    (void)scene_submit(scene, &urgent);
    note_start(scene, first);
    assert_true(scene_runs(scene, urgent.id));
    assert_false(scene_runs(scene, third));
}

CASE(elements_of_an_array_wait_as_well, scene)
{
    struct sched_job_spec array = scene_job(scene, 0, 600);
    array.is_array = true;
    array.elements = 4;
    (void)scene_submit(scene, &array);
    assert_int_equal(scene_starts_from(scene, array.id), 2);
    note_start(scene, scene_start_of(scene, scene->starts[0].job)->job);
    assert_int_equal(scene_starts_from(scene, array.id), 3);
}

CASE(attempts_count_again_after_a_restart, scene)
{
    struct allocation allocation = { .n_nodes = 1, .nodes = (struct alloc_node[]){ { .node = 0 } } };
    struct sched_job_spec specs[2] = { scene_job(scene, 0, 600), scene_job(scene, 0, 600) };
    sched_resume(scene->sched, scene->now_ms, &specs[0], &allocation, 0);
    sched_resume(scene->sched, scene->now_ms, &specs[1], &allocation, scene->now_ms - 1000); // runs
    assert_true(scene_runs(scene, add_cpu(scene)));
    uint64_t next = add_cpu(scene);
    assert_false(scene_runs(scene, next));
    note_start(scene, specs[0].id);
    assert_true(scene_runs(scene, next));
}

CASE(the_bound_can_be_changed_and_lifted, scene)
{
    uint64_t jobs[5];
    for (size_t i = 0; i < 5; i++)
        jobs[i] = add_cpu(scene);
    scene->settings.node_starts = 3;
    sched_configure(scene->sched, scene->now_ms, &scene->settings);
    sched_pass(scene->sched, scene->now_ms);
    assert_true(scene_runs(scene, jobs[2]));
    assert_false(scene_runs(scene, jobs[3]));
    scene->settings.node_starts = 0;
    sched_configure(scene->sched, scene->now_ms, &scene->settings);
    sched_pass(scene->sched, scene->now_ms);
    assert_true(scene_runs(scene, jobs[4]));
    for (size_t i = 0; i < 5; i++)
        note_start(scene, jobs[i]);
    assert_int_equal(sched_cluster(scene->sched)->nodes[0].starts, 0);
}

CASE(a_forecast_does_not_wait_for_reports, scene)
{
    (void)add_cpu(scene);
    (void)add_cpu(scene);
    uint64_t third = add_cpu(scene);
    _cleanup_(scene_freep) struct scene *copy = scene_fork(scene, 10);
    sched_pass(copy->sched, copy->now_ms);
    assert_true(scene_runs(copy, third));
}

CASE(why_says_it_in_a_sentence, scene)
{
    struct why why;
    (void)add_cpu(scene);
    (void)add_cpu(scene);
    uint64_t third = add_cpu(scene);
    why_reasons(scene->sched, scene->now_ms, third, true, &why);
    assert_int_equal(why.n_reasons, 1);
    assert_string_equal(why_code_name(why.reasons[0].code), "node_starting");
    assert_string_equal(
        why.reasons[0].text, "node n0 is starting 2 other jobs without GPUs, the maximum at a time");
}
