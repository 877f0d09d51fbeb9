/* SPDX-License-Identifier: MIT */
/* Which waiting job may begin on the CPU: the one that is next for GPUs that are free soon. */

#include <string.h>

#include "scene.h"
#include "unit_test.h"

#define MINUTE INT64_C(60000)

/* The caller's data. */
struct knowledge {
    uint64_t asking[8]; // jobs that may start early
    size_t n_asking;
    uint64_t ending; // a job that is being ended
};

static bool may_start(void *arg, uint64_t job, uint32_t node)
{
    const struct knowledge *known = arg;
    for (size_t i = 0; i < known->n_asking; i++)
        if (known->asking[i] == job)
            return true;
    return false;
}

static bool is_ending(void *arg, uint64_t job)
{
    return ((const struct knowledge *)arg)->ending == job;
}

struct answer {
    uint64_t job; // 0: none
    int64_t again_ms;
    uint32_t gpu;
};

static struct answer ask(
    struct scene *scene, struct knowledge *known, const struct alloc_gpu *awaited, size_t n)
{
    struct sched_early early;
    struct answer answer = { 0 };
    const struct sched_early_rules rules = {
        .within_ms = 2 * MINUTE,
        .may_start = may_start,
        .is_ending = is_ending,
        .arg = known,
        .awaited = awaited,
        .n_awaited = n,
    };
    if (!sched_find_early(scene->sched, scene->now_ms, &rules, &early, &answer.again_ms))
        return answer;
    answer.job = early.job;
    answer.gpu = early.place.gpus[0].gpu;
    assert_int_equal(early.place.n_nodes, 1);
    allocation_clear(&early.place);
    return answer;
}

/* One node with so many GPUs, and a job of each length (seconds) on one of them. */
static struct scene *make(uint32_t gpus, const int64_t *seconds, uint64_t *jobs)
{
    struct scene *scene = scene_new();
    scene_open(scene, 1, gpus);
    for (uint32_t i = 0; i < gpus; i++)
        jobs[i] = scene_add(scene, 1, seconds[i]);
    return scene;
}

TEST(the_next_job_starts_when_its_gpu_is_free_soon)
{
    uint64_t running[1];
    _cleanup_(scene_freep) struct scene *scene = make(1, (int64_t[]){ 600 }, running);
    struct knowledge known = { .asking = { scene_add(scene, 1, 60) }, .n_asking = 1 };
    struct answer answer = ask(scene, &known, NULL, 0);
    assert_int_equal(answer.job, 0);
    assert_int_equal(answer.again_ms, scene->now_ms + 8 * MINUTE);
    scene_wait(scene, 8 * 60);
    assert_int_equal(ask(scene, &known, NULL, 0).job, known.asking[0]);
}

TEST(a_gpu_whose_job_is_being_ended_is_free_soon)
{
    uint64_t running[1];
    _cleanup_(scene_freep) struct scene *scene = make(1, (int64_t[]){ 36000 }, running);
    struct knowledge known = { .asking = { scene_add(scene, 1, 60) }, .n_asking = 1 };
    assert_int_equal(ask(scene, &known, NULL, 0).job, 0);
    known.ending = running[0];
    assert_int_equal(ask(scene, &known, NULL, 0).job, known.asking[0]);
}

TEST(it_gets_the_gpu_that_is_free_first)
{
    uint64_t running[3];
    _cleanup_(scene_freep) struct scene *scene = make(3, (int64_t[]){ 90, 30, 60 }, running);
    struct knowledge known = { .asking = { scene_add(scene, 1, 60) }, .n_asking = 1 };
    assert_int_equal(ask(scene, &known, NULL, 0).gpu, scene_start_of(scene, running[1])->gpu);
}

/* The time at which the last of its GPUs is probably free counts, not the first. */
TEST(a_job_of_several_gpus_starts_when_all_of_them_are_free_soon)
{
    uint64_t running[3];
    _cleanup_(scene_freep) struct scene *scene = make(3, (int64_t[]){ 600, 30, 36000 }, running);
    struct knowledge known = { .asking = { scene_add(scene, 2, 60) }, .n_asking = 1 };
    struct sched_early early;
    int64_t again_ms;
    const struct sched_early_rules rules = {
        .within_ms = 2 * MINUTE, .may_start = may_start, .is_ending = is_ending, .arg = &known
    };
    struct answer answer = ask(scene, &known, NULL, 0);
    assert_int_equal(answer.job, 0);
    assert_int_equal(answer.again_ms, scene->now_ms + 8 * MINUTE);
    scene_end(scene, running[1]); // one of them is free already
    scene_wait(scene, 8 * 60);
    assert_true(sched_find_early(scene->sched, scene->now_ms, &rules, &early, &again_ms));
    assert_int_equal(early.job, known.asking[0]);
    assert_int_equal(early.place.n_gpus, 2);
    uint32_t late = scene_start_of(scene, running[2])->gpu;
    assert_true(early.place.gpus[0].gpu != late && early.place.gpus[1].gpu != late);
    allocation_clear(&early.place);
    /* All of them are taken, and a job behind it begins for none. */
    const struct alloc_gpu awaited[] = { { .node = 0, .gpu = scene_start_of(scene, running[0])->gpu } };
    assert_int_equal(ask(scene, &known, awaited, 1).job, 0);
}

