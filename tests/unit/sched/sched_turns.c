/* SPDX-License-Identifier: MIT */
/*
 * Jobs that go back to the queue when their time is over take turns: each goes to the end of the queue, so
 * that over an hour each has the GPU in proportion to its time limit, whatever the others' limits are.
 */
#include <stdlib.h>

#include "scene.h"
#include "unit_test.h"

#define HOUR_S 3600
#define JOBS   8

/* A job that runs until its time limit, each time. */
struct turner {
    struct sched_job_spec spec;
    int64_t had_ms; // of GPU time so far
    size_t turns;
};

struct turns {
    struct scene *scene;
    struct turner jobs[JOBS];
    size_t count;
};

static int open_turns(void **state)
{
    struct turns *turns = calloc(1, sizeof(*turns));
    assert_non_null(turns);
    turns->scene = scene_new();
    turns->scene->settings.policy = &policy_default;
    scene_open(turns->scene, 1, 1);
    *state = turns;
    return 0;
}

static int close_turns(void **state)
{
    struct turns *turns = *state;
    scene_free(turns->scene);
    free(turns);
    return 0;
}

#define CASE(name, turns) TEST_ON(name, struct turns *turns, open_turns, close_turns)

static struct turner *add(struct turns *turns, uint32_t uid, int64_t limit_s, int32_t priority)
{
    struct turner *job = &turns->jobs[turns->count++];
    job->spec = scene_job(turns->scene, 1, 0);
    job->spec.key.uid = job->spec.key.gid = uid;
    job->spec.key.limit_ms = limit_s * 1000;
    job->spec.key.priority = priority;
    job->spec.key.command_hash = job->spec.id;
    (void)scene_submit(turns->scene, &job->spec);
    return job;
}

static struct turner *running(struct turns *turns)
{
    for (size_t i = 0; i < turns->count; i++)
        if (scene_runs(turns->scene, turns->jobs[i].spec.id))
            return &turns->jobs[i];
    return NULL;
}

/* As the controller does it: the attempt is over, and the job comes back as one whose turn is over. */
static void end_turn(struct turns *turns, struct turner *job)
{
    struct scene *scene = turns->scene;
    sched_stopped(scene->sched, scene->now_ms, job->spec.id, 0);
    job->spec.submit_ms = scene->now_ms;
    job->spec.key.had_turn = true;
    sched_edit(scene->sched, scene->now_ms, &job->spec);
    scene_wait(scene, 0);
}

static void run(struct turns *turns, int64_t seconds)
{
    struct scene *scene = turns->scene;
    int64_t until_ms = scene->now_ms + seconds * 1000;
    while (scene->now_ms < until_ms) {
        struct turner *job = running(turns);
        assert_non_null(job); // the GPU is never idle while somebody waits
        sched_started(scene->sched, scene->now_ms, job->spec.id);
        scene_wait(scene, job->spec.key.limit_ms / 1000);
        job->had_ms += job->spec.key.limit_ms;
        job->turns++;
        end_turn(turns, job);
    }
}

static double share(const struct turns *turns, const struct turner *job)
{
    int64_t all_ms = 0;
    for (size_t i = 0; i < turns->count; i++)
        all_ms += turns->jobs[i].had_ms;
    return (double)job->had_ms / (double)all_ms;
}

CASE(two_users_with_unequal_limits_alternate, turns)
{
    const struct turner *brief = add(turns, 1, 3, 0), *lengthy = add(turns, 2, 600, 0);
    run(turns, HOUR_S);
    assert_in_range(brief->turns, lengthy->turns, lengthy->turns + 1);
    assert_in_range((int64_t)(share(turns, brief) * 1000), 4, 7);       // 3 of 603 seconds
    assert_in_range((int64_t)(share(turns, lengthy) * 1000), 993, 996); // 600 of 603
}

CASE(every_job_has_as_many_turns_as_each_other, turns)
{
    add(turns, 1, 5, 0);
    add(turns, 1, 20, 0);
    add(turns, 2, 60, 0);
    add(turns, 3, 35, 0);
    run(turns, HOUR_S);
    for (size_t i = 0; i < turns->count; i++) {
        assert_in_range(turns->jobs[i].turns, HOUR_S / 120, HOUR_S / 120 + 1);
        int64_t promille = turns->jobs[i].spec.key.limit_ms / 120;
        assert_in_range((int64_t)(share(turns, &turns->jobs[i]) * 1000), promille - 15, promille + 15);
    }
}

CASE(a_priority_does_not_keep_others_from_their_turns, turns)
{
    const struct turner *urgent = add(turns, 1, 30, 10), *usual = add(turns, 2, 30, 0);
    run(turns, HOUR_S);
    assert_in_range(urgent->turns, usual->turns, usual->turns + 1);
}

CASE(a_job_that_came_later_waits_for_one_turn_only, turns)
{
    const struct turner *brief = add(turns, 1, 10, 0);
    run(turns, 100);
    assert_int_equal(brief->turns, 10);
    struct turner *late = add(turns, 2, 300, 0);
    run(turns, 10);
    assert_ptr_equal(running(turns), late);
}

CASE(a_job_is_not_behind_those_who_came_after_its_turn, turns)
{
    struct turner *first = add(turns, 1, 10, 0), *second = add(turns, 2, 20, 0);
    run(turns, 10);
    assert_ptr_equal(running(turns), second);
    for (uint32_t i = 0; i < 4; i++)
        add(turns, 3 + i, 60, 0);
    run(turns, 20);
    /* No job waits longer, and it is expected to be the shortest. */
    assert_ptr_equal(running(turns), first);
}
