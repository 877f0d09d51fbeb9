/* SPDX-License-Identifier: MIT */
/* The scheduler parks jobs for shorter ones: when, for which job, and until when at the latest. */
#include <stdio.h>
#include <string.h>

#include "scene.h"
#include "sched/sched_private.h"
#include "sched/why.h"
#include "unit_test.h"

#define SLOT_S 60 // the quantum: parks cost nothing here

static struct scene *open_slot(enum parking_mode mode, uint32_t nodes, uint32_t gpus, int64_t slot_s)
{
    struct scene *scene = scene_new();
    scene->settings.policy = policy_find("default");
    scene->settings.parking = mode;
    scene->settings.quantum_ms = slot_s * 1000;
    scene->settings.preempt_cost_ms = scene->settings.preempt_cost_wide_ms = 0;
    scene->settings.preempt_grace_ms = 0;
    scene_open(scene, nodes, gpus);
    return scene;
}

static struct scene *open_mode(enum parking_mode mode, uint32_t nodes, uint32_t gpus)
{
    return open_slot(mode, nodes, gpus, SLOT_S);
}

static struct scene *open_auto(uint32_t nodes, uint32_t gpus)
{
    return open_mode(PARKING_AUTO, nodes, gpus);
}

static uint64_t add_running(struct scene *scene, uint32_t gpus, int64_t seconds)
{
    uint64_t job = scene_add(scene, gpus, seconds);
    assert_true(scene_runs(scene, job));
    sched_started(scene->sched, scene->now_ms, job);
    return job;
}

/* What was to be parked, is. */
static void let_park(struct scene *scene)
{
    while (scene->n_parks > 0)
        sched_parked(scene->sched, scene->now_ms, scene->parks[--scene->n_parks], 1);
    scene_wait(scene, 0);
}

static void refuse(struct scene *scene)
{
    assert_int_equal(scene->n_parks, 1);
    sched_park_refused(scene->sched, scene->now_ms, scene->parks[--scene->n_parks]);
    scene_wait(scene, 0);
}

static int64_t latest_s(const struct scene *scene, uint64_t job)
{
    return (sched_latest_return(scene->sched, job) - scene->now_ms) / 1000;
}

/* One GPU; a job of 10000 s that has run for 500 s is parked for one of 100 s. */
static struct scene *open_pair(uint64_t *ret_host, uint64_t *ret_guest)
{
    struct scene *scene = open_auto(1, 1);
    *ret_host = add_running(scene, 1, 10000);
    scene_wait(scene, 500);
    *ret_guest = scene_add(scene, 1, 100);
    let_park(scene);
    assert_true(scene_runs(scene, *ret_guest));
    assert_false(scene_runs(scene, *ret_host));
    sched_started(scene->sched, scene->now_ms, *ret_guest);
    return scene;
}

TEST(a_job_is_parked_for_one_that_needs_half_of_what_it_still_needs)
{
    static const struct {
        int64_t host_s, ran_s, guest_s;
        bool is_parked;
    } rows[] = {
        { 10000, 3000, 3500, true },
        { 10000, 3000, 3501, false }, // 7000 are left
        { 10000, 59, 10, false },     // within the quantum
        { 10000, 60, 180, true },     // as long as it may be parked, less a slot
        { 10000, 60, 181, false },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct scene *scene = open_auto(1, 1);
        uint64_t host = add_running(scene, 1, rows[i].host_s);
        scene_wait(scene, rows[i].ran_s);
        uint64_t guest = scene_add(scene, 1, rows[i].guest_s);
        if (scene->n_parks != rows[i].is_parked)
            fail_msg("row %zu: %zu parked", i, scene->n_parks);
        if (rows[i].is_parked) {
            assert_int_equal(scene->parks[0], host);
            assert_int_equal(scene->guests[0], guest);
        }
        scene_free(scene);
    }
}

TEST(nothing_is_parked_unless_the_setting_says_so)
{
    for (unsigned mode = PARKING_NEVER; mode <= PARKING_ASKED; mode++) {
        struct scene *scene = open_mode((enum parking_mode)mode, 1, 1);
        uint64_t host = add_running(scene, 1, 100000);
        scene_wait(scene, 5000);
        scene_add(scene, 1, 10);
        scene_wait(scene, 5000);
        assert_int_equal(scene->n_parks + scene->n_preempted, 0);
        assert_true(scene_runs(scene, host));
        scene_free(scene);
    }
}

