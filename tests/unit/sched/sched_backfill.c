/* SPDX-License-Identifier: MIT */
/* Reservations for blocked jobs: nobody delays them, and what does not delay them goes on. */
#include <stdlib.h>

#include "scene.h"
#include "unit_test.h"

static int open_scene(void **state)
{
    *state = scene_new();
    return 0;
}

#define CASE(name, scene) TEST_ON(name, struct scene *scene, open_scene, scene_close)

static int64_t started_at(const struct scene *scene, uint64_t job)
{
    const struct scene_start *start = scene_start_of(scene, job);
    assert_non_null(start);
    return start->at_ms;
}

CASE(a_short_job_passes_a_blocked_wide_one, scene)
{
    scene_open(scene, 1, 4);
    uint64_t first = scene_add(scene, 3, 100), wide = scene_add(scene, 4, 100);
    uint64_t brief = scene_add(scene, 1, 90), longer = scene_add(scene, 1, 200);
    assert_false(scene_runs(scene, wide));
    assert_true(scene_runs(scene, brief));
    assert_false(scene_runs(scene, longer));
    scene_wait(scene, 90);
    scene_end(scene, brief);
    assert_false(scene_runs(scene, longer));
    scene_wait(scene, 10);
    scene_end(scene, first);
    assert_true(scene_runs(scene, wide));
}

CASE(a_long_job_passes_on_gpus_that_are_not_kept, scene)
{
    scene_open(scene, 1, 4);
    scene_add(scene, 2, 100);
    scene_add(scene, 3, 100); // needs the two that run and one of the two free ones
    assert_true(scene_runs(scene, scene_add(scene, 1, 100000)));
    assert_false(scene_runs(scene, scene_add(scene, 1, 100000)));
}

CASE(what_is_kept_of_one_gpu_moves_nobody_on_another, scene)
{
    struct sched_job_status status;
    scene->settings.reservations = 3;
    scene_open(scene, 1, 2);
    scene_add(scene, 1, 100);
    scene_add(scene, 1, 150);
    scene_add(scene, 1, 300);  // kept for it from +100 s to +400 s
    scene_add(scene, 1, 5000); // and the other one from +150 s on
    uint64_t third = scene_add(scene, 1, 50);
    assert_true(sched_job_status(scene->sched, third, scene->now_ms, &status));
    assert_int_equal(status.shadow_ms, scene->now_ms + 400000);
}

CASE(a_stream_of_narrow_jobs_does_not_starve_a_wide_one, scene)
{
    scene_open(scene, 1, 4);
    uint64_t running[4], wide = 0;
    for (size_t i = 0; i < 4; i++)
        running[i] = scene_add(scene, 1, 100 + 10 * (int64_t)i);
    wide = scene_add(scene, 4, 100);
    for (size_t i = 0; i < 20; i++)
        scene_add(scene, 1, 1000);
    scene_wait(scene, 100);
    for (size_t i = 0; i < 4; i++) {
        scene_end(scene, running[i]);
        assert_int_equal(scene_runs(scene, wide), i == 3);
        scene_wait(scene, 10);
    }
}

CASE(a_job_that_outlives_its_estimate_moves_the_reservation_on, scene)
{
    struct sched_job_status status;
    scene_open(scene, 1, 2);
    uint64_t late = scene_add(scene, 1, 100), wide = scene_add(scene, 2, 100);
    assert_true(sched_job_status(scene->sched, wide, scene->now_ms, &status));
    assert_int_equal(status.shadow_ms, scene->now_ms + 100000);
    scene_wait(scene, 150);
    assert_true(sched_job_status(scene->sched, wide, scene->now_ms, &status));
    assert_true(status.shadow_ms > scene->now_ms);
    assert_true(scene_runs(scene, scene_add(scene, 1, 10))); // it fits into the new gap
    scene_end(scene, late);
    assert_false(scene_runs(scene, wide));
}

CASE(strict_fifo_lets_nobody_pass, scene)
{
    scene->settings.policy = policy_find("fifo");
    scene_open(scene, 1, 4);
    uint64_t first = scene_add(scene, 3, 100);
    scene_add(scene, 4, 100);
    uint64_t narrow = scene_add(scene, 1, 1);
    assert_false(scene_runs(scene, narrow));
    scene_end(scene, first);
    assert_false(scene_runs(scene, narrow));
}

