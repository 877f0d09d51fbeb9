/* SPDX-License-Identifier: MIT */
/* Policies that preempt: which job is preempted, which one starts, and that preemption ends. */
#include <stdlib.h>

#include "scene.h"
#include "sched/sched_private.h"
#include "unit_test.h"

static struct scene *open_with(const char *policy, uint32_t nodes)
{
    struct scene *scene = scene_new();
    scene->settings.policy = policy_find(policy);
    scene->settings.quantum_ms = 60000;
    scene->settings.preempt_cost_ms = 30000;
    scene_open(scene, nodes, 4);
    return scene;
}

/* All preempted jobs stop. */
static void let_go(struct scene *scene)
{
    while (scene->n_preempted > 0)
        sched_stopped(scene->sched, scene->now_ms, scene->preempted[--scene->n_preempted], 0);
    scene_wait(scene, 0);
}

TEST(the_shorter_job_takes_the_place_of_the_longer_one)
{
    _cleanup_(scene_freep) struct scene *scene = open_with("srtf", 1);
    uint64_t longer = scene_add(scene, 4, 10000);
    scene_wait(scene, 100);
    uint64_t shorter = scene_add(scene, 4, 50);
    assert_int_equal(scene->n_preempted, 1);
    assert_int_equal(scene->preempted[0], longer);
    assert_false(scene_runs(scene, shorter));
    let_go(scene);
    assert_true(scene_runs(scene, shorter));
    assert_false(scene_runs(scene, longer));
    scene_wait(scene, 50);
    scene_end(scene, shorter);
    assert_true(scene_runs(scene, longer));
}

TEST(nobody_is_preempted_within_the_quantum)
{
    _cleanup_(scene_freep) struct scene *scene = open_with("srtf", 1);
    scene_add(scene, 4, 10000);
    scene_wait(scene, 10);
    scene_add(scene, 4, 50);
    assert_int_equal(scene->n_preempted, 0);
    scene_wait(scene, 60);
    assert_int_equal(scene->n_preempted, 1);
}

TEST(an_idle_job_gives_way_even_within_the_quantum)
{
    _cleanup_(scene_freep) struct scene *scene = open_with("learnt", 1);
    uint64_t idle = scene_add(scene, 4, 100);
    scene_wait(scene, 10);
    (void)scene_add(scene, 4, 10000);
    assert_int_equal(scene->n_preempted, 0);
    sched_idle(scene->sched, scene->now_ms, idle, true);
    scene_wait(scene, 0);
    assert_int_equal(scene->n_preempted, 1);
    assert_int_equal(scene->preempted[0], idle);
}

/* For all four GPUs no jobs can be preempted by one that takes 400 s: nor by longer ones, but a job that
 * needs one GPU preempts the one whose end is far. */
TEST(only_requests_that_must_fail_are_not_searched_for)
{
    _cleanup_(scene_freep) struct scene *scene = open_with("learnt", 1);
    uint64_t far = scene_add(scene, 1, 10000);
    (void)scene_add(scene, 3, 800);
    scene_wait(scene, 300);
    for (int64_t seconds = 400; seconds < 440; seconds++)
        (void)scene_add(scene, 4, seconds);
    assert_int_equal(scene->n_preempted, 0);
    sched_idle(scene->sched, scene->now_ms, far, false); // another pass over all of them
    scene_wait(scene, 60);
    struct sched_job_spec spec = scene_job(scene, 4, 399);
    (void)scene_submit(scene, &spec); // first in the order, and fails
    assert_int_equal(scene->n_preempted, 0);
    assert_int_equal(scene->sched->failure.searches, 1);
    (void)scene_add(scene, 1, 450);
    assert_int_equal(scene->n_preempted, 1);
    assert_int_equal(scene->preempted[0], far);
}

TEST(who_costs_much_to_preempt_is_left_alone_for_longer)
{
    static const char *const names[] = { "srtf", "learnt" };
    for (size_t i = 0; i < 2; i++) {
        struct scene *scene = scene_new();
        scene->settings.policy = policy_find(names[i]);
        scene->settings.preempt_cost_wide_ms = 300 * 1000; // of more than 8 GPUs
        scene_open(scene, 3, 4);
        scene_add(scene, 12, 10000);
        scene_wait(scene, 100);
        scene_add(scene, 12, 50);
        scene_wait(scene, 490);
        assert_int_equal(scene->n_preempted, 0);
        scene_wait(scene, 20);
        assert_int_equal(scene->n_preempted, 1);
        scene_free(scene);
    }
}

TEST(whoever_used_much_goes_after_those_who_did_not)
{
    _cleanup_(scene_freep) struct scene *scene = open_with("las", 1);
    uint64_t first = scene_add(scene, 4, 100000);
    scene_wait(scene, 100);
    uint64_t second = scene_add(scene, 4, 100000); // one level: the older stays
    assert_int_equal(scene->n_preempted, 0);
    scene_wait(scene, 18000 / 4);
    assert_int_equal(scene->n_preempted, 1);
    assert_int_equal(scene->preempted[0], first);
    let_go(scene);
    assert_true(scene_runs(scene, second));
}