/* Jobs that wait and are no guests, each for another reason. */
TEST(some_jobs_are_no_hosts_and_some_no_guests)
{
    static const struct {
        const char *what;
        uint32_t nodes, host_gpus, guest_gpus;
        int32_t host_priority;
        bool is_preemptible, cannot_park, has_limit;
        size_t parks;
    } rows[] = {
        { "plain", 1, 2, 2, 0, false, false, false, 1 },
        { "narrower", 1, 2, 1, 0, false, false, false, 1 },
        { "wider than each host", 1, 1, 2, 0, false, false, false, 2 },
        { "on several nodes", 2, 4, 1, 0, false, false, false, 0 },
        { "of higher priority", 1, 2, 2, 1, false, false, false, 0 },
        { "a preemptible guest", 1, 2, 2, 0, true, false, false, 0 },
        { "a guest that cannot be parked", 1, 2, 2, 0, false, true, false, 0 },
        { "a guest that cannot be parked, with a limit", 1, 2, 2, 0, false, true, true, 1 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct scene *scene = open_auto(rows[i].nodes, 2);
        struct sched_job_spec spec = scene_job(scene, rows[i].host_gpus, 100000);
        spec.key.priority = rows[i].host_priority;
        sched_started(scene->sched, scene->now_ms, scene_submit(scene, &spec));
        if (rows[i].host_gpus == 1)
            add_running(scene, 1, 100000);
        scene_wait(scene, 1000);
        spec = scene_job(scene, rows[i].guest_gpus, 100);
        spec.key.is_preemptible = rows[i].is_preemptible;
        spec.key.limit_ms = rows[i].has_limit ? 200000 : 0;
        scene->cannot_park = rows[i].cannot_park ? spec.id : 0;
        scene_submit(scene, &spec);
        if (scene->n_parks != rows[i].parks)
            fail_msg("%s: %zu parked", rows[i].what, scene->n_parks);
        scene_free(scene);
    }
}

TEST(the_host_continues_when_the_guest_has_ended)
{
    uint64_t host, guest;
    _cleanup_(scene_freep) struct scene *scene = open_pair(&host, &guest);
    assert_int_equal(latest_s(scene, host), 2000);
    scene_wait(scene, 100);
    scene_end(scene, guest);
    assert_true(scene_runs(scene, host));
    assert_true(sched_latest_return(scene->sched, host) == TIME_NEVER);
    sched_started(scene->sched, scene->now_ms, host);
    scene_wait(scene, 100);
    scene_add(scene, 1, 100);
    let_park(scene);
    assert_int_equal(latest_s(scene, host), 4 * 600 - 100); // all in all
}

TEST(a_guest_that_takes_longer_is_parked_when_its_host_is_due)
{
    uint64_t host, guest;
    _cleanup_(scene_freep) struct scene *scene = open_pair(&host, &guest);
    scene_wait(scene, 2000 - SLOT_S - 1);
    assert_int_equal(scene->n_parks, 0);
    scene_wait(scene, 1);
    assert_int_equal(scene->n_parks, 1);
    assert_int_equal(scene->parks[0], guest);
    let_park(scene);
    assert_true(scene_runs(scene, host));
    assert_int_equal(latest_s(scene, guest), 4 * (2000 - SLOT_S)); // and it has the same promise
}

TEST(a_guest_that_refuses_is_stopped_when_its_host_is_due)
{
    uint64_t host, guest;
    _cleanup_(scene_freep) struct scene *scene = open_pair(&host, &guest);
    scene_wait(scene, 2000 - SLOT_S);
    refuse(scene);
    assert_int_equal(scene->n_preempted, 1);
    assert_int_equal(scene->preempted[0], guest);
    sched_stopped(scene->sched, scene->now_ms, guest, 0);
    scene_wait(scene, 0);
    assert_true(scene_runs(scene, host));
}

/* As long as its return fails it is parked for longer than it may be, and nobody else begins on its GPU. */
TEST(while_a_return_fails_nobody_begins_on_its_gpus)
{
    uint64_t host, guest;
    _cleanup_(scene_freep) struct scene *scene = open_pair(&host, &guest);
    scene_wait(scene, 2000 - SLOT_S);
    let_park(scene);
    for (int i = 0; i < 3; i++) {
        assert_true(scene_runs(scene, host));
        sched_parked(scene->sched, scene->now_ms, host, 1);
        sched_block(scene->sched, scene->now_ms, host, BLOCK_BACKOFF, 0, scene->now_ms + 30000);
        struct sched_job_spec spec = scene_job(scene, 1, 1);
        spec.key.limit_ms = 1000;
        uint64_t late = scene_submit(scene, &spec);
        assert_false(scene_runs(scene, host) || scene_runs(scene, late) || scene_runs(scene, guest));
        scene_wait(scene, 29);
        assert_false(scene_runs(scene, host) || scene_runs(scene, late) || scene_runs(scene, guest));
        scene_wait(scene, 1);
    }
    assert_true(scene_runs(scene, host));
    sched_started(scene->sched, scene->now_ms, host);
    assert_int_equal(scene->n_preempted, 0);
}

TEST(a_guest_that_refuses_at_once_is_stopped_at_once)
{
    uint64_t host, guest;
    _cleanup_(scene_freep) struct scene *scene = open_pair(&host, &guest);
    scene->refuses_at_once = true;
    scene_wait(scene, 2000 - SLOT_S);
    assert_int_equal(scene->n_preempted, 1);
    assert_int_equal(scene->preempted[0], guest);
    sched_stopped(scene->sched, scene->now_ms, guest, 0);
    scene_wait(scene, 0);
    assert_true(scene_runs(scene, host));
}

TEST(a_job_is_not_parked_for_one_that_its_owner_wants_later)
{
    for (int32_t host_priority = 0; host_priority <= 2; host_priority++) {
        struct scene *scene = open_auto(1, 1);
        struct sched_job_spec host = scene_job(scene, 1, 10000), guest = scene_job(scene, 1, 100);
        host.key.own_priority = host_priority;
        guest.key.own_priority = 1;
        uint64_t job = scene_submit(scene, &host);
        sched_started(scene->sched, scene->now_ms, job);
        scene_wait(scene, 500);
        scene_submit(scene, &guest);
        assert_int_equal(scene->n_parks, host_priority <= 1);
        scene_free(scene);
    }
}

TEST(a_host_that_refuses_runs_on_and_is_not_asked_again)
{
    _cleanup_(scene_freep) struct scene *scene = open_auto(1, 1);
    uint64_t host = add_running(scene, 1, 10000);
    scene_wait(scene, 500);
    scene_add(scene, 1, 100);
    refuse(scene);
    scene_wait(scene, 3000);
    assert_true(scene_runs(scene, host));
    assert_int_equal(scene->n_parks + scene->n_preempted, 0);
}

TEST(a_host_may_end_while_it_is_being_parked_or_is_parked)
{
    uint64_t host, guest;
    struct scene *scene = open_auto(1, 1);
    host = add_running(scene, 1, 10000);
    scene_wait(scene, 500);
    guest = scene_add(scene, 1, 100);
    assert_int_equal(scene->n_parks, 1);
    scene_end(scene, host);
    assert_true(scene_runs(scene, guest));
    scene_free(scene);

    scene = open_pair(&host, &guest);
    sched_withdraw(scene->sched, scene->now_ms, host); // cancelled
    scene_wait(scene, 5000);
    assert_int_equal(scene->n_parks + scene->n_preempted, 0); // nothing is owed
    assert_true(scene_runs(scene, guest));
    scene_free(scene);
}

TEST(what_comes_free_is_the_guests_before_anybody_elses)
{
    _cleanup_(scene_freep) struct scene *scene = open_auto(1, 1);
    uint64_t host = add_running(scene, 1, 10000);
    scene_wait(scene, 500);
    uint64_t guest = scene_add(scene, 1, 100);
    struct sched_job_spec first = scene_job(scene, 1, 10000);
    first.key.priority = 1;
    scene_submit(scene, &first);
    let_park(scene);
    assert_true(scene_runs(scene, guest));
    assert_false(scene_runs(scene, host));
    assert_false(scene_runs(scene, first.id));
}

TEST(a_lost_node_owes_nothing)
{
    uint64_t host, guest;
    _cleanup_(scene_freep) struct scene *scene = open_pair(&host, &guest);
    struct cluster *cluster = sched_cluster(scene->sched);
    cluster->nodes[0].is_up = false;
    cluster_touch(cluster, &cluster->nodes[0]);
    sched_stopped(scene->sched, scene->now_ms, guest, 0);
    sched_withdraw(scene->sched, scene->now_ms, host);
    struct sched_job_spec again = scene_job(scene, 1, 10000);
    again.id = host;
    sched_submit(scene->sched, scene->now_ms, &again);
    scene_wait(scene, 5000);
    assert_true(sched_latest_return(scene->sched, host) == TIME_NEVER);
    assert_true(cluster->nodes[0].gpus[0].return_ms == TIME_NEVER);
    cluster->nodes[0].is_up = true;
    cluster_touch(cluster, &cluster->nodes[0]);
    scene_wait(scene, 0);
    assert_true(scene_runs(scene, host) != scene_runs(scene, guest));
}

TEST(while_a_node_is_drained_nobody_is_parked_for_a_return)
{
    uint64_t host, guest;
    _cleanup_(scene_freep) struct scene *scene = open_pair(&host, &guest);
    struct cluster *cluster = sched_cluster(scene->sched);
    cluster->nodes[0].is_drained = true;
    cluster_touch(cluster, &cluster->nodes[0]);
    scene_wait(scene, 5000);
    assert_int_equal(scene->n_parks + scene->n_preempted, 0);
    cluster->nodes[0].is_drained = false;
    cluster_touch(cluster, &cluster->nodes[0]);
    scene_wait(scene, 0);
    assert_int_equal(scene->n_parks, 1); // it is overdue
}

TEST(a_held_job_is_owed_nothing_until_it_is_released)
{
    uint64_t host, guest;
    _cleanup_(scene_freep) struct scene *scene = open_pair(&host, &guest);
    sched_block(scene->sched, scene->now_ms, host, BLOCK_HELD_USER, 0, 0);
    scene_wait(scene, 5000);
    assert_int_equal(scene->n_parks + scene->n_preempted, 0);
    sched_block(scene->sched, scene->now_ms, host, 0, BLOCK_HELD_USER, 0);
    scene_wait(scene, 0);
    assert_int_equal(scene->n_parks, 1);
}

/* The caller knows from its records how long it had run and been parked, since when, and what it left. */
TEST(a_restart_changes_no_promise)
{
    uint64_t host, guest;
    struct scene *before = open_pair(&host, &guest), *scene = open_auto(1, 1);
    int64_t bound_ms = sched_latest_return(before->sched, host);
    scene->now_ms = before->now_ms + 1000;
    struct alloc_gpu gpu = { 0 };
    struct alloc_node node = { 0 };
    struct allocation left = { .gpus = &gpu, .n_gpus = 1, .nodes = &node, .n_nodes = 1 };
    struct sched_job_spec spec = scene_job(scene, 1, 10000);
    spec.ran_ms = 500000;
    spec.parked_ms = before->now_ms;
    spec.left = &left;
    assert_int_equal(spec.id, host);
    sched_submit(scene->sched, scene->now_ms, &spec);
    spec = scene_job(scene, 1, 100);
    sched_resume(scene->sched, scene->now_ms, &spec, &left, before->now_ms);
    assert_true(sched_latest_return(scene->sched, host) == bound_ms);
    scene_wait(scene, 2000 - SLOT_S - 2);
    assert_int_equal(scene->n_parks, 0);
    scene_wait(scene, 1);
    assert_int_equal(scene->n_parks, 1);
    let_park(scene);
    assert_true(scene_runs(scene, host));
    assert_int_equal(latest_s(scene, guest), 4 * (2000 - SLOT_S));
    scene_free(scene);
    scene_free(before);
}

/* A job that was parked from this GPU before a restart, and was due to return this long ago. */
static uint64_t resume_overdue(struct scene *scene, uint32_t gpu, int64_t late_s)
{
    struct alloc_gpu left_gpu = { .gpu = gpu };
    struct alloc_node node = { 0 };
    struct allocation left = { .gpus = &left_gpu, .n_gpus = 1, .nodes = &node, .n_nodes = 1 };
    struct sched_job_spec spec = scene_job(scene, 1, 1000000);
    spec.ran_ms = 5000000;
    spec.parked_ms = scene->now_ms - 4 * spec.ran_ms - late_s * 1000;
    spec.left = &left;
    sched_submit(scene->sched, scene->now_ms, &spec);
    return spec.id;
}

static void resume_running(struct scene *scene, uint32_t gpu)
{
    struct alloc_gpu held_gpu = { .gpu = gpu };
    struct alloc_node node = { 0 };
    struct allocation held = { .gpus = &held_gpu, .n_gpus = 1, .nodes = &node, .n_nodes = 1 };
    struct sched_job_spec spec = scene_job(scene, 1, 1000000);
    sched_resume(scene->sched, scene->now_ms, &spec, &held, scene->now_ms - 10000000);
}

/* Also if a job returns to another GPU meanwhile, and if other timers are earlier. */
TEST(overdue_jobs_have_their_gpu_for_half_a_slot_each)
{
    static const struct {
        int64_t slot_s;
        bool is_other_overdue;
    } rows[] = { { SLOT_S, false }, { SLOT_S, true }, { 10 * SLOT_S, false }, { 10 * SLOT_S, true } };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct scene *scene = open_slot(PARKING_AUTO, 1, 2, rows[i].slot_s);
        scene->now_ms += 100000000;
        uint64_t first = resume_overdue(scene, 0, 1020), second = resume_overdue(scene, 0, 1010);
        if (rows[i].is_other_overdue)
            (void)resume_overdue(scene, 1, 1000);
        resume_running(scene, 0);
        resume_running(scene, 1);
        scene_wait(scene, 0);
        assert_int_equal(scene->n_parks, rows[i].is_other_overdue ? 2 : 1);
        let_park(scene);
        assert_true(scene_runs(scene, first));
        if (sched_next_ms(scene->sched) > scene->now_ms + rows[i].slot_s * 500)
            fail_msg("row %zu: no timer for the return of the second", i);
        sched_started(scene->sched, scene->now_ms, first);
        scene_wait(scene, rows[i].slot_s / 2 - 1);
        assert_int_equal(scene->n_parks, 0);
        scene_wait(scene, 1);
        if (scene->n_parks != 1 || scene->parks[0] != first)
            fail_msg("row %zu: the first keeps its GPU", i);
        let_park(scene);
        assert_true(scene_runs(scene, second));
        scene_free(scene);
    }
}

