/* SPDX-License-Identifier: MIT */
/* GPUs that are owed to parked jobs: which, by when, and how these debts move for jobs that could not return
 * them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "scene.h"
#include "sched/sched_private.h"
#include "unit_test.h"

#define SLOT_S 60     // the quantum: parks cost nothing here
#define LONG_S 100000 // what jobs need

static struct scene *open_node(uint32_t gpus)
{
    struct scene *scene = scene_new();
    scene->settings.policy = policy_find("default");
    scene->settings.parking = PARKING_AUTO;
    scene->settings.quantum_ms = SLOT_S * 1000;
    scene->settings.preempt_cost_ms = scene->settings.preempt_cost_wide_ms = 0;
    scene->settings.preempt_grace_ms = 0;
    scene->now_ms = 1000000000;
    scene_open(scene, 1, gpus);
    return scene;
}

static struct cluster_gpu *gpu_at(const struct scene *scene, uint32_t gpu)
{
    return &sched_cluster(scene->sched)->nodes[0].gpus[gpu];
}

/* A job that runs on this GPU since `since_s` ago; ran_s: and ran for so long before it was parked. */
static uint64_t add_running(
    struct scene *scene, uint32_t gpu, int64_t since_s, int64_t ran_s, int64_t limit_s)
{
    struct alloc_gpu held_gpu = { .gpu = gpu };
    struct alloc_node node = { 0 };
    struct allocation held = { .gpus = &held_gpu, .n_gpus = 1, .nodes = &node, .n_nodes = 1 };
    struct sched_job_spec spec = scene_job(scene, 1, LONG_S);
    spec.ran_ms = ran_s * 1000;
    spec.key.limit_ms = limit_s * 1000;
    sched_resume(scene->sched, scene->now_ms, &spec, &held, scene->now_ms - since_s * 1000);
    return spec.id;
}

/* A job that was parked from these GPUs and has them again within this time; `is_away`: it does not return by
 * itself before. */
static uint64_t add_parked_from(
    struct scene *scene, const uint32_t *gpus, size_t count, int64_t within_s, bool is_away)
{
    struct alloc_gpu left_gpus[4] = { 0 };
    struct alloc_node node = { 0 };
    struct allocation left = { .gpus = left_gpus, .n_gpus = count, .nodes = &node, .n_nodes = 1 };
    for (size_t i = 0; i < count; i++)
        left_gpus[i].gpu = gpus[i];
    struct sched_job_spec spec = scene_job(scene, (uint32_t)count, LONG_S);
    spec.ran_ms = 1000000;
    spec.parked_ms = scene->now_ms - 4 * spec.ran_ms + within_s * 1000;
    spec.left = &left;
    sched_submit(scene->sched, scene->now_ms, &spec);
    if (is_away)
        sched_block(scene->sched, scene->now_ms, spec.id, BLOCK_BACKOFF, 0, TIME_NEVER);
    return spec.id;
}

static uint64_t add_parked(struct scene *scene, uint32_t gpu, int64_t within_s, bool is_away)
{
    return add_parked_from(scene, &gpu, 1, within_s, is_away);
}

/* It can neither be parked nor has it a time limit. */
static uint64_t add_refuser(struct scene *scene, uint32_t gpus, int64_t seconds)
{
    struct sched_job_spec spec = scene_job(scene, gpus, seconds);
    scene->cannot_park = spec.id;
    return scene_submit(scene, &spec);
}

static void let_park(struct scene *scene)
{
    while (scene->n_parks > 0)
        sched_parked(scene->sched, scene->now_ms, scene->parks[--scene->n_parks], 1);
    scene_wait(scene, 0);
}

static int64_t due_s(const struct scene *scene, uint32_t gpu)
{
    return (gpu_at(scene, gpu)->return_ms - scene->now_ms) / 1000;
}

