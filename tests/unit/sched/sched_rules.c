/* SPDX-License-Identifier: MIT */
/* What keeps a job from the queue, and what lets it in. */
#include <errno.h>
#include <string.h>

#include "scene.h"
#include "sched/why.h"
#include "unit_test.h"

static int open_scene(void **state)
{
    struct scene *scene = scene_new();
    scene_open(scene, 1, 4);
    *state = scene;
    return 0;
}

#define CASE(name, scene) TEST_ON(name, struct scene *scene, open_scene, scene_close)

CASE(a_held_job_waits_until_it_is_released, scene)
{
    struct sched_job_spec spec = scene_job(scene, 1, 60);
    spec.hold = BLOCK_HELD_USER | BLOCK_HELD_ADMIN;
    uint64_t job = scene_submit(scene, &spec);
    assert_false(scene_runs(scene, job));
    sched_block(scene->sched, scene->now_ms, job, 0, BLOCK_HELD_USER, TIME_NEVER);
    scene_wait(scene, 10);
    assert_false(scene_runs(scene, job));
    sched_block(scene->sched, scene->now_ms, job, 0, BLOCK_HELD_ADMIN, TIME_NEVER);
    assert_true(sched_is_dirty(scene->sched));
    scene_wait(scene, 0);
    assert_true(scene_runs(scene, job));
}

CASE(a_job_begins_at_its_begin_time, scene)
{
    struct sched_job_spec spec = scene_job(scene, 1, 60);
    spec.begin_ms = scene->now_ms + 90000;
    uint64_t job = scene_submit(scene, &spec);
    assert_int_equal(sched_next_ms(scene->sched), spec.begin_ms);
    scene_wait(scene, 200);
    assert_int_equal(scene_start_of(scene, job)->at_ms, spec.begin_ms);
}

CASE(backoff_ends_by_itself, scene)
{
    uint64_t job = scene_add(scene, 1, 60);
    sched_stopped(scene->sched, scene->now_ms, job, 0);
    sched_block(scene->sched, scene->now_ms, job, BLOCK_BACKOFF, 0, scene->now_ms + 5000);
    scene_wait(scene, 4);
    assert_false(scene_runs(scene, job));
    scene_wait(scene, 1);
    assert_true(scene_runs(scene, job));
}

static uint64_t submit_after(struct scene *scene, uint64_t job, enum after_kind kind)
{
    struct ask_after after = { .job = job, .kind = kind };
    struct sched_job_spec spec = scene_job(scene, 1, 60);
    spec.after = &after;
    spec.n_after = 1;
    return scene_submit(scene, &spec);
}

CASE(dependents_start_when_the_end_is_as_asked, scene)
{
    uint64_t good = scene_add(scene, 1, 60), bad = scene_add(scene, 1, 60);
    const struct {
        uint64_t job;
        enum after_kind kind;
        bool starts;
    } rows[] = {
        { good, AFTER_OK, true },
        { good, AFTER_ANY, true },
        { good, AFTER_FAIL, false },
        { bad, AFTER_OK, false },
        { bad, AFTER_ANY, true },
        { bad, AFTER_FAIL, true },
    };
    uint64_t waiting[6];
    for (size_t i = 0; i < 6; i++)
        waiting[i] = submit_after(scene, rows[i].job, rows[i].kind);
    scene_wait(scene, 10);
    for (size_t i = 0; i < 6; i++) {
        assert_false(scene_runs(scene, waiting[i]));
        assert_int_equal(sched_wait_of(scene->sched, waiting[i], rows[i].job), SCHED_WAIT_OPEN);
    }
    scene_end(scene, good);
    scene_fail(scene, bad);
    for (size_t i = 0; i < 6; i++) {
        struct sched_job_status status;
        assert_int_equal(scene_runs(scene, waiting[i]), rows[i].starts);
        assert_true(sched_job_status(scene->sched, waiting[i], scene->now_ms, &status));
        assert_int_equal((status.blockers & BLOCK_NEVER) != 0, !rows[i].starts);
        assert_int_equal(sched_wait_of(scene->sched, waiting[i], rows[i].job),
            rows[i].starts ? SCHED_WAIT_TRUE : SCHED_WAIT_NEVER);
    }
}

CASE(a_job_waits_for_all_it_names, scene)
{
    uint64_t first = scene_add(scene, 1, 60), second = scene_add(scene, 1, 60);
    struct ask_after after[] = { { .job = first, .kind = AFTER_OK }, { .job = second, .kind = AFTER_OK } };
    struct sched_job_spec spec = scene_job(scene, 1, 60);
    spec.after = after;
    spec.n_after = 2;
    uint64_t job = scene_submit(scene, &spec);
    scene_end(scene, second);
    assert_false(scene_runs(scene, job));
    scene_end(scene, first);
    assert_true(scene_runs(scene, job));
}

