/* SPDX-License-Identifier: MIT */
/* Jobs that cannot be parked, on GPUs that stay owed to parked jobs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "job/job.h"
#include "scene.h"
#include "sched/from_record.h"
#include "sched/sched_private.h"
#include "unit_test.h"

#define SLOT_S 60     // the quantum: parks cost nothing here
#define LONG_S 100000 // what parked jobs need
#define MARGIN 20

static struct scene *open_node(uint32_t gpus, uint32_t margin)
{
    struct scene *scene = scene_new();
    scene->settings.policy = policy_find("default");
    scene->settings.parking = PARKING_AUTO;
    scene->settings.quantum_ms = SLOT_S * 1000;
    scene->settings.preempt_cost_ms = scene->settings.preempt_cost_wide_ms = 0;
    scene->settings.preempt_grace_ms = 0;
    scene->settings.park_margin = margin;
    scene->now_ms = 1000000000;
    scene->may_borrow = true;
    scene_open(scene, 1, gpus);
    return scene;
}

/* A job that was parked from the first GPU, and does not return before it is due, so many seconds from now.
 */
static uint64_t add_parked(struct scene *scene, int64_t due_s)
{
    struct alloc_gpu left_gpu = { 0 };
    struct alloc_node node = { 0 };
    struct allocation left = { .gpus = &left_gpu, .n_gpus = 1, .nodes = &node, .n_nodes = 1 };
    struct sched_job_spec spec = scene_job(scene, 1, LONG_S);
    spec.ran_ms = 1000000;
    spec.parked_ms = scene->now_ms - 4 * spec.ran_ms + (due_s + SLOT_S) * 1000;
    spec.left = &left;
    sched_submit(scene->sched, scene->now_ms, &spec);
    sched_block(scene->sched, scene->now_ms, spec.id, BLOCK_BACKOFF, 0, scene->now_ms + due_s * 1000);
    return spec.id;
}

static struct sched_job_spec refuser(struct scene *scene, uint32_t gpus, int64_t seconds)
{
    struct sched_job_spec spec = scene_job(scene, gpus, seconds);
    scene->cannot_park = spec.id;
    return spec;
}

TEST(a_job_that_refuses_has_a_gpu_that_is_due_in_twenty_times_what_it_needs)
{
    static const struct {
        const char *what;
        int64_t due_s, needs_s, limit_s, ran_s;
        unsigned n_owed; // to others as well
        uint32_t margin;
        bool may_not, is_array, does_start;
    } rows[] = {
        { "it has ended by then", 2000, 100, .margin = MARGIN, .does_start = true },
        { "it might not have", 1999, 100, .margin = MARGIN },
        { "another margin", 1999, 100, .margin = MARGIN - 1, .does_start = true },
        { "no margin", 10000, 1, .margin = 0 },
        { "due after a slot", SLOT_S, 1, .margin = MARGIN, .does_start = true },
        { "due before", SLOT_S - 1, 1, .margin = MARGIN },
        { "it may not start again", 2000, 100, .margin = MARGIN, .may_not = true },
        { "as many owed as take turns", 5000, 100, .margin = MARGIN, .n_owed = 1, .does_start = true },
        { "more", 5000, 100, .margin = MARGIN, .n_owed = 2 },
        { "its limit is too long", 2000, 100, .limit_s = 3000, .margin = MARGIN },
        { "its limit fits", 2000, 100, .limit_s = 2000, .margin = MARGIN, .does_start = true },
        { "it has work to lose", 2000, 100, .ran_s = 10, .margin = MARGIN },
        { "it is an array", 2000, 100, .margin = MARGIN, .is_array = true },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct scene *scene = open_node(1, rows[i].margin);
        for (unsigned k = 0; k <= rows[i].n_owed; k++)
            (void)add_parked(scene, rows[i].due_s + k * SLOT_S);
        struct sched_job_spec spec = refuser(scene, 1, rows[i].needs_s);
        spec.key.limit_ms = rows[i].limit_s * 1000;
        spec.ran_ms = rows[i].ran_s * 1000;
        spec.is_array = rows[i].is_array;
        spec.elements = rows[i].is_array;
        scene->may_borrow = !rows[i].may_not;
        uint64_t job = scene_submit(scene, &spec);
        size_t starts = scene_starts_from(scene, job);
        if (starts != rows[i].does_start)
            fail_msg("%s: it starts %zu times", rows[i].what, starts);
        scene_free(scene);
    }
}

TEST(a_job_that_borrows_is_preempted_when_its_gpus_are_due_and_not_before)
{
    _cleanup_(scene_freep) struct scene *scene = open_node(1, MARGIN);
    int64_t due_ms = 0;
    uint64_t parked = add_parked(scene, 2000);
    struct sched_job_spec spec = refuser(scene, 1, 100);
    assert_false(sched_may_borrow(scene->sched, parked));
    uint64_t job = scene_submit(scene, &spec);
    sched_started(scene->sched, scene->now_ms, job);
    assert_int_equal(sched_lender(scene->sched, job, &due_ms), parked);
    assert_int_equal(due_ms, scene->now_ms + 2000 * 1000);
    assert_int_equal(sched_borrower(scene->sched, parked), job);
    assert_int_equal(sched_lender(scene->sched, parked, &due_ms), 0);
    assert_int_equal(sched_borrower(scene->sched, job), 0);
    scene_wait(scene, 1999);
    assert_int_equal(scene->n_preempted, 0);
    scene_wait(scene, 1);
    assert_int_equal(scene->n_preempted, 1);
    assert_int_equal(scene->preempted[0], job);
    assert_int_equal(scene->lenders[0], parked);
    scene_wait(scene, 100);
    assert_int_equal(scene->n_preempted, 1); // it is told once
    scene->may_borrow = false;
    sched_stopped(scene->sched, scene->now_ms, job, 0);
    scene_wait(scene, 0);
    assert_true(scene_runs(scene, parked));
    assert_int_equal(sched_borrower(scene->sched, parked), 0);
}

