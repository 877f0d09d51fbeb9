/* SPDX-License-Identifier: MIT */
/* Backfill's promise on random days: if every job takes as long as expected, no job delays the first. */
#include <stdlib.h>

#include "scene.h"
#include "unit_test.h"

#define SEEDS 80U
#define STEPS 300U

static uint64_t random_state;

static uint32_t chance(uint32_t below)
{
    random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)(random_state >> 33) % below;
}

static void submit(struct scene *scene)
{
    struct sched_job_spec spec = scene_job(scene, chance(9), 1 + chance(300));
    struct sched_request *request = &spec.key.request;
    request->cpu_milli = request->gpus == 0 ? 8000 : 1000 * chance(20);
    if (request->gpus == 1 && chance(2) == 0)
        request->share = 300;
    if (request->gpus == 2 && chance(2) == 0)
        request->gpu_mem = 9ULL << 30;
    if (sched_check(scene->sched, &spec, &(struct error){ 0 }) == 0)
        scene_submit(scene, &spec);
}

static int64_t end_of(const struct scene *scene, uint64_t job)
{
    struct sched_job_status status;
    bool is_running = sched_job_status(scene->sched, job, scene->now_ms, &status) && status.is_running;
    return is_running ? status.expected_end_ms : TIME_NEVER;
}

/* The next end, exactly when it is due, and all others of that moment before the next pass. */
static void end_the_next(struct scene *scene)
{
    int64_t next_ms = TIME_NEVER;
    for (size_t i = 0; i < scene->n_starts; i++) {
        int64_t end_ms = end_of(scene, scene->starts[i].job);
        next_ms = end_ms < next_ms ? end_ms : next_ms;
    }
    if (next_ms == TIME_NEVER)
        return;
    uint64_t over[SCENE_STARTS];
    size_t n_over = 0;
    for (size_t i = 0; i < scene->n_starts; i++)
        if (end_of(scene, scene->starts[i].job) == next_ms)
            over[n_over++] = scene->starts[i].job;
    scene->now_ms = next_ms;
    for (size_t i = 1; i < n_over; i++)
        sched_ended(scene->sched, scene->now_ms, over[i], -1);
    scene_end(scene, over[0]);
}

/* The first that waits, and when it is to start. */
static uint64_t head_of(const struct scene *scene, int64_t *ret_shadow_ms)
{
    const struct queue_class *class = queue_first(sched_queue(scene->sched));
    struct sched_job_status status = { .shadow_ms = TIME_NEVER };
    if (class != NULL)
        (void)sched_job_status(scene->sched, class->first->job, scene->now_ms, &status);
    *ret_shadow_ms = status.shadow_ms;
    return class != NULL ? class->first->job : 0;
}

static void run_days(uint32_t node_jobs)
{
    size_t n_held = 0;
    for (unsigned seed = 1; seed <= SEEDS; seed++) {
        struct scene *scene = scene_new();
        int64_t shadow_ms = TIME_NEVER, now_shadow_ms;
        uint64_t head = 0;
        scene->settings.reservations = 1 + seed % 4;
        scene->settings.node_jobs = node_jobs;
        random_state = seed;
        scene_open(scene, 1 + seed % 5, 4);
        for (size_t i = 0; i < STEPS; i++) {
            if (chance(2) == 0)
                submit(scene);
            else
                end_the_next(scene);
            uint64_t now_head = head_of(scene, &now_shadow_ms);
            if (now_head != 0 && now_head == head && now_shadow_ms > shadow_ms)
                fail_msg("seed %u: job %lu was to start at %ld, now at %ld", seed, (unsigned long)head,
                    (long)shadow_ms, (long)now_shadow_ms);
            if (head != 0 && now_head != head)
                assert_true(scene_start_of(scene, head)->at_ms <= shadow_ms);
            head = now_head;
            shadow_ms = now_shadow_ms;
            n_held += shadow_ms < TIME_NEVER;
        }
        scene_free(scene);
    }
    assert_true(n_held > SEEDS * STEPS / 4);
}

TEST(the_first_that_waits_is_never_delayed)
{
    run_days(0);
}

TEST(nor_is_its_slot_of_a_node_given_away)
{
    for (uint32_t node_jobs = 1; node_jobs <= 4; node_jobs++)
        run_days(node_jobs);
}