static uint64_t submit_any(struct scene *scene, uint64_t good, uint64_t bad, enum after_kind kind)
{
    struct ask_after after[] = { { .job = good, .kind = kind, .is_any = true },
        { .job = bad, .kind = kind, .is_any = true } };
    struct sched_job_spec spec = scene_job(scene, 1, 60);
    spec.after = after;
    spec.n_after = 2;
    return scene_submit(scene, &spec);
}

static bool can_never_start(const struct scene *scene, uint64_t job)
{
    struct sched_job_status status;
    assert_true(sched_job_status(scene->sched, job, scene->now_ms, &status));
    return (status.blockers & BLOCK_NEVER) != 0;
}

CASE(one_of_several_suffices_and_none_is_never, scene)
{
    uint64_t first = scene_add(scene, 1, 60), second = scene_add(scene, 1, 60);
    uint64_t succeeds = submit_any(scene, first, second, AFTER_OK);
    uint64_t fails = submit_any(scene, first, second, AFTER_FAIL);
    uint64_t open = scene_add(scene, 1, 60);
    uint64_t mixed = submit_any(scene, open, second, AFTER_OK);
    scene_fail(scene, second);
    assert_false(scene_runs(scene, succeeds));
    assert_false(can_never_start(scene, succeeds));
    assert_true(scene_runs(scene, fails));
    scene_end(scene, first);
    assert_true(scene_runs(scene, succeeds));
    scene_fail(scene, open);
    assert_false(scene_runs(scene, mixed));
    assert_true(can_never_start(scene, mixed));
}

CASE(a_job_may_wait_for_the_start_of_another, scene)
{
    uint64_t first = scene_add(scene, 1, 60);
    uint64_t after_start = submit_after(scene, first, AFTER_START),
             after_end = submit_after(scene, first, AFTER_OK);
    assert_false(scene_runs(scene, after_start));
    sched_started(scene->sched, scene->now_ms, first);
    scene_wait(scene, 1);
    assert_true(scene_runs(scene, after_start));
    assert_false(scene_runs(scene, after_end));
    scene_end(scene, first);
    assert_true(scene_runs(scene, after_end));
}

CASE(a_delay_counts_from_the_start_even_if_the_job_has_ended, scene)
{
    uint64_t first = scene_add(scene, 1, 60), other = scene_add(scene, 1, 600);
    struct ask_after both[] = { { .job = first, .kind = AFTER_START, .delay_ms = 30000 },
        { .job = other, .kind = AFTER_START, .delay_ms = 90000 } };
    struct sched_job_spec spec = scene_job(scene, 1, 60);
    spec.after = both;
    spec.n_after = 2;
    uint64_t all = scene_submit(scene, &spec);
    both[0].is_any = both[1].is_any = true;
    spec = scene_job(scene, 1, 60);
    spec.after = both;
    spec.n_after = 2;
    uint64_t one = scene_submit(scene, &spec);
    scene_wait(scene, 100);
    assert_false(scene_runs(scene, one));
    sched_started(scene->sched, scene->now_ms, first);
    sched_started(scene->sched, scene->now_ms, other);
    scene_wait(scene, 10);
    scene_end(scene, first);
    assert_int_equal(sched_wait_of(scene->sched, one, first), SCHED_WAIT_OPEN);
    scene_wait(scene, 19);
    assert_false(scene_runs(scene, one));
    scene_wait(scene, 1);
    assert_true(scene_runs(scene, one));
    assert_false(scene_runs(scene, all));
    scene_wait(scene, 60);
    assert_true(scene_runs(scene, all));
}

CASE(circles_and_unknown_jobs_are_refused, scene)
{
    struct error err = { 0 };
    uint64_t first = scene_add(scene, 4, 60);
    uint64_t second = submit_after(scene, first, AFTER_OK), third = submit_after(scene, second, AFTER_OK);
    struct ask_after after = { .job = third, .kind = AFTER_OK };
    struct sched_job_spec spec = scene_job(scene, 1, 60);
    spec.id = second;
    spec.after = &after;
    spec.n_after = 1;
    assert_int_equal(sched_check(scene->sched, &spec, &err), -ELOOP);
    after.job = 999;
    assert_int_equal(sched_check(scene->sched, &spec, &err), -ENOENT);
    assert_non_null(strstr(err.message, "999"));
}

