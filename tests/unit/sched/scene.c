/* SPDX-License-Identifier: MIT */
#include "scene.h"

#include <stdio.h>

#include "base/memory.h"
#include "unit_test.h"
#include <stdlib.h>

#define ELEMENTS 1000000U // ids of elements begin here

static uint64_t on_start(void *arg, uint64_t job, const struct allocation *allocation)
{
    struct scene *scene = arg;
    struct sched_job_status status;
    assert_true(scene->n_starts < SCENE_STARTS);
    struct scene_start *start = &scene->starts[scene->n_starts++];
    *start = (struct scene_start){
        .job = job, .asked = job, .at_ms = scene->now_ms, .n_gpus = allocation->n_gpus
    };
    if (allocation->n_gpus > 0) {
        start->node = allocation->gpus[0].node;
        start->gpu = allocation->gpus[0].gpu;
    }
    /* A plain job runs already under its own id; an array goes on and its element gets another. */
    if (!sched_job_status(scene->sched, job, scene->now_ms, &status) || !status.is_running)
        start->job = ELEMENTS + scene->n_starts;
    return start->job;
}

static void on_preempt(void *arg, uint64_t job, const char *why)
{
    struct scene *scene = arg;
    assert_non_null(why);
    assert_true(scene->n_preempted < 64);
    scene->preempted[scene->n_preempted++] = job;
}

static void on_reclaim(void *arg, uint64_t job, uint64_t parked)
{
    struct scene *scene = arg;
    scene->lenders[scene->n_preempted] = parked;
    on_preempt(scene, job, "its GPUs are due");
}

static void on_park(void *arg, uint64_t job, uint64_t guest)
{
    struct scene *scene = arg;
    assert_true(scene->n_parks < 64);
    scene->guests[scene->n_parks] = guest;
    scene->parks[scene->n_parks++] = job;
    if (scene->refuses_at_once)
        sched_park_refused(scene->sched, scene->now_ms, job);
}

static bool on_may_park(void *arg, uint64_t job)
{
    const struct scene *scene = arg;
    return job != scene->cannot_park;
}

static bool on_may_borrow(void *arg, uint64_t job)
{
    const struct scene *scene = arg;
    return scene->may_borrow && job == scene->cannot_park;
}

static void on_unreserve(void *arg, uint64_t reservation)
{
    struct scene *scene = arg;
    scene->returned[scene->n_returned++] = reservation;
}

struct scene *scene_new(void)
{
    struct scene *scene = xcalloc(1, sizeof(*scene));
    sched_settings_init(&scene->settings);
    scene->settings.policy = policy_find("easy");
    scene->settings.placement = &placement_best_fit;
    scene->settings.reservations = 1;
    scene->now_ms = 1000000;
    return scene;
}

void scene_open(struct scene *scene, uint32_t nodes, uint32_t gpus)
{
    struct sched_callbacks callbacks = { .arg = scene,
        .start = on_start,
        .preempt = on_preempt,
        .unreserve = on_unreserve,
        .park = on_park,
        .may_park = on_may_park,
        .reclaim = on_reclaim,
        .may_borrow = on_may_borrow };
    scene->sched = sched_new(&scene->settings, &callbacks);
    struct cluster *cluster = sched_cluster(scene->sched);
    for (uint32_t n = 0; n < nodes; n++) {
        char name[16], uuid[32];
        (void)snprintf(name, sizeof(name), "n%u", n);
        struct cluster_node *node = cluster_set_node(cluster, name, 64000, 256ULL << 30);
        for (uint32_t g = 0; g < gpus; g++) {
            (void)snprintf(uuid, sizeof(uuid), "GPU-%u-%u", n, g);
            cluster_set_gpu(cluster, node, g, uuid, "RTX 4090", 24ULL << 30, true);
        }
        cluster_touch(cluster, node);
    }
}

void scene_free(struct scene *scene)
{
    sched_free(scene->sched);
    free(scene);
}

void scene_freep(struct scene **scene)
{
    scene_free(*scene);
}

int scene_close(void **state)
{
    scene_free(*state);
    return 0;
}

struct scene *scene_fork(const struct scene *scene, size_t max_jobs)
{
    struct scene *copy = xcalloc(1, sizeof(*copy));
    *copy = *scene;
    struct sched_callbacks callbacks = {
        .arg = copy, .start = on_start, .preempt = on_preempt, .unreserve = on_unreserve
    };
    copy->sched = sched_fork(scene->sched, scene->now_ms, max_jobs, 0, &callbacks);
    return copy;
}

static void pass(struct scene *scene)
{
    struct error err = { 0 };
    sched_pass(scene->sched, scene->now_ms);
    if (sched_invariant(scene->sched, &err) < 0)
        fail_msg("%s", err.message);
}

struct sched_job_spec scene_job(struct scene *scene, uint32_t gpus, int64_t seconds)
{
    return (struct sched_job_spec){
        .id = ++scene->last_job,
        .submit_ms = scene->now_ms,
        .key = { .uid = 1, .gid = 1, .estimate_ms = seconds * 1000, .request = { .gpus = gpus } },
    };
}

uint64_t scene_submit(struct scene *scene, const struct sched_job_spec *spec)
{
    sched_submit(scene->sched, scene->now_ms, spec);
    pass(scene);
    return spec->id;
}

uint64_t scene_add(struct scene *scene, uint32_t gpus, int64_t seconds)
{
    struct sched_job_spec spec = scene_job(scene, gpus, seconds);
    return scene_submit(scene, &spec);
}

static void end(struct scene *scene, uint64_t job, bool is_ok)
{
    const struct scene_start *start = scene_start_of(scene, job);
    assert_non_null(start);
    sched_ended(scene->sched, scene->now_ms, job, scene->now_ms - start->at_ms);
    sched_resolve_dependents(scene->sched, scene->now_ms, job, is_ok);
    pass(scene);
}

void scene_end(struct scene *scene, uint64_t job)
{
    end(scene, job, true);
}

void scene_fail(struct scene *scene, uint64_t job)
{
    end(scene, job, false);
}

void scene_wait(struct scene *scene, int64_t seconds)
{
    int64_t until = scene->now_ms + seconds * 1000;
    for (;;) {
        int64_t next = sched_next_ms(scene->sched);
        scene->now_ms = next < until ? (next > scene->now_ms ? next : scene->now_ms + 1) : until;
        pass(scene);
        if (scene->now_ms >= until)
            return;
    }
}

bool scene_runs(const struct scene *scene, uint64_t job)
{
    struct sched_job_status status;
    return sched_job_status(scene->sched, job, scene->now_ms, &status) && status.is_running;
}

const struct scene_start *scene_start_of(const struct scene *scene, uint64_t job)
{
    for (size_t i = scene->n_starts; i-- > 0;)
        if (scene->starts[i].job == job)
            return &scene->starts[i];
    return NULL;
}

size_t scene_starts_from(const struct scene *scene, uint64_t asked)
{
    size_t count = 0;
    for (size_t i = 0; i < scene->n_starts; i++)
        count += scene->starts[i].asked == asked;
    return count;
}