/* Its bound is reached 1000 s earlier, and grows by five seconds for each second that it runs. */
TEST(an_overdue_job_is_not_parked_for_one_that_is_due_after_it)
{
    _cleanup_(scene_freep) struct scene *scene = open_auto(1, 1);
    scene->now_ms += 100000000;
    uint64_t first = resume_overdue(scene, 0, 3000), second = resume_overdue(scene, 0, 2000);
    resume_running(scene, 0);
    scene_wait(scene, 0);
    let_park(scene);
    assert_true(scene_runs(scene, first));
    sched_started(scene->sched, scene->now_ms, first);
    scene_wait(scene, 199);
    assert_int_equal(scene->n_parks, 0);
    scene_wait(scene, 2);
    assert_int_equal(scene->n_parks, 1);
    assert_int_equal(scene->parks[0], first);
    let_park(scene);
    assert_true(scene_runs(scene, second));
}

TEST(a_parked_job_that_is_requeued_begins_from_the_beginning)
{
    for (unsigned is_held = 0; is_held < 2; is_held++) {
        uint64_t host, guest;
        struct scene *scene = open_pair(&host, &guest);
        if (is_held)
            sched_block(scene->sched, scene->now_ms, host, BLOCK_HELD_USER, 0, TIME_NEVER);
        sched_stopped(scene->sched, scene->now_ms, host, 0);
        sched_block(scene->sched, scene->now_ms, host, 0, BLOCK_HELD_USER, TIME_NEVER);
        assert_int_equal(sched_latest_return(scene->sched, host), TIME_NEVER);
        scene_end(scene, guest);
        assert_true(scene_runs(scene, host));
        scene_wait(scene, 5);
        scene_end(scene, host);
        scene_free(scene);
    }
}

