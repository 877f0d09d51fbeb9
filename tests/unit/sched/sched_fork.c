/* SPDX-License-Identifier: MIT */
/* A fork decides as the original does, and leaves it as it was. */
#include <stdlib.h>

#include "job/cluster_change.h"
#include "scene.h"
#include "sched/forecast.h"
#include "unit_test.h"

#define SEEDS     15U
#define DECISIONS 50U

static uint64_t random_state;

static uint32_t chance(uint32_t below)
{
    random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)(random_state >> 33) % below;
}

static struct sched_job_spec job_of_chance(struct scene *scene)
{
    struct sched_job_spec spec = scene_job(scene, 1 + chance(6), 1 + chance(900));
    spec.key.uid = 1 + chance(3);
    spec.key.command_hash = chance(3);
    spec.key.priority = chance(5) == 0;
    spec.key.limit_ms = chance(3) == 0 ? 1000 * (900 + chance(100)) : 0;
    spec.key.request.cpu_milli = 1000 * chance(20);
    if (spec.key.request.gpus == 1 && chance(2) == 0)
        spec.key.request.share = 250;
    if (chance(5) == 0) {
        spec.is_array = true;
        spec.elements = 1 + chance(8);
        spec.element_limit = chance(3);
    }
    if (chance(6) == 0)
        spec.begin_ms = scene->now_ms + chance(300000);
    return spec;
}

/* What runs, oldest start first; 0: nothing. */
static uint64_t running_of_chance(const struct scene *scene)
{
    size_t from = scene->n_starts > 0 ? chance((uint32_t)scene->n_starts) : 0;
    for (size_t i = 0; i < scene->n_starts; i++) {
        uint64_t job = scene->starts[(from + i) % scene->n_starts].job;
        if (scene_runs(scene, job))
            return job;
    }
    return 0;
}

static void happens(struct scene *scene)
{
    uint64_t job;
    struct sched_job_spec spec;
    switch (chance(4)) {
    case 0:
    case 1:
        spec = job_of_chance(scene);
        scene_submit(scene, &spec);
        break;
    case 2:
        job = running_of_chance(scene);
        if (job != 0)
            scene_end(scene, job);
        break;
    default: scene_wait(scene, chance(200)); break;
    }
}

/* Some GPUs are closed or taken in part, so that a copy that forgets it decides otherwise. */
static void close_some(struct scene *scene)
{
    struct cluster *cluster = sched_cluster(scene->sched);
    struct cluster_node *node = &cluster->nodes[chance((uint32_t)cluster->n_nodes)];
    node->gpus[chance(4)].closed = DEVICE_EXTERNAL;
    node->gpus[chance(4)].memory_external = 1ULL << 30;
    cluster_touch(cluster, node);
}

static void decide_alike(struct scene *scene, struct scene *fork)
{
    size_t before = scene->n_starts;
    for (size_t step = 0; step < 400 && scene->n_starts < before + DECISIONS; step++) {
        uint64_t kept = random_state;
        happens(scene);
        random_state = kept;
        happens(fork);
        assert_int_equal(scene->n_starts, fork->n_starts);
        for (size_t i = before; i < scene->n_starts; i++) {
            assert_int_equal(scene->starts[i].job, fork->starts[i].job);
            assert_int_equal(scene->starts[i].at_ms, fork->starts[i].at_ms);
            assert_int_equal(scene->starts[i].node, fork->starts[i].node);
            assert_int_equal(scene->starts[i].gpu, fork->starts[i].gpu);
        }
    }
}

static void check_policy(const char *policy)
{
    for (unsigned seed = 1; seed <= SEEDS; seed++) {
        struct scene *scene = scene_new();
        scene->settings.policy = policy_find(policy);
        scene->settings.reservations = 1 + seed % 4;
        random_state = seed;
        scene_open(scene, 1 + seed % 4, 4);
        if (seed % 3 == 0)
            close_some(scene);
        for (size_t i = 0; i < 60; i++)
            happens(scene);
        struct scene *fork = scene_fork(scene, SIZE_MAX);
        decide_alike(scene, fork);
        scene_free(fork);
        scene_free(scene);
    }
}

