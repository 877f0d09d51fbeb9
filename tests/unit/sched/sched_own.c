/* SPDX-License-Identifier: MIT */
/* The order that users give their own jobs, which costs no other user anything. */

#include "scene.h"
#include "sched/sched_private.h"
#include "unit_test.h"

#define JOBS 60

static int open_scene(void **state)
{
    struct scene *scene = scene_new();
    scene_open(scene, 1, 1);
    *state = scene;
    return 0;
}

#define CASE(name, scene) TEST_ON(name, struct scene *scene, open_scene, scene_close)

/* One second after the last, so that the times of submission differ. */
static uint64_t add(struct scene *scene, uint32_t uid, int32_t own_priority)
{
    struct sched_job_spec spec = scene_job(scene, 1, 60);
    spec.key.uid = uid;
    spec.key.own_priority = own_priority;
    spec.key.command_hash = scene->last_job; // no two of a class
    uint64_t job = scene_submit(scene, &spec);
    scene_wait(scene, 1);
    return job;
}

static uint64_t place(const struct scene *scene, uint64_t job)
{
    return sched_position(scene->sched, sched_find(scene->sched, job));
}

static void assert_order(const struct scene *scene, const uint64_t *jobs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        assert_int_equal(place(scene, jobs[i]), i + 1);
}

CASE(an_own_priority_orders_the_jobs_of_its_owner, scene)
{
    uint64_t first = add(scene, 1, 0), low = add(scene, 1, 0), middle = add(scene, 1, 4),
             high = add(scene, 1, 9);
    assert_order(scene, (uint64_t[]){ high, middle, low }, 3);
    scene_end(scene, first);
    assert_true(scene_runs(scene, high));
    scene_end(scene, high);
    assert_true(scene_runs(scene, middle));
    assert_order(scene, (uint64_t[]){ low }, 1);
}

CASE(it_brings_no_job_before_one_of_another_user, scene)
{
    (void)add(scene, 3, 0);
    uint64_t low = add(scene, 1, 0), other = add(scene, 2, 0), high = add(scene, 1, 1000);
    assert_order(scene, (uint64_t[]){ other, high, low }, 3);
}

CASE(whoever_is_held_back_takes_its_place_again_when_the_higher_job_leaves, scene)
{
    (void)add(scene, 3, 0);
    uint64_t low = add(scene, 1, 0), other = add(scene, 2, 0), high = add(scene, 1, 5);
    sched_withdraw(scene->sched, scene->now_ms, high);
    scene_wait(scene, 0);
    assert_order(scene, (uint64_t[]){ low, other }, 2);
}

CASE(a_flood_of_the_highest_priority_keeps_no_other_user_waiting, scene)
{
    uint64_t running = add(scene, 1, 1000);
    for (int i = 0; i < 5; i++)
        (void)add(scene, 1, 1000);
    uint64_t other = add(scene, 2, 0);
    for (int i = 0; i < 5; i++) { // one more for each that ends
        (void)add(scene, 1, 1000);
        assert_false(scene_runs(scene, other));
        scene_end(scene, running);
        running = scene->starts[scene->n_starts - 1].job;
    }
    scene_end(scene, running);
    assert_true(scene_runs(scene, other));
}

CASE(a_preemptible_job_holds_back_preemptible_ones_only, scene)
{
    (void)add(scene, 3, 0);
    struct sched_job_spec spec = scene_job(scene, 1, 60);
    spec.key.own_priority = 7;
    spec.key.is_preemptible = true;
    uint64_t low = add(scene, 1, 0), high = scene_submit(scene, &spec);
    assert_order(scene, (uint64_t[]){ low, high }, 2);
}

CASE(a_priority_of_all_goes_before_own_ones, scene)
{
    (void)add(scene, 3, 0);
    uint64_t low = add(scene, 1, 0), high = add(scene, 1, 9);
    struct sched_job_spec spec = scene_job(scene, 1, 60);
    spec.key.priority = 1;
    uint64_t raised = scene_submit(scene, &spec);
    assert_order(scene, (uint64_t[]){ raised, high, low }, 3);
}

/* Three users; with `is_used` user 1 gives own priorities. Places of all jobs go to `ret`. */
static void play(bool is_used, unsigned seed, uint64_t ret[JOBS])
{
    _cleanup_(scene_freep) struct scene *scene = scene_new();
    uint64_t jobs[JOBS];
    scene->settings.policy = policy_find(seed % 2 == 0 ? "easy" : "default");
    scene_open(scene, 1, 1);
    (void)add(scene, 4, 0);
    for (size_t i = 0; i < JOBS; i++) {
        struct sched_job_spec spec = scene_job(scene, 1, 10 + (seed = seed * 1103515245U + 12345U) % 5000);
        spec.key.uid = 1 + (seed >> 16) % 3;
        spec.key.own_priority = is_used && spec.key.uid == 1 ? (int32_t)((seed >> 8) % 4) : 0;
        jobs[i] = scene_submit(scene, &spec);
        scene_wait(scene, 1);
    }
    for (size_t i = 0; i < JOBS; i++)
        ret[i] = place(scene, jobs[i]) | (uint64_t)sched_find(scene->sched, jobs[i])->class->key.uid << 32;
    struct error err;
    assert_int_equal(queue_invariant(&scene->sched->queue, &err), 0);
}

TEST(no_job_of_another_user_ever_waits_for_it)
{
    for (unsigned seed = 1; seed <= 20; seed++) {
        uint64_t with[JOBS], without[JOBS];
        play(true, seed, with);
        play(false, seed, without);
        for (size_t i = 0; i < JOBS; i++)
            if (with[i] >> 32 != 1)
                assert_true((uint32_t)with[i] <= (uint32_t)without[i]);
    }
}