/* Two GPUs: a parked job left the first, which is free, and another job runs on the second. */
TEST(a_debt_moves_to_a_gpu_whose_job_leaves_in_time)
{
    static const struct {
        const char *what;
        int64_t within_s, since_s, ran_s, limit_s;
        unsigned n_owed; // by the second GPU before
        bool returns_home, is_reserved, is_paused, is_allowed_one, does_start;
    } rows[] = {
        { "a job that was parked before", 3000, 1000, 1000, 0, 0, false, false, false, false, true },
        { "one that never was", 3000, 1000, 0, 0, 0, false, false, false, false, false },
        { "one that has certainly ended", 3000, 1000, 0, 3000, 0, false, false, false, false, true },
        { "one whose limit is too long", 3000, 1000, 0, 4000, 0, false, false, false, false, false },
        { "one that has it for a slot", 2 * SLOT_S - 10, 10, 1000, 0, 0, false, false, false, false, true },
        { "one that has it for less", 2 * SLOT_S - 11, 10, 1000, 0, 0, false, false, false, false, false },
        { "as many debts as there may be", 3000, 1000, 1000, 0, 2, false, false, false, false, false },
        { "one debt less", 3000, 1000, 1000, 0, 1, false, false, false, false, true },
        { "a node to whose GPUs jobs return", 3000, 1000, 1000, 0, 0, true, false, false, false, false },
        { "a reserved GPU", 3000, 1000, 1000, 0, 0, false, true, false, false, false },
        { "a paused GPU", 3000, 1000, 1000, 0, 0, false, false, true, false, false },
        { "a job that asked for its GPU", 3000, 1000, 1000, 0, 0, false, false, false, true, false },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct scene *scene = open_node(2);
        struct cluster_node *node = &sched_cluster(scene->sched)->nodes[0];
        node->returns_home = rows[i].returns_home;
        node->gpus[1].is_paused = rows[i].is_paused;
        uint64_t other = add_running(scene, 1, rows[i].since_s, rows[i].ran_s, rows[i].limit_s);
        uint64_t parked = add_parked(scene, 0, rows[i].within_s, true);
        for (unsigned k = 0; k < rows[i].n_owed; k++)
            add_parked(scene, 1, 100000, true);
        uint32_t own[] = { 0 };
        if (rows[i].is_allowed_one) {
            struct job_rules *rules = sched_rules(sched_find(scene->sched, parked));
            rules->n_own_allow = 1;
            free(rules->own_allow);
            rules->own_allow = xcalloc(1, sizeof(own));
            memcpy(rules->own_allow, own, sizeof(own));
        }
        if (rows[i].is_reserved) {
            uint32_t uids[] = { 9 };
            char name[] = "n0";
            struct gpu_pick second = { .node = name, .index = 1 };
            struct sched_request request = { .gpus = 1, .picks = &second, .n_picks = 1 };
            struct sched_reservation wanted = { .id = 1,
                .from_ms = scene->now_ms + 50000000,
                .until_ms = scene->now_ms + 60000000,
                .uids = uids,
                .n_uids = 1 };
            struct error err = { 0 };
            assert_int_equal(sched_reserve(scene->sched, scene->now_ms, &request, &wanted, &err), 0);
            free(wanted.gpus);
        }
        uint64_t job = add_refuser(scene, 1, 100);
        if (scene_runs(scene, job) != rows[i].does_start)
            fail_msg("%s: it %s", rows[i].what, rows[i].does_start ? "waits" : "starts");
        assert_true(scene_runs(scene, other));
        assert_int_equal(gpu_at(scene, 0)->parked, rows[i].does_start ? 0 : 1);
        assert_int_equal(gpu_at(scene, 1)->parked, rows[i].n_owed + rows[i].does_start);
        assert_int_equal(sched_latest_return(scene->sched, parked), scene->now_ms + rows[i].within_s * 1000);
        scene_free(scene);
    }
}

TEST(it_returns_to_the_gpu_that_its_debt_moved_to)
{
    _cleanup_(scene_freep) struct scene *scene = open_node(2);
    uint64_t other = add_running(scene, 1, 1000, 1000, 0), parked = add_parked(scene, 0, 3000, true);
    uint64_t refuser = add_refuser(scene, 1, 100);
    assert_true(scene_runs(scene, refuser));
    sched_block(scene->sched, scene->now_ms, parked, 0, BLOCK_BACKOFF, 0);
    scene_wait(scene, 3000 - SLOT_S - 1);
    assert_int_equal(scene->n_parks, 0);
    scene_wait(scene, 1);
    assert_int_equal(scene->n_parks, 1);
    assert_int_equal(scene->parks[0], other);
    let_park(scene);
    assert_true(scene_runs(scene, parked) && scene_runs(scene, refuser));
    assert_int_equal(scene_start_of(scene, parked)->gpu, 1);
    assert_int_equal(scene->n_preempted, 0);
}