TEST(time_on_gpus_without_running_counts_as_parked)
{
    uint64_t host, guest;
    struct scene *scene = open_pair(&host, &guest);
    scene_wait(scene, 100);
    scene_end(scene, guest);
    assert_true(scene_runs(scene, host));
    scene_wait(scene, 50); // it could not return
    sched_parked(scene->sched, scene->now_ms, host, 1);
    assert_int_equal(latest_s(scene, host), 2000 - 150);
    sched_block(scene->sched, scene->now_ms, host, BLOCK_BACKOFF, 0, scene->now_ms + 30000);
    uint64_t longer = scene_add(scene, 1, 100000); // may be parked itself, so it may come meanwhile
    assert_true(scene_runs(scene, longer));
    sched_started(scene->sched, scene->now_ms, longer);
    scene_wait(scene, 2000 - 150 - SLOT_S);
    let_park(scene);
    assert_true(scene_runs(scene, host));
    scene_free(scene);
}

/* Its GPUs stay free for it, whoever waits. */
TEST(who_could_not_leave_in_time_does_not_come)
{
    static const struct {
        int64_t limit_s, wait_s;
        bool cannot_park, does_start;
    } rows[] = {
        { 0, 0, true, false }, { 1900, 0, true, true }, { 2000, 0, true, false }, { 0, 0, false, true },
        { 0, 2000 - 2 * SLOT_S - 10, false, true },
        { 0, 2000 - 2 * SLOT_S + 10, false, false }, // it would have the GPU for less than a slot
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        uint64_t host, guest;
        struct scene *scene = open_pair(&host, &guest);
        sched_block(scene->sched, scene->now_ms, host, BLOCK_BACKOFF, 0, TIME_NEVER); // else it would return
        scene_wait(scene, rows[i].wait_s);
        scene_end(scene, guest);
        struct sched_job_spec spec = scene_job(scene, 1, 100000);
        spec.key.limit_ms = rows[i].limit_s * 1000;
        scene->cannot_park = rows[i].cannot_park ? spec.id : 0;
        scene_submit(scene, &spec);
        if (scene_runs(scene, spec.id) != rows[i].does_start)
            fail_msg("row %zu: it %s", i, rows[i].does_start ? "waits" : "starts");
        scene_free(scene);
    }
}