TEST(forks_decide_as_the_original_under_easy)
{
    check_policy("easy");
}

TEST(forks_decide_as_the_original_under_the_other_policies)
{
    check_policy("fifo");
    check_policy("fifo-skip");
    check_policy("conservative");
}

TEST(a_fork_leaves_the_original_as_it_was)
{
    for (random_state = 1; random_state < 20; random_state++) {
        uint64_t seed = random_state;
        struct scene *scene = scene_new();
        scene_open(scene, 2, 4);
        for (size_t i = 0; i < 60; i++)
            happens(scene);
        size_t length = sched_queue(scene->sched)->length, n_starts = scene->n_starts;
        struct sched_counts counts = *sched_counts(scene->sched);
        bool is_dirty = sched_is_dirty(scene->sched);
        int64_t next_ms = sched_next_ms(scene->sched);
        struct scene *fork = scene_fork(scene, SIZE_MAX);
        for (size_t i = 0; i < 60; i++)
            happens(fork);
        scene_free(fork);
        struct error err = { 0 };
        assert_int_equal(sched_invariant(scene->sched, &err), 0);
        assert_int_equal(sched_queue(scene->sched)->length, length);
        assert_int_equal(scene->n_starts, n_starts);
        assert_memory_equal(sched_counts(scene->sched), &counts, sizeof(counts));
        assert_int_equal(sched_is_dirty(scene->sched), is_dirty);
        assert_int_equal(sched_next_ms(scene->sched), next_ms);
        scene_free(scene);
        random_state = seed;
    }
}

TEST(a_fork_takes_only_so_many_waiting_jobs)
{
    _cleanup_(scene_freep) struct scene *scene = scene_new();
    scene_open(scene, 1, 4);
    for (int i = 0; i < 20; i++)
        scene_add(scene, 4, 60);
    _cleanup_(scene_freep) struct scene *fork = scene_fork(scene, 5);
    assert_int_equal(sched_queue(fork->sched)->length, 5);
    assert_int_equal(sched_queue(scene->sched)->length, 19);
    scene_end(fork, 1);
    assert_true(scene_runs(fork, 2));
    assert_false(scene_runs(scene, 2));
}

#define MANY_NODES 100U // more than one part of a copy

static void ignore_preemption(void *arg, uint64_t job, const char *why)
{
}

static uint64_t ignore_start(void *arg, uint64_t job, const struct allocation *allocation)
{
    return job;
}

static const struct sched_callbacks nobody = { .start = ignore_start, .preempt = ignore_preemption };

/* The same jobs hold the same resources. */
static void assert_same_bookings(struct sched *copy, struct sched *original)
{
    const struct cluster *one = sched_cluster(copy), *other = sched_cluster(original);
    struct error err = { 0 };
    assert_int_equal(sched_invariant(copy, &err), 0);
    assert_int_equal(one->n_nodes, other->n_nodes);
    for (size_t i = 0; i < one->n_nodes; i++) {
        assert_int_equal(one->nodes[i].jobs, other->nodes[i].jobs);
        assert_int_equal(one->nodes[i].n_gpus, other->nodes[i].n_gpus);
        for (size_t k = 0; k < one->nodes[i].n_gpus; k++)
            assert_int_equal(one->nodes[i].gpus[k].is_exclusive, other->nodes[i].gpus[k].is_exclusive);
    }
}

/* `changes` times, a job ends after so many parts of the copy, and the one after it starts elsewhere. */
static size_t copy_while_jobs_end(size_t changes, size_t parts_between)
{
    struct scene *scene = scene_new();
    scene_open(scene, MANY_NODES, 4);
    for (size_t i = 0; i < MANY_NODES * 4 + 20; i++)
        scene_add(scene, 1, 500);
    struct sched_copying *copying = sched_fork_begin(scene->sched, scene->now_ms, SIZE_MAX, 0, &nobody);
    size_t parts = 1;
    for (bool is_over = false; !is_over; parts++) {
        if (parts % parts_between == 0 && parts / parts_between <= changes)
            scene_end(scene, parts / parts_between);
        is_over = sched_fork_advance(copying);
    }
    struct sched *copy = sched_fork_end(copying);
    assert_same_bookings(copy, scene->sched);
    sched_free(copy);
    scene_free(scene);
    return parts;
}