TEST(an_array_starts_all_that_there_is_room_for)
{
    static const char *const names[] = { "srtf", "las", "learnt" };
    for (size_t i = 0; i < 3; i++) {
        struct scene *scene = open_with(names[i], 2);
        struct sched_job_spec spec = scene_job(scene, 2, 60);
        spec.is_array = true;
        spec.elements = 9;
        spec.element_limit = i == 0 ? 3 : 0;
        assert_int_equal(scene_starts_from(scene, scene_submit(scene, &spec)), i == 0 ? 3 : 4);
        scene_free(scene);
    }
}

TEST(whoever_is_at_a_limit_takes_nobodys_place)
{
    _cleanup_(scene_freep) struct scene *scene = open_with("srtf", 1);
    fairshare_account(sched_fairshare(scene->sched), 2, ACCOUNT_USER)->limits.gpu_milli = 1000;
    scene_add(scene, 4, 10000);
    scene_wait(scene, 100);
    struct sched_job_spec spec = scene_job(scene, 2, 10);
    spec.key.uid = 2;
    scene_submit(scene, &spec);
    assert_int_equal(scene->n_preempted, 0);
}

/* Shorter jobs come for ever, and all work is lost each time: it is done all the same. */
TEST(a_job_is_moved_ever_more_seldom_and_so_ends)
{
    static const char *const names[] = { "srtf", "learnt" };
    for (size_t n = 0; n < 2; n++) {
        struct scene *scene = open_with(names[n], 1);
        uint64_t longer = scene_add(scene, 4, 3600);
        size_t n_preempted = 0;
        int64_t until_ms = scene->now_ms + INT64_C(48) * 3600 * 1000;
        bool is_over = false;
        while (!is_over && scene->now_ms < until_ms) {
            uint64_t shorter = scene_add(scene, 4, 70);
            scene_wait(scene, 80);
            n_preempted += scene->n_preempted;
            let_go(scene);
            if (scene_runs(scene, shorter)) {
                scene_wait(scene, 70);
                scene_end(scene, shorter);
            } else {
                sched_withdraw(scene->sched, scene->now_ms, shorter);
            }
            const struct scene_start *start = scene_start_of(scene, longer);
            is_over = scene_runs(scene, longer) && scene->now_ms - start->at_ms >= 3600 * 1000;
        }
        assert_true(is_over);
        assert_true(n_preempted >= 3 && n_preempted <= 12);
        scene_free(scene);
    }
}

TEST(what_was_lost_before_this_scheduler_counts)
{
    _cleanup_(scene_freep) struct scene *scene = open_with("srtf", 1);
    struct sched_job_spec spec = scene_job(scene, 4, 10000);
    spec.preemptions = 3; // its quantum doubled as often: 480 s
    scene_submit(scene, &spec);
    scene_wait(scene, 100);
    scene_add(scene, 4, 50);
    scene_wait(scene, 370);
    assert_int_equal(scene->n_preempted, 0);
    scene_wait(scene, 20);
    assert_int_equal(scene->n_preempted, 1);
}

TEST(adopted_job_is_never_moved)
{
    static const char *const names[] = { "srtf", "las", "learnt" };
    for (size_t i = 0; i < 3; i++) {
        struct scene *scene = open_with(names[i], 1);
        struct sched_job_spec spec = scene_job(scene, 4, 100000);
        spec.key.request.adopted_pid = 4711;
        scene_submit(scene, &spec);
        scene_wait(scene, 1000);
        scene_add(scene, 4, 50);
        scene_wait(scene, 50000);
        assert_int_equal(scene->n_preempted, 0);
        scene_free(scene);
    }
}

/* Whatever the policy and however jobs lie: as time passes no job is preempted again and again. */
TEST(it_comes_to_rest)
{
    static const char *const names[] = { "srtf", "las", "learnt" };
    for (unsigned seed = 0; seed < 30; seed++) {
        struct scene *scene = open_with(names[seed % 3], 2);
        size_t n_preempted = 0;
        srand(seed);
        for (int i = 0; i < 14; i++) {
            scene_add(scene, 1 + (uint32_t)rand() % 4, 1000 + rand() % 1000000);
            scene_wait(scene, rand() % 200);
            n_preempted += scene->n_preempted;
            let_go(scene);
        }
        size_t before = n_preempted;
        for (int i = 0; i < 200; i++) {
            scene_wait(scene, 60);
            n_preempted += scene->n_preempted;
            let_go(scene);
        }
        assert_true(n_preempted - before < 60);
        scene_free(scene);
    }
}

/* Free GPUs were held for the wide job; a preempting policy plans nothing ahead. */
TEST(what_was_held_before_a_change_of_policy_is_free)
{
    _cleanup_(scene_freep) struct scene *scene = open_with("easy", 1);
    scene_add(scene, 2, 10000);
    scene_add(scene, 4, 10000);
    uint64_t later = scene_add(scene, 2, 20000);
    assert_false(scene_runs(scene, later));
    scene->settings.policy = policy_find("las");
    sched_configure(scene->sched, scene->now_ms, &scene->settings);
    sched_pass(scene->sched, scene->now_ms);
    assert_true(scene_runs(scene, later));
}