CASE(conservative_backfill_delays_no_class, scene)
{
    scene->settings.policy = policy_find("conservative");
    scene_open(scene, 1, 4);
    scene_add(scene, 2, 100);
    uint64_t wide = scene_add(scene, 4, 100), half = scene_add(scene, 2, 100);
    struct sched_job_status status;
    assert_false(scene_runs(scene, wide));
    assert_true(scene_runs(scene, half)); // ends as early as the first
    uint64_t third = scene_add(scene, 3, 50);
    assert_true(sched_job_status(scene->sched, third, scene->now_ms, &status));
    assert_int_equal(status.shadow_ms, scene->now_ms + 200000); // behind the wide one, which begins at +100 s
}

CASE(a_reservation_is_on_the_node_that_is_free_soonest, scene)
{
    struct sched_job_status status;
    scene_open(scene, 200, 2); // more than are looked at one by one
    for (uint32_t n = 0; n < 200; n++)
        scene_add(scene, 2, 1000 - n);
    uint64_t wide = scene_add(scene, 2, 10);
    assert_true(sched_job_status(scene->sched, wide, scene->now_ms, &status));
    assert_int_equal(status.shadow_ms, scene->now_ms + 801000);
}

CASE(wide_jobs_get_whole_nodes_and_are_not_starved, scene)
{
    scene_open(scene, 3, 4);
    uint64_t narrow[3];
    for (size_t i = 0; i < 3; i++)
        narrow[i] = scene_add(scene, 3, 100);
    struct sched_job_spec spec = scene_job(scene, 8, 100);
    spec.key.request.nodes = 2;
    spec.key.request.gpus_per_node = 4;
    uint64_t wide = scene_submit(scene, &spec);
    assert_false(scene_runs(scene, wide));
    assert_true(scene_runs(scene, scene_add(scene, 1, 50)));
    scene_wait(scene, 100);
    for (size_t i = 0; i < 3; i++)
        scene_end(scene, narrow[i]);
    scene_end(scene, wide + 1);
    assert_true(scene_runs(scene, wide));
}

CASE(a_share_waits_for_its_part_and_others_share_the_gpu, scene)
{
    scene_open(scene, 1, 1);
    struct sched_job_spec half = scene_job(scene, 1, 100);
    half.key.request.share = 500;
    uint64_t first = scene_submit(scene, &half);
    half.id = ++scene->last_job;
    uint64_t second = scene_submit(scene, &half);
    half.id = ++scene->last_job;
    uint64_t third = scene_submit(scene, &half);
    assert_true(scene_runs(scene, first) && scene_runs(scene, second) && !scene_runs(scene, third));
    scene_end(scene, first);
    assert_true(scene_runs(scene, third));
}

CASE(shares_that_would_delay_the_head_are_not_tried_one_by_one, scene)
{
    scene_open(scene, 1, 2);
    scene_add(scene, 1, 100);
    uint64_t first = scene_add(scene, 1, 50);
    scene_add(scene, 2, 100); // both GPUs are kept for it in 100 s
    for (uint32_t uid = 10; uid < 30; uid++) {
        struct sched_job_spec longer = scene_job(scene, 1, 1000);
        longer.key.uid = uid;
        longer.key.request.share = 500;
        scene_submit(scene, &longer);
    }
    struct sched_job_spec brief = scene_job(scene, 1, 40);
    brief.key.request.share = 500;
    uint64_t last = scene_submit(scene, &brief);
    uint64_t before = sched_counts(scene->sched)->classes_tried;
    scene_wait(scene, 50);
    scene_end(scene, first);
    assert_true(scene_runs(scene, last));
    assert_true(sched_counts(scene->sched)->classes_tried - before < 10);
}

/* 12 + 6 GiB are in use of 24; the share needs 9.6 from +50 s on, so 5 GiB may be used until then. */
CASE(what_is_kept_for_a_share_of_a_gpu_is_its_memory_as_well, scene)
{
    scene_open(scene, 1, 1);
    struct sched_job_spec half = scene_job(scene, 1, 1000), by_memory = scene_job(scene, 1, 50),
                          share = scene_job(scene, 1, 1000), late = scene_job(scene, 1, 100);
    half.key.request.share = 500;
    scene_submit(scene, &half);
    by_memory.key.request.gpu_mem = 6ULL << 30;
    scene_submit(scene, &by_memory);
    share.key.request.share = 400;
    uint64_t blocked = scene_submit(scene, &share);
    late.key.request.gpu_mem = 5ULL << 30;
    uint64_t longer = scene_submit(scene, &late);
    late.key.estimate_ms = 40000;
    late.id = ++scene->last_job;
    uint64_t brief = scene_submit(scene, &late);
    assert_false(scene_runs(scene, blocked));
    assert_false(scene_runs(scene, longer));
    assert_true(scene_runs(scene, brief));
}