TEST(a_copy_in_parts_is_of_one_moment)
{
    size_t undisturbed = copy_while_jobs_end(0, 1);
    assert_true(undisturbed > 4);
    for (size_t parts = 1; parts < undisturbed; parts++)
        assert_true(copy_while_jobs_end(1, parts) > undisturbed);
}

TEST(a_copy_of_a_cluster_that_always_changes_comes_to_an_end)
{
    size_t undisturbed = copy_while_jobs_end(0, 1);
    assert_true(copy_while_jobs_end(SIZE_MAX, 1) <= undisturbed + 3);
}

TEST(an_incomplete_copy_can_be_given_up)
{
    _cleanup_(scene_freep) struct scene *scene = scene_new();
    scene_open(scene, MANY_NODES, 4);
    scene_add(scene, 1, 500);
    struct forecast_run *run = forecast_begin(scene->sched, scene->now_ms, 10, 0, false);
    assert_false(forecast_advance(run, 1));
    forecast_end(run, NULL);
}

/* The estimate of a job that ends when another does is not outlived in between. */
TEST(jobs_that_are_expected_to_end_together_do_so_in_a_forecast)
{
    _cleanup_(scene_freep) struct scene *scene = scene_new();
    _cleanup_(forecast_clear) struct forecast forecast;
    int64_t from_ms = scene->now_ms;
    scene_open(scene, 1, 4);
    for (int i = 0; i < 4; i++)
        scene_add(scene, 1, 100);
    uint64_t job = scene_add(scene, 4, 10);
    forecast_run(scene->sched, scene->now_ms, 10, job, false, &forecast);
    assert_int_equal(forecast_find(&forecast, job), from_ms + 100000);
}

TEST(in_a_certain_forecast_jobs_end_at_their_limits_or_never)
{
    _cleanup_(scene_freep) struct scene *scene = scene_new();
    _cleanup_(forecast_clear) struct forecast forecast;
    int64_t from_ms = scene->now_ms;
    scene_open(scene, 2, 1);
    struct sched_job_spec spec = scene_job(scene, 1, 100);
    spec.key.limit_ms = 500000;
    scene_submit(scene, &spec);
    scene_add(scene, 1, 100);
    uint64_t one = scene_add(scene, 1, 10), other = scene_add(scene, 1, 10);
    forecast_run(scene->sched, scene->now_ms, 10, 0, true, &forecast);
    assert_int_equal(forecast_find(&forecast, one), from_ms + 500000);
    assert_int_equal(forecast_find(&forecast, other), TIME_NEVER);
    assert_false(forecast.is_complete);
}

/* What is drawn of running jobs ends where what is drawn of waiting ones begins. */
TEST(expected_starts_rest_on_the_expected_ends_that_are_told)
{
    _cleanup_(scene_freep) struct scene *scene = scene_new();
    _cleanup_(forecast_clear) struct forecast forecast;
    int64_t from_ms = scene->now_ms;
    scene_open(scene, 1, 2);
    struct sched_job_spec spec = scene_job(scene, 1, 100);
    spec.key.limit_ms = 500000;
    uint64_t runs = scene_submit(scene, &spec);
    uint64_t waits = scene_add(scene, 2, 10);
    forecast_run(scene->sched, scene->now_ms, 10, waits, false, &forecast);
    int64_t start_ms = forecast_find(&forecast, waits);
    assert_int_equal(sched_expected_end(scene->sched, runs, scene->now_ms, TIME_NEVER), from_ms + 100000);
    assert_int_equal(start_ms, from_ms + 100000);
    assert_int_equal(sched_expected_end(scene->sched, waits, scene->now_ms, start_ms), start_ms + 10000);
    assert_int_equal(sched_expected_end(scene->sched, waits, scene->now_ms, TIME_NEVER), TIME_NEVER);
    assert_int_equal(sched_expected_end(scene->sched, waits + 1, scene->now_ms, start_ms), TIME_NEVER);
}