/* The first two GPUs are owed to one job, and free. */
TEST(a_wide_job_is_owed_different_gpus)
{
    static const struct {
        uint32_t gpus, wanted;
        bool does_start;
    } rows[] = { { 4, 2, true }, { 4, 1, true }, { 3, 1, true }, { 3, 2, false }, { 2, 1, false } };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct scene *scene = open_node(rows[i].gpus);
        uint32_t left[] = { 0, 1 }, owed = 0;
        for (uint32_t k = 2; k < rows[i].gpus; k++)
            add_running(scene, k, 1000, 1000, 0);
        add_parked_from(scene, left, 2, 3000, true);
        if (scene_runs(scene, add_refuser(scene, rows[i].wanted, 100)) != rows[i].does_start)
            fail_msg("row %zu: it %s", i, rows[i].does_start ? "waits" : "starts");
        for (uint32_t k = 0; k < rows[i].gpus; k++) {
            assert_true(gpu_at(scene, k)->parked <= 1);
            owed += gpu_at(scene, k)->parked;
        }
        assert_int_equal(owed, 2);
        scene_free(scene);
    }
}

/* Its host is parked, and returns to the GPU of the other one. */
TEST(a_job_that_could_not_return_a_gpu_is_a_guest_if_the_debt_can_move)
{
    for (int was_parked = 0; was_parked <= 1; was_parked++) {
        struct scene *scene = open_node(2);
        for (uint32_t i = 0; i < 2; i++)
            add_running(scene, i, 1000, 1000 * was_parked, 0);
        uint64_t job = add_refuser(scene, 1, 100);
        assert_int_equal(scene->n_parks, was_parked);
        let_park(scene);
        assert_int_equal(scene_runs(scene, job), was_parked);
        if (was_parked)
            assert_int_equal(gpu_at(scene, scene_start_of(scene, job)->gpu)->parked, 0);
        scene_free(scene);
    }
}

/* Nothing that is stored says that the debt had moved. */
TEST(after_a_restart_debts_leave_the_gpus_of_jobs_that_cannot_return_them)
{
    _cleanup_(scene_freep) struct scene *scene = open_node(2);
    scene->cannot_park = add_running(scene, 0, 500, 0, 0);
    uint64_t other = add_running(scene, 1, 1000, 1000, 0), parked = add_parked(scene, 0, 3000, false);
    scene_wait(scene, 0);
    assert_int_equal(gpu_at(scene, 0)->return_ms, TIME_NEVER);
    assert_int_equal(due_s(scene, 1), 3000 - SLOT_S);
    scene_wait(scene, 3000 - SLOT_S);
    assert_int_equal(scene->n_parks, 1);
    assert_int_equal(scene->parks[0], other);
    let_park(scene);
    assert_true(scene_runs(scene, parked) && scene_runs(scene, scene->cannot_park));
    assert_int_equal(scene->n_preempted, 0);
}

/* If the refusal takes a while, too. */
TEST(a_job_that_refuses_keeps_its_gpu_if_the_debt_can_move)
{
    for (int64_t late_s = 0; late_s <= 5; late_s += 5)
        for (int was_parked = 0; was_parked <= 1; was_parked++) {
            struct scene *scene = open_node(2);
            uint64_t refuser = add_running(scene, 0, 500, 0, 0);
            uint64_t other = add_running(scene, 1, 1000, 1000 * was_parked, 0);
            uint64_t parked = add_parked(scene, 0, 3000, false);
            scene_wait(scene, 3000 - SLOT_S);
            assert_int_equal(scene->parks[0], refuser);
            scene->n_parks = 0;
            scene_wait(scene, late_s);
            sched_park_refused(scene->sched, scene->now_ms, refuser);
            scene_wait(scene, 0);
            assert_int_equal(scene->n_preempted, !was_parked);
            assert_int_equal(scene->n_parks, was_parked);
            if (was_parked)
                assert_int_equal(scene->parks[0], other);
            let_park(scene);
            assert_int_equal(scene_runs(scene, parked), was_parked);
            scene_free(scene);
        }
}

/* The last of them on the second GPU, the wide one before it, and the first one before that. */
TEST(jobs_are_due_a_slot_before_all_that_wait_for_them)
{
    _cleanup_(scene_freep) struct scene *scene = open_node(2);
    uint32_t both[] = { 0, 1 };
    add_parked(scene, 0, 3000, true);
    add_parked_from(scene, both, 2, 3001, true);
    add_parked(scene, 1, 3002, true);
    assert_int_equal(due_s(scene, 1), 3002 - 2 * SLOT_S);
    assert_int_equal(due_s(scene, 0), 3002 - 3 * SLOT_S);
}