/* It needs a GPU of which nothing is owed, so no more come to be owed. */
TEST(nobody_is_parked_behind_a_job_that_could_not_leave)
{
    _cleanup_(scene_freep) struct scene *scene = open_auto(1, 1);
    add_running(scene, 1, 100000);
    scene_wait(scene, 1000);
    struct sched_job_spec spec = scene_job(scene, 1, 90000);
    spec.key.priority = 1;
    scene->cannot_park = spec.id;
    scene_submit(scene, &spec);
    uint64_t guest = scene_add(scene, 1, 100);
    assert_int_equal(scene->n_parks, 0);
    sched_withdraw(scene->sched, scene->now_ms, spec.id);
    scene_wait(scene, 600);
    assert_int_equal(scene->n_parks, 1);
    assert_int_equal(scene->guests[0], guest);
}

TEST(it_returns_to_any_gpu_of_its_model_on_its_node)
{
    _cleanup_(scene_freep) struct scene *scene = open_auto(2, 2);
    struct cluster *cluster = sched_cluster(scene->sched);
    uint64_t jobs[4];
    for (size_t i = 0; i < 4; i++)
        jobs[i] = add_running(scene, 1, 100000);
    scene_wait(scene, 1000);
    uint64_t guest = scene_add(scene, 1, 100);
    assert_int_equal(scene->n_parks, 1);
    uint64_t host = scene->parks[0];
    struct scene_start place = *scene_start_of(scene, host);
    let_park(scene);
    assert_true(scene_runs(scene, guest));
    for (size_t i = 0; i < 4; i++) { // one on the other node, which does not help, then the one beside it
        const struct scene_start *start = scene_start_of(scene, jobs[i]);
        if (jobs[i] != host && start->node != place.node) {
            scene_end(scene, jobs[i]);
            break;
        }
    }
    assert_false(scene_runs(scene, host));
    for (size_t i = 0; i < 4; i++)
        if (jobs[i] != host && scene_start_of(scene, jobs[i])->node == place.node)
            scene_end(scene, jobs[i]);
    assert_true(scene_runs(scene, host));
    assert_int_equal(scene_start_of(scene, host)->node, place.node);
    assert_int_not_equal(scene_start_of(scene, host)->gpu, place.gpu);
    assert_true(cluster->nodes[place.node].gpus[place.gpu].return_ms == TIME_NEVER);
}

/* Four GPUs; a job on all of them that needs 2000 s, has run for 1000 s and is parked for the guest. */
static struct scene *open_wide(const struct sched_job_spec *guest, uint64_t *ret_host)
{
    struct scene *scene = open_auto(1, 4);
    *ret_host = add_running(scene, 4, 2000);
    scene_wait(scene, 1000);
    struct sched_job_spec spec = *guest;
    spec.id = ++scene->last_job;
    spec.submit_ms = scene->now_ms;
    scene_submit(scene, &spec);
    let_park(scene);
    assert_true(scene_runs(scene, spec.id));
    sched_started(scene->sched, scene->now_ms, spec.id);
    return scene;
}