CASE(a_pass_without_news_looks_at_nothing, scene)
{
    scene_open(scene, 1, 1);
    scene_add(scene, 1, 100);
    for (size_t i = 0; i < 50; i++)
        scene_add(scene, 1, 100 + (int64_t)i);
    uint64_t passes = sched_counts(scene->sched)->passes;
    assert_false(sched_is_dirty(scene->sched));
    sched_pass(scene->sched, scene->now_ms);
    assert_int_equal(sched_counts(scene->sched)->passes, passes);
}

CASE(preemptible_jobs_give_way_and_lose_the_least, scene)
{
    scene_open(scene, 2, 2);
    uint64_t idle[4];
    for (size_t i = 0; i < 4; i++) {
        struct sched_job_spec spec = scene_job(scene, 1, 10000);
        spec.key.is_preemptible = true;
        idle[i] = scene_submit(scene, &spec);
        scene_wait(scene, 10);
    }
    uint64_t urgent = scene_add(scene, 1, 100);
    assert_false(scene_runs(scene, urgent));
    assert_int_equal(scene->n_preempted, 1);
    assert_int_equal(scene->preempted[0], idle[3]); // the youngest
    scene_wait(scene, 5);
    assert_int_equal(scene->n_preempted, 1); // told once
    sched_stopped(scene->sched, scene->now_ms, idle[3], 0);
    scene_wait(scene, 0);
    assert_true(scene_runs(scene, urgent));
    assert_false(scene_runs(scene, idle[3]));
    scene_end(scene, urgent);
    assert_true(scene_runs(scene, idle[3]));
}

CASE(a_named_gpu_is_promised_for_when_the_host_has_room_as_well, scene)
{
    struct sched_job_status status;
    scene_open(scene, 1, 4);
    struct sched_job_spec holder = scene_job(scene, 1, 100);
    holder.key.request.memory = 200ULL << 30;
    scene_submit(scene, &holder);
    struct gpu_pick pick = { NULL, 3 };
    struct sched_job_spec spec = scene_job(scene, 1, 50);
    spec.key.request.picks = &pick;
    spec.key.request.n_picks = 1;
    spec.key.request.memory = 200ULL << 30;
    uint64_t job = scene_submit(scene, &spec);
    assert_true(sched_job_status(scene->sched, job, scene->now_ms, &status));
    assert_int_equal(status.shadow_ms, scene->now_ms + 100000);
    /* Its memory is kept as well. */
    struct sched_job_spec longer = scene_job(scene, 1, 500);
    longer.key.request.memory = 60ULL << 30;
    uint64_t other = scene_submit(scene, &longer);
    assert_false(scene_runs(scene, other));
}

/* The second GPU is free now and reserved from +50 s on; the memory comes free at +100 s, the first at +500
 * s. */
CASE(a_gpu_is_not_promised_for_a_time_when_it_is_reserved, scene)
{
    struct sched_job_status status;
    struct error err = { 0 };
    uint32_t uid = 7;
    struct sched_request one = { .gpus = 1 };
    scene_open(scene, 1, 2);
    scene_add(scene, 1, 500);
    struct sched_reservation reservation = { .id = 1,
        .from_ms = scene->now_ms + 50000,
        .until_ms = scene->now_ms + 10000000,
        .uids = &uid,
        .n_uids = 1 };
    assert_int_equal(sched_reserve(scene->sched, scene->now_ms, &one, &reservation, &err), 0);
    free(reservation.gpus);
    struct sched_job_spec holder = scene_job(scene, 0, 100), job = scene_job(scene, 1, 30);
    holder.key.request.memory = job.key.request.memory = 200ULL << 30;
    job.key.limit_ms = 30000;
    assert_true(scene_runs(scene, scene_submit(scene, &holder)));
    assert_false(scene_runs(scene, scene_submit(scene, &job)));
    assert_true(sched_job_status(scene->sched, job.id, scene->now_ms, &status));
    assert_int_equal(status.shadow_ms, scene->now_ms + 500000);
}