CASE(an_array_starts_element_after_element_and_keeps_its_limit, scene)
{
    struct sched_job_spec spec = scene_job(scene, 1, 60);
    spec.is_array = true;
    spec.elements = 6;
    spec.element_limit = 2;
    uint64_t array = scene_submit(scene, &spec);
    assert_int_equal(scene_starts_from(scene, array), 2);
    scene_end(scene, scene->starts[0].job);
    assert_int_equal(scene_starts_from(scene, array), 3);
    for (size_t i = 1; i < 6; i++)
        scene_end(scene, scene->starts[i].job);
    struct sched_job_status status;
    assert_int_equal(scene_starts_from(scene, array), 6);
    assert_false(sched_job_status(scene->sched, array, scene->now_ms, &status));
}

/* As when it is held and released: it is a separate job, and its array counts it as open. */
static uint64_t take_out(struct scene *scene, struct sched_job_spec *array)
{
    struct sched_job_spec element = scene_job(scene, 1, 60);
    element.array = array->id;
    array->elements--;
    array->elements_open++;
    sched_edit(scene->sched, scene->now_ms, array);
    return scene_submit(scene, &element);
}

CASE(elements_that_were_taken_out_keep_the_limit_of_their_array, scene)
{
    struct why why;
    struct sched_job_spec spec = scene_job(scene, 1, 60);
    spec.is_array = true;
    spec.elements = 5;
    spec.element_limit = 2;
    (void)scene_submit(scene, &spec);
    spec.elements = 3;
    spec.elements_open = 2;
    uint64_t first = take_out(scene, &spec), second = take_out(scene, &spec);
    assert_false(scene_runs(scene, first) || scene_runs(scene, second));
    why_explain(scene->sched, scene->now_ms, first, NULL, &why);
    assert_int_equal(why.reasons[0].code, WHY_USER_LIMIT);
    assert_string_equal(why.reasons[0].text, "2 elements of this array run (its limit)");
    scene_end(scene, scene->starts[0].job);
    assert_true(scene_runs(scene, first) && !scene_runs(scene, second));
    sched_stopped(scene->sched, scene->now_ms, scene->starts[1].job, 0); // both are in the queue
    sched_pass(scene->sched, scene->now_ms);
    assert_int_equal(scene->n_starts, 4);
    spec.elements_open = 3;
    spec.element_limit = 3;
    sched_edit(scene->sched, scene->now_ms, &spec);
    sched_pass(scene->sched, scene->now_ms);
    assert_int_equal(scene->n_starts, 5);
}

CASE(what_is_left_of_an_array_can_be_withdrawn, scene)
{
    struct sched_job_spec spec = scene_job(scene, 2, 60);
    spec.is_array = true;
    spec.elements = 9;
    uint64_t array = scene_submit(scene, &spec);
    assert_int_equal(scene_starts_from(scene, array), 2);
    sched_withdraw(scene->sched, scene->now_ms, array);
    scene_end(scene, scene->starts[0].job);
    assert_int_equal(scene_starts_from(scene, array), 2);
    scene_end(scene, scene->starts[1].job);
    assert_int_equal(sched_queue(scene->sched)->length, 0);
}

CASE(an_edited_job_is_looked_at_anew, scene)
{
    scene_add(scene, 3, 3600);
    uint64_t job = scene_add(scene, 2, 60);
    assert_false(scene_runs(scene, job));
    struct sched_job_spec spec = scene_job(scene, 1, 60);
    spec.id = job;
    sched_edit(scene->sched, scene->now_ms, &spec);
    scene_wait(scene, 0);
    assert_true(scene_runs(scene, job));
}

CASE(limits_of_a_user_hold_and_end_with_a_job, scene)
{
    fairshare_account(sched_fairshare(scene->sched), 1, ACCOUNT_USER)->limits.jobs = 2;
    uint64_t first = scene_add(scene, 1, 60);
    scene_add(scene, 1, 60);
    uint64_t third = scene_add(scene, 1, 60);
    assert_false(scene_runs(scene, third));
    struct sched_job_spec other = scene_job(scene, 1, 60);
    other.key.uid = 2;
    assert_true(scene_runs(scene, scene_submit(scene, &other)));
    scene_end(scene, first);
    assert_true(scene_runs(scene, third));
}