/* A job on the first GPU, which is owed from 3000 s - SLOT_S on; another one on the second. */
TEST(a_job_that_runs_gets_no_terms_with_which_it_could_not_return_its_gpu)
{
    static const struct {
        const char *what;
        int64_t ran_s, limit_s, other_ran_s; // of the job on the second GPU
        bool may_park, refuses, is_preemptible, may_stay;
    } rows[] = {
        { "a limit that ends in time", 500, 3000 - SLOT_S + 500, 0, false, false, false, true },
        { "one that is a second too long", 500, 3000 - SLOT_S + 501, 0, false, false, false, false },
        { "no limit", 500, 0, 0, false, false, false, false },
        { "no limit, and the debt can move", 500, 0, 1000, false, false, false, true },
        { "no limit for one that may be parked", 500, 0, 0, true, false, false, true },
        { "no limit, and it refuses from now on", 500, 0, 0, true, true, false, false },
        { "a limit that ends in time, and it refuses", 500, 2000, 0, true, true, false, true },
        { "no limit for one that gives way anyhow", 500, 0, 0, false, false, true, true },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct scene *scene = open_node(2);
        struct sched_debt debt = { 0 };
        uint64_t job = add_running(scene, 0, rows[i].ran_s, 0, 1000);
        scene->cannot_park = rows[i].may_park ? 0 : job;
        add_running(scene, 1, 1000, rows[i].other_ran_s, 0);
        uint64_t parked = add_parked(scene, 0, 3000, true);
        scene_wait(scene, 0);
        if (rows[i].is_preemptible)
            sched_find(scene->sched, job)->class->key.is_preemptible = true;
        if (sched_may_stay(scene->sched, job, rows[i].limit_s * 1000, rows[i].refuses, &debt) !=
            rows[i].may_stay)
            fail_msg("%s: it %s", rows[i].what, rows[i].may_stay ? "is refused" : "is permitted");
        if (!rows[i].may_stay) {
            assert_int_equal(debt.job, parked);
            assert_int_equal(debt.gpu.gpu, 0);
            assert_int_equal((debt.due_ms - scene->now_ms) / 1000, 3000 - SLOT_S);
        }
        assert_int_equal(due_s(scene, 0), 3000 - SLOT_S); // nothing has moved
        assert_int_equal(gpu_at(scene, 1)->return_ms, TIME_NEVER);
        scene_free(scene);
    }
}

TEST(a_job_that_runs_without_debts_may_have_any_terms)
{
    _cleanup_(scene_freep) struct scene *scene = open_node(2);
    struct sched_debt debt;
    uint64_t job = add_running(scene, 0, 500, 0, 1000);
    scene->cannot_park = job;
    assert_true(sched_may_stay(scene->sched, job, 0, true, &debt));
    uint64_t parked = add_parked(scene, 1, 3000, true);
    assert_true(sched_may_stay(scene->sched, job, 0, true, &debt));
    assert_true(sched_may_stay(scene->sched, parked, 0, true, &debt));
    assert_true(sched_may_stay(scene->sched, 9999, 0, true, &debt));
}

/* The debt moves with the change, and not when it is due: by then the other GPU may be taken. */
TEST(a_debt_moves_when_the_terms_of_a_job_that_runs_change)
{
    for (int is_limit = 0; is_limit <= 1; is_limit++) {
        struct scene *scene = open_node(2);
        uint64_t job = add_running(scene, 0, 500, 0, is_limit ? 1000 : 0);
        add_running(scene, 1, 1000, 1000, 0);
        scene->cannot_park = is_limit ? job : 0;
        add_parked(scene, 0, 3000, true);
        scene_wait(scene, 0);
        assert_int_equal(due_s(scene, 0), 3000 - SLOT_S);
        scene->cannot_park = job;
        sched_relimit(scene->sched, scene->now_ms, job, 0);
        scene_wait(scene, 0);
        assert_int_equal(gpu_at(scene, 0)->return_ms, TIME_NEVER);
        assert_int_equal(due_s(scene, 1), 3000 - SLOT_S);
        scene_free(scene);
    }
}