TEST(those_ahead_take_their_gpus_first)
{
    uint64_t running[2];
    _cleanup_(scene_freep) struct scene *scene = make(2, (int64_t[]){ 30, 36000 }, running);
    (void)scene_add(scene, 1, 60); // does not ask
    struct knowledge known = { .asking = { scene_add(scene, 1, 60) }, .n_asking = 1 };
    assert_int_equal(ask(scene, &known, NULL, 0).job, 0);
}

TEST(a_gpu_for_which_another_job_waits_is_taken)
{
    uint64_t running[2];
    _cleanup_(scene_freep) struct scene *scene = make(2, (int64_t[]){ 30, 60 }, running);
    struct knowledge known = { .asking = { scene_add(scene, 1, 60) }, .n_asking = 1 };
    uint32_t first = scene_start_of(scene, running[0])->gpu, other = scene_start_of(scene, running[1])->gpu;
    const struct alloc_gpu awaited[] = { { .node = 0, .gpu = first }, { .node = 0, .gpu = other } };
    assert_int_equal(ask(scene, &known, awaited, 1).gpu, other);
    assert_int_equal(ask(scene, &known, awaited, 2).job, 0);
}

TEST(it_needs_its_cpus_and_memory_now)
{
    uint64_t running[2];
    _cleanup_(scene_freep) struct scene *scene = scene_new();
    scene_open(scene, 1, 1);
    struct sched_job_spec spec = scene_job(scene, 1, 60);
    spec.key.request.cpu_milli = 40000;
    running[0] = scene_submit(scene, &spec);
    spec = scene_job(scene, 1, 60);
    spec.key.request.cpu_milli = 40000;
    struct knowledge known = { .asking = { scene_submit(scene, &spec) }, .n_asking = 1 };
    assert_true(scene_runs(scene, running[0]));
    assert_int_equal(ask(scene, &known, NULL, 0).job, 0);
    sched_withdraw(scene->sched, scene->now_ms, known.asking[0]);
    spec = scene_job(scene, 1, 60);
    spec.key.request.cpu_milli = 24000;
    known.asking[0] = scene_submit(scene, &spec);
    assert_int_equal(ask(scene, &known, NULL, 0).job, known.asking[0]);
    /* GPUs booked for another job that waits for them are not free either. */
    struct cluster *cluster = sched_cluster(scene->sched);
    cluster_keep(cluster, &cluster->nodes[0], 1000, 0);
    assert_int_equal(ask(scene, &known, NULL, 0).job, 0);
    cluster_keep(cluster, &cluster->nodes[0], 0, 0);
    assert_int_equal(ask(scene, &known, NULL, 0).job, known.asking[0]);
}

TEST(what_is_kept_is_kept_in_a_copy_and_when_all_jobs_have_ended)
{
    uint64_t running[1];
    struct error err = { 0 };
    _cleanup_(scene_freep) struct scene *scene = make(1, (int64_t[]){ 60 }, running);
    struct cluster *cluster = sched_cluster(scene->sched);
    cluster_keep(cluster, &cluster->nodes[0], 64000, 1 << 20);
    _cleanup_(scene_freep) struct scene *copy = scene_fork(scene, 10);
    struct scene *const both[] = { scene, copy };
    for (size_t i = 0; i < 2; i++) {
        scene_end(both[i], running[0]);
        struct sched_job_spec spec = scene_job(both[i], 1, 60);
        spec.key.request.cpu_milli = 1000;
        assert_false(scene_runs(both[i], scene_submit(both[i], &spec)));
        assert_int_equal(sched_invariant(both[i]->sched, &err), 0);
    }
}

/* A share, several nodes, a node for itself, picked GPUs, an array. */
TEST(jobs_that_are_not_plain_start_as_usual)
{
    for (int kind = 0; kind < 4; kind++) {
        uint64_t running[1];
        struct scene *scene = make(1, (int64_t[]){ 60 }, running);
        struct sched_job_spec spec = scene_job(scene, 1, 60);
        if (kind == 0)
            spec.key.request.share = 500;
        else if (kind == 1)
            spec.key.request.is_exclusive = true;
        else if (kind == 2)
            spec.key.request.gpu_mem = 1 << 30;
        else
            spec.is_array = true;
        spec.elements = spec.is_array ? 3 : 0;
        struct knowledge known = { .asking = { scene_submit(scene, &spec) }, .n_asking = 1 };
        assert_int_equal(ask(scene, &known, NULL, 0).job, 0);
        scene_free(scene);
    }
}