static uint64_t add_preemptible(struct scene *scene, uint32_t gpus, uint32_t nodes)
{
    struct sched_job_spec spec = scene_job(scene, gpus, 10000);
    spec.key.is_preemptible = true;
    spec.key.request.nodes = nodes;
    uint64_t job = scene_submit(scene, &spec);
    assert_true(scene_runs(scene, job));
    scene_wait(scene, 10);
    return job;
}

/* The preempted jobs stop; then the job runs. */
static void assert_starts_for(struct scene *scene, uint64_t job, size_t n_preempted)
{
    assert_int_equal(scene->n_preempted, n_preempted);
    for (size_t i = 0; i < n_preempted; i++)
        sched_stopped(scene->sched, scene->now_ms, scene->preempted[i], 0);
    scene_wait(scene, 0);
    assert_true(scene_runs(scene, job));
}

CASE(an_idle_job_gives_way_until_it_works_again, scene)
{
    scene_open(scene, 1, 4);
    uint64_t idle = scene_add(scene, 4, 10000);
    scene_wait(scene, 100);
    (void)scene_add(scene, 4, 50);
    assert_int_equal(scene->n_preempted, 0);
    sched_idle(scene->sched, scene->now_ms, idle, true);
    sched_idle(scene->sched, scene->now_ms, idle, false);
    scene_wait(scene, 10);
    assert_int_equal(scene->n_preempted, 0);
    sched_idle(scene->sched, scene->now_ms, idle, true);
    scene_wait(scene, 0);
    assert_int_equal(scene->n_preempted, 1);
    assert_int_equal(scene->preempted[0], idle);
    sched_stopped(scene->sched, scene->now_ms, idle, 0);
}

CASE(an_idle_job_of_a_higher_priority_stays, scene)
{
    scene_open(scene, 1, 4);
    struct sched_job_spec spec = scene_job(scene, 4, 10000);
    spec.key.priority = 5;
    uint64_t idle = scene_submit(scene, &spec);
    sched_idle(scene->sched, scene->now_ms, idle, true);
    (void)scene_add(scene, 4, 50);
    scene_wait(scene, 100);
    assert_int_equal(scene->n_preempted, 0);
}

CASE(preemptible_jobs_give_way_to_a_job_on_several_nodes, scene)
{
    scene_open(scene, 4, 2);
    scene_add(scene, 2, 10000); // one node is nobody's to give
    uint64_t jobs[6];
    for (size_t i = 0; i < 6; i++)
        jobs[i] = add_preemptible(scene, 1, 0);
    struct sched_job_spec spec = scene_job(scene, 4, 100);
    spec.key.request.nodes = 2;
    uint64_t urgent = scene_submit(scene, &spec);
    for (size_t i = 0; i < scene->n_preempted; i++)
        assert_true(scene->preempted[i] != jobs[0] && scene->preempted[i] != jobs[1]); // they lose most
    assert_starts_for(scene, urgent, 4);
}

CASE(a_wide_preemptible_job_is_told_once_and_alone_if_that_is_enough, scene)
{
    scene_open(scene, 2, 4);
    uint64_t wide = add_preemptible(scene, 6, 2);
    uint64_t narrow = add_preemptible(scene, 1, 0);
    struct sched_job_spec spec = scene_job(scene, 6, 100);
    spec.key.request.nodes = 2;
    uint64_t urgent = scene_submit(scene, &spec);
    assert_int_equal(scene->preempted[0], wide);
    assert_starts_for(scene, urgent, 1);
    assert_true(scene_runs(scene, narrow));
}

CASE(nobody_gives_way_when_the_nodes_are_not_enough, scene)
{
    scene_open(scene, 2, 2);
    scene_add(scene, 1, 10000);
    scene_add(scene, 1, 10000);
    (void)add_preemptible(scene, 2, 0);
    struct sched_job_spec spec = scene_job(scene, 4, 100);
    spec.key.request.nodes = 2;
    scene_submit(scene, &spec);
    assert_int_equal(scene->n_preempted, 0);
}