CASE(limits_of_a_group_count_gpus_of_all_its_users, scene)
{
    fairshare_account(sched_fairshare(scene->sched), 1, ACCOUNT_GROUP)->limits.gpu_milli = 3000;
    uint64_t first = scene_add(scene, 2, 60);
    struct sched_job_spec other = scene_job(scene, 2, 60);
    other.key.uid = 2;
    uint64_t second = scene_submit(scene, &other);
    assert_false(scene_runs(scene, second));
    assert_true(scene_runs(scene, scene_add(scene, 1, 60)));
    scene_end(scene, first);
    assert_true(scene_runs(scene, second));
}

CASE(a_used_up_quota_ends_by_decay, scene)
{
    fairshare_account(sched_fairshare(scene->sched), 1, ACCOUNT_USER)->limits.gpu_seconds = 3600;
    uint64_t first = scene_add(scene, 4, 3600);
    scene_wait(scene, 1800);               // 7200 GPU-seconds
    assert_true(scene_runs(scene, first)); // a quota keeps jobs from starting, and ends none
    assert_int_equal(scene->n_preempted, 0);
    scene_end(scene, first);
    uint64_t second = scene_add(scene, 1, 60);
    assert_false(scene_runs(scene, second));
    assert_true(sched_next_ms(scene->sched) < TIME_NEVER);
    scene_wait(scene, 8 * 24 * 3600); // a half-life is seven days
    assert_true(scene_runs(scene, second));
}

CASE(what_is_above_its_owners_limit_is_refused_by_name, scene)
{
    struct fairshare *fairshare = sched_fairshare(scene->sched);
    struct error err = { 0 };
    fairshare->user_limits.gpu_milli = 2000;
    struct sched_job_spec spec = scene_job(scene, 4, 60);
    assert_int_equal(sched_check(scene->sched, &spec, &err), -ERANGE);
    assert_string_equal(err.message, "requested 4 GPUs; the limit of its owner is 2 at a time");
    fairshare_account(fairshare, 1, ACCOUNT_USER)->limits.gpu_milli = 0;
    fairshare_account(fairshare, 1, ACCOUNT_GROUP)->limits.gpu_milli = 3500;
    assert_int_equal(sched_check(scene->sched, &spec, &err), -ERANGE);
    assert_string_equal(err.message, "requested 4 GPUs; the limit of its group is 3.5 at a time");
    spec.key.request.gpus = 3;
    assert_int_equal(sched_check(scene->sched, &spec, &err), 0);
    /* These leave room as others end and use decays, however long the job may run. */
    fairshare_account(fairshare, 1, ACCOUNT_GROUP)->limits =
        (struct account_limits){ .jobs = 1, .gpu_seconds = 60 };
    spec.key.limit_ms = 3600 * 1000;
    assert_int_equal(sched_check(scene->sched, &spec, &err), 0);
    assert_true(scene_runs(scene, scene_submit(scene, &spec)));
}

CASE(a_limit_that_is_lowered_is_why_a_job_waits, scene)
{
    struct why why;
    uint64_t first = scene_add(scene, 4, 60), second = scene_add(scene, 4, 60);
    struct account *account = fairshare_account(sched_fairshare(scene->sched), 1, ACCOUNT_USER);
    account->limits = (struct account_limits){ .jobs = 1, .gpu_milli = 2000, .gpu_seconds = 1 };
    account->usage = 2;
    for (int i = 0; i < 2; i++) {
        why_reasons(scene->sched, scene->now_ms, second, false, &why);
        assert_int_equal(why.reasons[0].code, WHY_USER_LIMIT);
        assert_int_equal(why.reasons[0].until_ms, TIME_NEVER);
        assert_string_equal(
            why.reasons[0].text, "limit of its owner: requested 4 GPUs; the limit is 2 at a time");
        if (i == 0)
            scene_end(scene, first);
    }
    assert_false(scene_runs(scene, second));
}

TEST_WITH(a_box_runs_only_so_many_jobs, open_scene, scene_close)
{
    struct scene *scene = *state;
    scene_free(scene);
    *state = scene = scene_new();
    scene->settings.node_jobs = 2;
    scene_open(scene, 1, 4);
    uint64_t first = scene_add(scene, 1, 60);
    scene_add(scene, 1, 60);
    uint64_t third = scene_add(scene, 1, 60);
    assert_false(scene_runs(scene, third));
    scene_end(scene, first);
    assert_true(scene_runs(scene, third));
}

CASE(a_cancelled_job_lets_its_class_go_on, scene)
{
    uint64_t first = scene_add(scene, 4, 60), second = scene_add(scene, 4, 60),
             third = scene_add(scene, 4, 60);
    sched_withdraw(scene->sched, scene->now_ms, second);
    scene_end(scene, first);
    assert_true(scene_runs(scene, third));
    assert_int_equal(sched_queue(scene->sched)->length, 0);
}