/* A guest of 100 s that does not end: not as soon as it is late, but long before its host is due. */
TEST(a_wide_host_returns_when_its_guest_is_late_and_its_gpus_are_idle)
{
    struct sched_job_spec guest = {
        .key = { .uid = 1, .gid = 1, .estimate_ms = 100000, .request = { .gpus = 1 } }
    };
    uint64_t host;
    _cleanup_(scene_freep) struct scene *scene = open_wide(&guest, &host);
    int64_t due_s = latest_s(scene, host) - SLOT_S, waited_s = 0;
    for (; scene->n_parks == 0 && waited_s < due_s; waited_s += 10)
        scene_wait(scene, 10);
    if (waited_s <= 100 || waited_s >= due_s / 2)
        fail_msg("it returns after %lld s; it is due after %lld s", (long long)waited_s, (long long)due_s);
    assert_int_equal(scene->parks[0], scene->last_job);
    assert_int_equal(scene->guests[0], 0); // for one that returns
    let_park(scene);
    assert_true(scene_runs(scene, host));
    assert_false(scene_runs(scene, scene->last_job));
}

/* Each of them keeps its host waiting until it is due. */
TEST(guests_that_use_its_gpus_or_cannot_be_parked_are_not_sent_away)
{
    static const struct {
        uint32_t gpus;
        bool cannot_park;
    } rows[] = { { 4, false }, { 1, true } };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct sched_job_spec guest = {
            .key = { .uid = 1, .gid = 1, .estimate_ms = 100000, .request = { .gpus = rows[i].gpus } }
        };
        guest.key.limit_ms = rows[i].cannot_park ? 1900 * 1000 : 0;
        uint64_t host;
        struct scene *scene = open_wide(&guest, &host);
        scene->cannot_park = rows[i].cannot_park ? scene->last_job : 0;
        scene_wait(scene, latest_s(scene, host) - SLOT_S - 1);
        if (scene->n_parks != 0 || scene->n_preempted != 0)
            fail_msg("row %zu: sent away before the host is due", i);
        scene_free(scene);
    }
}

/* A job on four GPUs still needs 7000 s. */
TEST(a_wide_job_is_parked_for_narrow_ones_if_they_fill_its_gpus)
{
    static const struct {
        int64_t guest_s, other_s;
        uint32_t others;
        bool is_parked;
    } rows[] = {
        { 875, 0, 0, true }, { 876, 0, 0, false },
        { 1750, 1750, 1, true },                          // of the same kind { 3500, 3500, 2, false },
        { 3500, 3500, 3, true }, { 1750, 3500, 1, true }, // it takes twice as long
        { 1700, 3402, 1, false },                         // longer
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct scene *scene = open_auto(1, 4);
        add_running(scene, 4, 10000);
        scene_wait(scene, 3000);
        for (uint32_t k = 0; k < rows[i].others; k++)
            scene_add(scene, 1, rows[i].other_s);
        assert_int_equal(scene->n_parks, 0);
        scene_add(scene, 1, rows[i].guest_s);
        if (scene->n_parks != rows[i].is_parked)
            fail_msg("row %zu: %zu parked", i, scene->n_parks);
        scene_free(scene);
    }
}

/* Hosts of one GPU each, that still need 9500 s; the guest needs all of the node's. */
TEST(several_jobs_are_parked_for_a_wider_one_that_is_shorter_by_their_number)
{
    static const struct {
        uint32_t nodes, gpus;
        int64_t guest_s;
        size_t parks;
    } rows[] = {
        { 1, 2, 2375, 0 }, // it needs a slot more than they may be parked for
        { 1, 2, 1900, 2 }, { 1, 4, 1187, 4 }, { 1, 4, 1188, 0 }, { 2, 2, 100, 0 }, // on several nodes: none
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct scene *scene = open_auto(rows[i].nodes, rows[i].gpus);
        for (uint32_t k = 0; k < rows[i].nodes * rows[i].gpus; k++)
            add_running(scene, 1, 10000);
        scene_wait(scene, 500);
        uint64_t guest = scene_add(scene, rows[i].gpus, rows[i].guest_s);
        if (scene->n_parks != rows[i].parks)
            fail_msg("row %zu: %zu parked", i, scene->n_parks);
        let_park(scene);
        assert_int_equal(scene_runs(scene, guest), rows[i].parks > 0);
        scene_free(scene);
    }
}

/* At once, not only when it has waited for as long as a park could take. */
TEST(a_guest_whose_host_refuses_has_another_one)
{
    _cleanup_(scene_freep) struct scene *scene = open_auto(1, 2);
    uint64_t short_one = add_running(scene, 1, 9000), long_one = add_running(scene, 1, 10000);
    scene_wait(scene, 500);
    uint64_t guest = scene_add(scene, 1, 100);
    assert_int_equal(scene->parks[0], long_one);
    refuse(scene);
    assert_int_equal(scene->n_parks, 1);
    assert_int_equal(scene->parks[0], short_one);
    let_park(scene);
    assert_true(scene_runs(scene, guest));
}