CASE(the_holders_of_named_gpus_give_way_on_all_nodes, scene)
{
    scene_open(scene, 2, 2);
    for (size_t i = 0; i < 4; i++)
        (void)add_preemptible(scene, 1, 0);
    char node_0[] = "n0", node_1[] = "n1";
    struct gpu_pick picks[] = { { node_0, 1 }, { node_1, 0 } };
    struct sched_job_spec spec = scene_job(scene, 2, 100);
    spec.key.request.picks = picks;
    spec.key.request.n_picks = 2;
    assert_starts_for(scene, scene_submit(scene, &spec), 2);
}

CASE(preemptible_jobs_do_not_make_each_other_give_way, scene)
{
    scene_open(scene, 1, 1);
    for (size_t i = 0; i < 2; i++) {
        struct sched_job_spec spec = scene_job(scene, 1, 100);
        spec.key.is_preemptible = true;
        scene_submit(scene, &spec);
    }
    assert_int_equal(scene->n_preempted, 0);
}

CASE(reservations_of_people_keep_others_out_and_come_back_unused, scene)
{
    struct error err = { 0 };
    scene->settings.unused_ms = 600 * 1000;
    scene_open(scene, 1, 2);
    uint32_t uid = 7;
    struct sched_request two = { .gpus = 2 };
    struct sched_reservation reservation = { .id = 1,
        .from_ms = scene->now_ms + 100000,
        .until_ms = scene->now_ms + 10000000,
        .uids = &uid,
        .n_uids = 1 };
    assert_int_equal(sched_reserve(scene->sched, scene->now_ms, &two, &reservation, &err), 0);
    free(reservation.gpus);
    uint64_t endless = scene_add(scene, 1, 10);
    assert_false(scene_runs(scene, endless)); // nobody promises that it is over by then
    struct sched_job_spec limited = scene_job(scene, 1, 10);
    limited.key.limit_ms = 50000;
    assert_true(scene_runs(scene, scene_submit(scene, &limited)));
    scene_end(scene, limited.id);
    scene_wait(scene, 200);
    struct sched_job_spec own = scene_job(scene, 1, 1000);
    own.key.uid = uid;
    assert_true(scene_runs(scene, scene_submit(scene, &own)));
    assert_false(scene_runs(scene, endless));
    scene_end(scene, own.id);
    scene_wait(scene, 1300); // unused for ten minutes
    assert_int_equal(scene->n_returned, 1);
    assert_true(scene_runs(scene, endless));
}

CASE(reservations_do_not_overlap_and_do_not_lie_in_the_past, scene)
{
    scene_open(scene, 1, 2);
    uint32_t uid = 7;
    struct sched_request two = { .gpus = 2 };
    struct error err = { 0 };
    struct sched_reservation past = { .id = 1, .from_ms = 1, .until_ms = 2, .uids = &uid, .n_uids = 1 };
    assert_true(sched_reserve(scene->sched, scene->now_ms, &two, &past, &err) < 0);
    struct sched_reservation first = {
        .id = 2, .from_ms = scene->now_ms, .until_ms = scene->now_ms + 1000, .uids = &uid, .n_uids = 1
    };
    struct sched_reservation second = first;
    assert_int_equal(sched_reserve(scene->sched, scene->now_ms, &two, &first, &err), 0);
    assert_true(sched_reserve(scene->sched, scene->now_ms, &two, &second, &err) < 0);
    second.from_ms = first.until_ms;
    second.until_ms = first.until_ms + 1000;
    second.n_gpus = 0;
    assert_int_equal(sched_reserve(scene->sched, scene->now_ms, &two, &second, &err), 0);
    free(first.gpus);
    free(second.gpus);
}

CASE(a_job_that_waits_for_the_night_begins_it_with_the_reservation_over, scene)
{
    scene_open(scene, 1, 1);
    uint32_t uid = 7;
    struct sched_request one = { .gpus = 1 };
    struct error err = { 0 };
    struct sched_reservation reservation = {
        .id = 1, .from_ms = scene->now_ms, .until_ms = scene->now_ms + 60000, .uids = &uid, .n_uids = 1
    };
    assert_int_equal(sched_reserve(scene->sched, scene->now_ms, &one, &reservation, &err), 0);
    free(reservation.gpus);
    uint64_t job = scene_add(scene, 1, 10);
    scene_wait(scene, 100);
    assert_int_equal(started_at(scene, job), reservation.until_ms);
}