TEST(a_job_that_ends_in_time_loses_nothing)
{
    _cleanup_(scene_freep) struct scene *scene = open_node(1, MARGIN);
    uint64_t parked = add_parked(scene, 2000);
    struct sched_job_spec spec = refuser(scene, 1, 100);
    uint64_t job = scene_submit(scene, &spec);
    sched_started(scene->sched, scene->now_ms, job);
    scene_wait(scene, 100);
    scene_end(scene, job);
    scene_wait(scene, 1900);
    assert_true(scene_runs(scene, parked));
    assert_int_equal(scene->n_preempted, 0);
}

/* The second GPU is free, and nothing is owed there; or its job was parked before, so that it may owe one. */
TEST(gpus_are_borrowed_only_if_there_are_no_others)
{
    for (int is_taken = 0; is_taken <= 1; is_taken++) {
        struct scene *scene = open_node(2, MARGIN);
        int64_t due_ms = 0;
        if (is_taken != 0) {
            struct alloc_gpu held_gpu = { .gpu = 1 };
            struct alloc_node node = { 0 };
            struct allocation held = { .gpus = &held_gpu, .n_gpus = 1, .nodes = &node, .n_nodes = 1 };
            struct sched_job_spec spec = scene_job(scene, 1, LONG_S);
            spec.ran_ms = 1000000;
            sched_resume(scene->sched, scene->now_ms, &spec, &held, scene->now_ms - 1000000);
        }
        (void)add_parked(scene, 2500);
        struct sched_job_spec spec = refuser(scene, 1, 100);
        uint64_t job = scene_submit(scene, &spec);
        assert_true(scene_runs(scene, job));
        assert_int_equal(sched_lender(scene->sched, job, &due_ms), 0);
        scene_free(scene);
    }
}

/* A host is parked for it. */
TEST(a_job_that_borrows_is_a_guest)
{
    for (int may_borrow = 0; may_borrow <= 1; may_borrow++) {
        struct scene *scene = open_node(1, MARGIN);
        struct sched_job_spec host = scene_job(scene, 1, 10000);
        uint64_t first = scene_submit(scene, &host);
        sched_started(scene->sched, scene->now_ms, first);
        scene_wait(scene, 600);
        struct sched_job_spec spec = refuser(scene, 1, 100);
        scene->may_borrow = may_borrow;
        uint64_t job = scene_submit(scene, &spec);
        assert_int_equal(scene->n_parks, may_borrow);
        assert_int_equal(sched_may_borrow(scene->sched, job), may_borrow);
        if (may_borrow != 0) {
            assert_int_equal(scene->guests[0], job);
            sched_parked(scene->sched, scene->now_ms, first, 1);
            scene_wait(scene, 0);
            assert_true(scene_runs(scene, job));
        }
        scene_free(scene);
    }
}

TEST(no_gpus_are_borrowed_unless_the_scheduler_parks)
{
    _cleanup_(scene_freep) struct scene *scene = open_node(1, MARGIN);
    struct sched_settings settings = scene->settings;
    (void)add_parked(scene, 2000);
    settings.parking = PARKING_ASKED;
    sched_configure(scene->sched, scene->now_ms, &settings);
    struct sched_job_spec spec = refuser(scene, 1, 100);
    uint64_t job = scene_submit(scene, &spec);
    assert_false(scene_runs(scene, job) || sched_may_borrow(scene->sched, job));
}

/* As its record says, a job that could be parked, and could start again. */
TEST(only_jobs_that_may_start_again_borrow)
{
    static const struct {
        const char *what;
        struct job_ask ask;
        enum job_state is;
        uint32_t reclaimed;
        uint64_t array;
        bool may;
    } rows[] = {
        { "a job", { .gpus = 1 }, JOB_QUEUED, .may = true },
        { "--no-park", { .gpus = 1, .no_park = true }, JOB_QUEUED },
        { "no_restart", { .gpus = 1, .no_restart = true }, JOB_QUEUED },
        { "a deadline", { .gpus = 1, .deadline_ms = 1 }, JOB_QUEUED },
        { "preemptible", { .gpus = 1, .preemptible = true }, JOB_QUEUED },
        { "adopted", { .gpus = 1, .adopted_pid = 9 }, JOB_QUEUED },
        { "exclusive", { .gpus = 1, .exclusive = true }, JOB_QUEUED },
        { "a share", { .gpus = 1, .gpu_share = 500 }, JOB_QUEUED },
        { "it has done so", { .gpus = 1 }, JOB_QUEUED, .reclaimed = 1 },
        { "an element", { .gpus = 1 }, JOB_QUEUED, .array = 7 },
        { "it runs", { .gpus = 1 }, JOB_RUNNING },
    };
    _cleanup_(cluster_clear) struct cluster cluster;
    cluster_init(&cluster);
    cluster_set_node(&cluster, "n0", 1000, 0)->parks = true;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char node[] = "n0";
        struct job_park park = { .reclaimed = rows[i].reclaimed };
        struct job_run run = { .park = &park };
        struct job job = { .state = rows[i].is, .ask = &rows[i].ask, .run = &run };
        job.array_job = rows[i].array;
        job.node = rows[i].is == JOB_RUNNING ? node : NULL;
        if (park_may_borrow(&cluster, &job) != rows[i].may)
            fail_msg("%s", rows[i].what);
        if (park_is_permitted(&cluster, &job) && rows[i].reclaimed != 0)
            fail_msg("a job that has started again may be parked");
    }
}