/* Two hosts; the first is parked before the second, or the second refuses. */
TEST(what_the_first_host_left_is_kept_until_the_last_is_parked)
{
    for (int refuses = 0; refuses <= 1; refuses++) {
        struct scene *scene = open_auto(1, 2);
        uint64_t first = add_running(scene, 1, 10000), second = add_running(scene, 1, 10000);
        scene_wait(scene, 500);
        uint64_t guest = scene_add(scene, 2, 100);
        assert_int_equal(scene->n_parks, 2);
        scene->n_parks = 0;
        sched_parked(scene->sched, scene->now_ms, first, 1);
        struct sched_job_spec late = scene_job(scene, 1, 1);
        late.key.limit_ms = 1000;
        uint64_t brief = scene_submit(scene, &late);
        assert_false(scene_runs(scene, guest) || scene_runs(scene, brief) || scene_runs(scene, first));
        if (refuses != 0)
            sched_park_refused(scene->sched, scene->now_ms, second);
        else
            sched_parked(scene->sched, scene->now_ms, second, 1);
        scene_wait(scene, 0);
        assert_int_equal(scene_runs(scene, guest), !refuses);
        assert_int_equal(scene_runs(scene, brief), refuses); // it is the next in the queue
        if (refuses != 0)
            scene_end(scene, brief);
        assert_int_equal(scene_runs(scene, first), refuses);
        scene_free(scene);
    }
}

/* The first job that waits has reserved the GPU for later; a parked one continues on it now. */
TEST(a_parked_job_continues_beside_the_reservations_of_others)
{
    _cleanup_(scene_freep) struct scene *scene = open_auto(1, 2);
    uint64_t host = add_running(scene, 1, 100000), long_one = add_running(scene, 1, 3000);
    scene_wait(scene, 500);
    uint64_t guest = scene_add(scene, 1, 100);
    let_park(scene);
    assert_true(scene_runs(scene, guest) && scene_runs(scene, long_one));
    struct sched_job_spec wide = scene_job(scene, 2, 90000);
    wide.key.priority = 1;
    uint64_t waits = scene_submit(scene, &wide);
    scene->n_parks = 0; // none is: they are busy
    scene_end(scene, guest);
    assert_true(scene_runs(scene, host));
    assert_false(scene_runs(scene, waits));
}

TEST(parked_jobs_count_against_the_limits_of_their_users)
{
    _cleanup_(scene_freep) struct scene *scene = scene_new();
    scene->settings.policy = policy_find("default");
    scene->settings.parking = PARKING_AUTO;
    scene->settings.preempt_cost_ms = scene->settings.preempt_cost_wide_ms = 0;
    scene->settings.preempt_grace_ms = 0;
    scene->settings.user_limits.jobs = 1;
    scene_open(scene, 1, 1);
    uint64_t host = add_running(scene, 1, 10000);
    scene_wait(scene, 500);
    struct sched_job_spec spec = scene_job(scene, 1, 100);
    spec.key.uid = 2;
    uint64_t guest = scene_submit(scene, &spec);
    let_park(scene);
    assert_true(scene_runs(scene, guest));
    uint64_t second = scene_add(scene, 0, 10);
    assert_false(scene_runs(scene, second));
    scene_end(scene, guest);
    assert_true(scene_runs(scene, host));
    assert_false(scene_runs(scene, second));
    scene_end(scene, host);
    assert_true(scene_runs(scene, second));
}

TEST(its_cpus_and_host_memory_stay_booked)
{
    _cleanup_(scene_freep) struct scene *scene = open_auto(1, 1);
    struct sched_job_spec spec = scene_job(scene, 1, 10000);
    spec.key.request.cpu_milli = 40000;
    uint64_t host = scene_submit(scene, &spec);
    sched_started(scene->sched, scene->now_ms, host);
    scene_wait(scene, 500);
    spec = scene_job(scene, 1, 100);
    spec.key.request.cpu_milli = 40000;
    scene_submit(scene, &spec);
    assert_int_equal(scene->n_parks, 0); // it would not fit beside it
    spec = scene_job(scene, 1, 100);
    spec.key.request.cpu_milli = 20000;
    uint64_t guest = scene_submit(scene, &spec);
    let_park(scene);
    assert_true(scene_runs(scene, guest));
    assert_int_equal(sched_cluster(scene->sched)->nodes[0].cpu_booked, 60000);
}

/* `host` 0: the reason is in the waiting job itself. */
static void check_why(struct scene *scene, uint64_t job, uint64_t host, const char *text)
{
    _cleanup_(why_clear) struct why why;
    why_explain(scene->sched, scene->now_ms, job, NULL, &why);
    if (strcmp(why.park.text, text) != 0 || why.park.host != host)
        fail_msg("\"%s\" expected, job %llu: \"%s\"", text, (unsigned long long)why.park.host, why.park.text);
}

#define LATE "it probably ends in 2h30m, and this one probably needs "

