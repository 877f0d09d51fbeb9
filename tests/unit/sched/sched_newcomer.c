/* SPDX-License-Identifier: MIT */
/*
 * Beside a flood of one user: others come after the job that runs, and whoever the queue shows as the next is
 * the next. What comes free at the end of the flood's only running job must not go to the flood because its
 * user has nothing running at that moment.
 */

#include "scene.h"
#include "unit_test.h"

#define FLOOD    8
#define JOBS_MAX 32
#define JOB_S    5

struct flood {
    struct scene *scene;
    uint64_t jobs[JOBS_MAX], owners[JOBS_MAX];
    size_t count;
    uint32_t gpus; // of each job: all there are
    int64_t estimate_s;
};

static void submit(struct flood *flood, uint32_t uid)
{
    struct sched_job_spec spec = scene_job(flood->scene, flood->gpus, flood->estimate_s);
    spec.key.uid = spec.key.gid = uid;
    spec.key.command_hash = uid;
    flood->owners[flood->count] = uid;
    flood->jobs[flood->count++] = scene_submit(flood->scene, &spec);
}

static void open_flood(struct flood *flood, uint32_t gpus, int64_t estimate_s)
{
    *flood = (struct flood){ .scene = scene_new(), .gpus = gpus, .estimate_s = estimate_s };
    flood->scene->settings.policy = &policy_default;
    scene_open(flood->scene, 1, gpus);
    for (size_t i = 0; i < FLOOD; i++)
        submit(flood, 1);
    scene_wait(flood->scene, 2);
}

/* The job at this position of the queue, as an index; JOBS_MAX: none. */
static size_t at_position(const struct flood *flood, uint64_t position)
{
    struct sched_job_status status;
    for (size_t i = 0; i < flood->count; i++)
        if (sched_job_status(flood->scene->sched, flood->jobs[i], flood->scene->now_ms, &status) &&
            status.position == position)
            return i;
    return JOBS_MAX;
}

/* Lets the running job end, and returns the one that starts then; JOBS_MAX: none. */
static size_t next_start(struct flood *flood)
{
    size_t before = flood->scene->n_starts;
    scene_wait(flood->scene, JOB_S);
    scene_end(flood->scene, flood->scene->starts[before - 1].job);
    if (flood->scene->n_starts == before)
        return JOBS_MAX;
    assert_int_equal(flood->scene->n_starts, before + 1);
    for (size_t i = 0; i < flood->count; i++)
        if (flood->jobs[i] == flood->scene->starts[before].job)
            return i;
    return JOBS_MAX;
}

/* `each` jobs of each of the users 2 to `users`; the first of each of them precedes the rest of the flood. */
static void check_flood(uint32_t gpus, int64_t estimate_s, uint32_t users, size_t each)
{
    struct flood flood;
    size_t left = 0;
    open_flood(&flood, gpus, estimate_s);
    for (size_t i = 0; i < each; i++)
        for (uint32_t uid = 2; uid <= users; uid++)
            submit(&flood, uid);
    left = flood.count - 1;
    for (size_t turn = 0; left > 0; turn++, left--) {
        size_t shown = at_position(&flood, 1), started = next_start(&flood);
        assert_int_equal(started, shown);
        if (turn < users - 1)
            assert_int_equal(flood.owners[started], turn + 2);
    }
    assert_int_equal(next_start(&flood), JOBS_MAX);
    scene_free(flood.scene);
}

TEST(the_next_of_the_queue_starts_next)
{
    static const uint32_t gpus[] = { 1, 8 };
    static const int64_t estimates[] = { 0, JOB_S };
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < 2; k++)
            for (uint32_t users = 2; users <= 3; users++)
                for (size_t each = 1; each <= 3; each += 2)
                    check_flood(gpus[i], estimates[k], users, each);
}

TEST(a_newcomer_after_the_flood_has_gone_quiet_is_not_held_back)
{
    struct flood flood;
    open_flood(&flood, 1, JOB_S);
    while (next_start(&flood) != JOBS_MAX)
        continue;
    /* Nothing waited at that end, so no pass followed: its user is as good as any other. */
    submit(&flood, 3);
    submit(&flood, 1);
    submit(&flood, 3);
    assert_int_equal(flood.owners[next_start(&flood)], 1);
    scene_free(flood.scene);
}