TEST(why_says_what_keeps_a_job_from_being_parked)
{
    static const struct {
        int64_t ran_s, guest_s; // of 10000 s
        uint32_t nodes, host_gpus, guest_gpus;
        bool is_about_guest;
        const char *text;
        int32_t host_priority, host_own_priority;
        uint32_t host_cpus, guest_cpus;
        bool host_cannot_park, guest_cannot_park, is_preemptible;
    } rows[] = {
        { 1000, 100, 1, 2, 2, true, "" },
        { 1000, 4560, 1, 2, 2, false, LATE "1h16m: more than 1/2 of that" },
        { 1000, 4560, 1, 2, 2, false, LATE "1h16m: more than 1/2 of that", .host_cannot_park = true },
        { 1000, 3000, 1, 2, 1, false,
            LATE "50m00s: more than 1/2 of that, or too much while its other GPUs would stay idle" },
        { 30, 10, 1, 2, 2, false, "it has had its GPUs for only 30s" },
        { 200, 741, 1, 2, 2, false,
            "it may be parked for at most 13m20s more, given its run time, and this one probably "
            "needs 12m21s, and its return up to 1m00s" },
        { 1000, 100, 1, 2, 2, false, "it cannot be parked", .host_cannot_park = true },
        { 30, 10, 1, 2, 2, false, "it cannot be parked", .host_cannot_park = true },
        { 200, 741, 1, 2, 2, false, "it cannot be parked", .host_cannot_park = true },
        { 1000, 100, 1, 2, 2, false, "it has a higher priority", .host_priority = 1 },
        { 1000, 100, 1, 2, 2, false, "its owner has given it a higher priority", .host_own_priority = 1 },
        { 1000, 100, 1, 1, 2, false,
            "it has 1 of the 2 GPUs that this one needs, and too few others can be parked with it",
            .guest_cpus = 60, .host_cpus = 10 },
        { 1000, 100, 1, 2, 2, false,
            "this one still could not start on its GPUs: its CPUs and host memory stay in use, and the "
            "GPUs "
            "may be needed back too soon",
            .guest_cpus = 40, .host_cpus = 40 },
        { 1000, 100, 1, 2, 2, true, "it is preemptible", .is_preemptible = true },
        { 1000, 100, 2, 4, 4, true, "it needs several nodes" },
        { 1000, 100, 1, 2, 2, true,
            "it has no time limit and cannot be parked itself, and no other GPUs can be promised to parked "
            "jobs",
            .guest_cannot_park = true },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct scene *scene = open_auto(rows[i].nodes, 2);
        struct sched_job_spec host = scene_job(scene, rows[i].host_gpus, 10000);
        host.key.priority = rows[i].host_priority;
        host.key.own_priority = rows[i].host_own_priority;
        host.key.request.cpu_milli = rows[i].host_cpus * 1000;
        host.key.request.nodes = rows[i].nodes;
        sched_started(scene->sched, scene->now_ms, scene_submit(scene, &host));
        scene_wait(scene, rows[i].ran_s);
        struct sched_job_spec guest = scene_job(scene, rows[i].guest_gpus, rows[i].guest_s);
        guest.key.is_preemptible = rows[i].is_preemptible;
        guest.key.request.cpu_milli = rows[i].guest_cpus * 1000;
        guest.key.request.nodes = rows[i].nodes;
        scene->cannot_park = rows[i].host_cannot_park ? host.id : rows[i].guest_cannot_park ? guest.id : 0;
        scene_submit(scene, &guest);
        assert_true(scene->n_parks == 0 || rows[i].text[0] == '\0');
        check_why(scene, guest.id, rows[i].is_about_guest ? 0 : host.id, rows[i].text);
        scene_free(scene);
    }
}

TEST(why_names_the_running_job_that_comes_nearest)
{
    for (unsigned is_first = 0; is_first < 2; is_first++) {
        struct scene *scene = open_auto(1, 2);
        uint64_t jobs[2];
        for (unsigned i = 0; i < 2; i++)
            jobs[i] = add_running(scene, 1, i == is_first ? 100000 : 1500);
        scene->cannot_park = jobs[is_first];
        scene_wait(scene, 1000);
        check_why(scene, scene_add(scene, 1, 400), jobs[is_first], "it cannot be parked");
        scene_free(scene);
    }
}

TEST(why_names_the_job_behind_which_nobody_is_parked)
{
    _cleanup_(scene_freep) struct scene *scene = open_auto(1, 2);
    add_running(scene, 2, 10000);
    scene_wait(scene, 1000);
    struct sched_job_spec first = scene_job(scene, 2, 10);
    scene->cannot_park = first.id;
    scene_submit(scene, &first);
    uint64_t second = scene_add(scene, 2, 100);
    char text[96];
    (void)snprintf(text, sizeof(text), "job %llu ahead of it has no time limit and cannot be parked itself",
        (unsigned long long)first.id);
    check_why(scene, second, 0, text);
}

TEST(why_says_that_hosts_make_way_for_others_already)
{
    _cleanup_(scene_freep) struct scene *scene = open_auto(1, 1);
    uint64_t host = add_running(scene, 1, 100000);
    scene_wait(scene, 5000);
    uint64_t guest = scene_add(scene, 1, 10000), other = scene_add(scene, 1, 20000);
    check_why(scene, guest, 0, ""); // its host is asked
    check_why(scene, other, host, "it already returns its GPUs");
    let_park(scene);
    sched_started(scene->sched, scene->now_ms, guest);
    scene_wait(scene, 500);
    uint64_t shorter = scene_add(scene, 1, 1000);
    let_park(scene);
    assert_true(scene_runs(scene, shorter));
    sched_started(scene->sched, scene->now_ms, shorter);
    scene_wait(scene, 500);
    uint64_t shortest = scene_add(scene, 1, 10);
    assert_int_equal(scene->n_parks, 0);
    check_why(scene, shortest, shorter, "2 jobs are already parked from one of its GPUs, the maximum");
}
