/* SPDX-License-Identifier: MIT */
#include "bench.h"

#include <errno.h>

#include "base/memory.h"

#define CASE(name, b) TEST_ON(name, struct bench *b, bench_open, bench_close)

static int one, two, three, four, five, six; // requests are known by address

CASE(an_acknowledgement_waits_until_it_is_durable, b)
{
    bench_submit(b, 1000, 1, NULL, &one);
    bench_turn(b);
    assert_null(bench_answer(b, &one));
    bench_settle(b);
    assert_int_equal(bench_answer(b, &one)->job, 11);
}

CASE(a_reader_does_not_see_what_a_crash_could_take_back, b)
{
    core_barrier(b->core, &one);
    assert_non_null(bench_answer(b, &one));
    bench_submit(b, 1000, 1, NULL, &two);
    core_barrier(b->core, &three);
    bench_turn(b);
    assert_null(bench_answer(b, &three));
    bench_settle(b);
    assert_non_null(bench_answer(b, &three));
}

CASE(what_arrives_during_a_commit_is_the_next_batch, b)
{
    bench_submit(b, 1000, 1, NULL, &one);
    bench_turn(b);
    bench_submit(b, 1000, 1, NULL, &two);
    bench_submit(b, 1000, 1, NULL, &three);
    bench_turn(b);
    assert_null(bench_answer(b, &one));
    bench_settle(b);
    assert_int_equal(bench_answer(b, &three)->job, 13);
    assert_int_equal(core_last_event(b->core), 23);
}

CASE(a_repeated_key_gives_the_same_job, b)
{
    bench_submit(b, 1000, 1, "k", &one);
    bench_submit(b, 1000, 1, "k", &two);
    bench_submit(b, 1000, 2, "k", &three);
    bench_submit(b, 1001, 1, "k", &four);
    bench_settle(b);
    assert_int_equal(bench_answer(b, &two)->job, bench_answer(b, &one)->job);
    assert_true(bench_answer(b, &two)->is_repeated);
    assert_int_equal(bench_answer(b, &three)->code, -EEXIST);
    assert_int_not_equal(bench_answer(b, &four)->job, bench_answer(b, &one)->job);
}

CASE(jobs_that_ask_for_the_same_share_their_request_until_one_is_edited, b)
{
    bench_submit(b, 1000, 1, NULL, &one);
    bench_submit(b, 1000, 1, NULL, &two);
    bench_settle(b);
    const struct job *first = core_job(b->core, 11), *second = core_job(b->core, 12);
    assert_ptr_equal(first->ask, second->ask);
    const struct identity owner = { .is_known = true, .uid = 1000, .gid = 1000 };
    struct job_ask ask = *second->ask;
    ask.priority = -1;
    core_edit(b->core, b->now_ms, b->now_ms, &owner, 12, &ask, NULL, NULL, &three);
    bench_settle(b);
    assert_int_equal(bench_answer(b, &three)->code, 0);
    assert_int_equal(core_job(b->core, 12)->ask->priority, -1);
    assert_int_equal(core_job(b->core, 11)->ask->priority, 0);
}

CASE(a_full_queue_refuses_and_says_so, b)
{
    int *requests[] = { &one, &two, &three, &four, &five };
    for (size_t i = 0; i < 5; i++)
        bench_submit(b, 1000, 1, NULL, requests[i]);
    bench_settle(b);
    assert_int_equal(bench_answer(b, &four)->code, 0);
    assert_int_equal(bench_answer(b, &five)->code, -EDQUOT);
}

static void set_quotas(struct bench *b, size_t jobs, uint64_t bytes)
{
    struct core_options options = b->options;
    options.queue_max = 1000;
    options.user_queue_max = jobs;
    options.user_day_bytes = bytes;
    core_configure(b->core, b->now_ms, b->now_ms, &options);
}

static void assert_quota(struct bench *b, uint32_t uid, int *request, int code)
{
    b->now_ms++;
    bench_submit(b, uid, 1, NULL, request);
    bench_settle(b);
    assert_int_equal(bench_answer(b, request)->code, code);
}

CASE(one_user_may_not_fill_the_queue, b)
{
    set_quotas(b, 2, 0);
    assert_quota(b, 1000, &one, 0);
    assert_quota(b, 1000, &two, 0);
    assert_quota(b, 1000, &three, -EDQUOT);
    assert_string_equal(bench_answer(b, &three)->err.message,
        "you have reached the limit of 2 waiting and running jobs per user");
    assert_quota(b, 1001, &four, 0);
    const struct identity owner = { .is_known = true, .uid = 1000, .gid = 1000 };
    core_cancel(b->core, b->now_ms, b->now_ms, &owner, 11, -1, &five);
    bench_settle(b);
    assert_quota(b, 1000, &six, 0);
}

CASE(the_last_place_of_a_full_queue_is_an_administrators, b)
{
    struct core_options options = b->options;
    const struct identity admin = { .is_known = true, .role = ROLE_ADMIN };
    struct job_spec *spec = xcalloc(1, sizeof(*spec));
    options.queue_max = 100;
    core_configure(b->core, b->now_ms, b->now_ms, &options);
    for (uint32_t i = 0; i < 99; i++) {
        assert_quota(b, 1000 + i, &one, 0);
        b->n_answers = 0;
    }
    assert_quota(b, 1000, &two, -EDQUOT);
    job_spec_init(spec);
    strings_add(&spec->command, "true");
    spec->cwd = xstrdup("/");
    bench_submit_spec(b, &admin, spec, &three);
    assert_int_equal(bench_answer(b, &three)->code, 0);
}

CASE(one_user_may_not_fill_the_store_within_a_day, b)
{
    set_quotas(b, 0, 1);
    assert_quota(b, 1000, &one, -EDQUOT);
    set_quotas(b, 0, 500);
    int many[20], count = 0;
    do {
        b->now_ms++;
        bench_submit(b, 1000, 1, NULL, &many[count]);
        bench_settle(b);
    } while (bench_answer(b, &many[count])->code == 0 && ++count < 20);
    assert_in_range(count, 2, 19);
    assert_int_equal(bench_answer(b, &many[count])->code, -EDQUOT);
    assert_quota(b, 1001, &three, 0);
    b->now_ms += 24 * 3600 * 1000; // the bucket has emptied
    assert_quota(b, 1000, &four, 0);
}

/* Edits job 11, whose request is some 4000 bytes, as often as that is possible, but at most 400 times; how
 * often. */
static size_t edit_often(struct bench *b, const struct identity *who)
{
    _cleanup_(job_ask_clear) struct job_ask ask;
    size_t count = 0;
    int code = 0;
    job_ask_copy(&ask, core_job(b->core, 11)->ask);
    while (code == 0 && count < 400) {
        int request;
        _cleanup_free_ char *note = xasprintf("comment=%04000zu", count);
        b->n_answers = b->n_published = 0;
        b->now_ms++;
        strings_clear(&ask.slurm);
        strings_add(&ask.slurm, note);
        core_edit(b->core, b->now_ms, b->now_ms, who, 11, &ask, NULL, NULL, &request);
        bench_settle(b);
        code = bench_answer(b, &request)->code;
        count += code == 0;
    }
    return count;
}

CASE(what_is_stored_of_changes_counts_as_well_but_has_some_room_above_the_limit, b)
{
    const struct identity owner = { .is_known = true, .uid = 1000, .gid = 1000 };
    const struct identity admin = { .is_known = true, .uid = 77, .role = ROLE_ADMIN };
    set_quotas(b, 0, 4000);
    assert_quota(b, 1000, &one, 0);
    core_hold(b->core, b->now_ms, b->now_ms, &owner, 11, false, &two);
    bench_settle(b);
    assert_int_equal(bench_answer(b, &two)->code, 0);
    assert_in_range(edit_often(b, &owner), 200, 300); // 1 MiB
    assert_quota(b, 1000, &three, -EDQUOT);
    core_hold(b->core, b->now_ms, b->now_ms, &owner, 11, true, &four);
    bench_settle(b);
    assert_int_equal(bench_answer(b, &four)->code, -EDQUOT);
    assert_string_equal(bench_answer(b, &four)->err.message,
        "your jobs have stored 3.9 KiB within a day, the limit per user");
    assert_int_equal(edit_often(b, &admin), 400);
    core_cancel(b->core, b->now_ms, b->now_ms, &owner, 11, -1, &five);
    bench_settle(b);
    assert_int_equal(bench_answer(b, &five)->code, 0);
    assert_quota(b, 1001, &six, 0);
}

CASE(a_job_can_be_changed_when_its_owner_can_submit_no_more, b)
{
    const struct identity owner = { .is_known = true, .uid = 1000, .gid = 1000 };
    set_quotas(b, 0, 4000);
    assert_quota(b, 1000, &one, 0);
    set_quotas(b, 0, 1);
    assert_quota(b, 1000, &two, -EDQUOT);
    core_hold(b->core, b->now_ms, b->now_ms, &owner, 11, false, &three);
    bench_settle(b);
    assert_int_equal(bench_answer(b, &three)->code, 0);
}

CASE(an_impossible_request_is_refused_at_once, b)
{
    assert_int_equal(bench_hello(b, 1, "boot", 2, NULL, 0), 0);
    bench_submit(b, 1000, 3, NULL, &one);
    bench_settle(b);
    assert_int_equal(bench_answer(b, &one)->code, -EBADSLT);
}

CASE(only_the_owner_and_administrators_cancel, b)
{
    struct identity other = { .is_known = true, .uid = 1001 },
                    admin = { .is_known = true, .uid = 77, .role = ROLE_ADMIN };
    bench_submit(b, 1000, 1, NULL, &one);
    core_cancel(b->core, 1, 1, &other, 11, -1, &two);
    core_cancel(b->core, 1, 1, &admin, 12, -1, &three);
    core_cancel(b->core, 1, 1, &admin, 11, -1, &four);
    core_cancel(b->core, 1, 1, &admin, 11, -1, &five);
    bench_settle(b);
    assert_int_equal(bench_answer(b, &two)->code, -EPERM);
    assert_int_equal(bench_answer(b, &three)->code, -ENOENT);
    assert_int_equal(bench_answer(b, &four)->code, 0);
    assert_int_equal(bench_answer(b, &five)->code, -EALREADY);
    assert_int_equal(core_job(b->core, 11)->end, END_CANCELLED);
}

CASE(a_waiter_is_answered_when_the_state_is_durable, b)
{
    struct identity owner = { .is_known = true, .uid = 1000 };
    bench_submit(b, 1000, 1, NULL, &one);
    bench_settle(b);
    core_wait(b->core, 11, 1U << JOB_DONE, &two);
    core_wait(b->core, 11, 1U << JOB_DONE, &three);
    core_forget(b->core, &three);
    core_cancel(b->core, 1, 1, &owner, 11, -1, &four);
    bench_turn(b);
    assert_null(bench_answer(b, &two));
    bench_settle(b);
    assert_non_null(bench_answer(b, &two));
    assert_null(bench_answer(b, &three));
}

CASE(a_forgotten_request_is_not_answered, b)
{
    bench_submit(b, 1000, 1, NULL, &one);
    core_forget(b->core, &one);
    bench_settle(b);
    assert_null(bench_answer(b, &one));
    assert_non_null(core_job(b->core, 11));
}

CASE(ended_jobs_leave_memory_oldest_first, b)
{
    struct identity owner = { .is_known = true, .uid = 1000 };
    for (uint64_t job = 11; job <= 13; job++) {
        bench_submit(b, 1000, 1, NULL, &one);
        core_cancel(b->core, 1, 1, &owner, job, -1, &two);
        bench_settle(b);
        b->n_answers = 0;
    }
    assert_null(core_job(b->core, 11));
    assert_non_null(core_job(b->core, 12));
    assert_non_null(core_job(b->core, 13));
}

CASE(the_highest_id_is_known_although_its_job_has_left_memory, b)
{
    struct identity owner = { .is_known = true, .uid = 1000 };
    int *requests[] = { &one, &two, &three };
    for (size_t i = 0; i < 3; i++)
        bench_submit(b, 1000, 1, NULL, requests[i]);
    bench_settle(b);
    b->n_answers = 0;
    for (uint64_t job = 13; job >= 11; job--) {
        core_cancel(b->core, 1, 1, &owner, job, -1, &four);
        bench_settle(b);
        b->n_answers = 0;
    }
    assert_null(core_job(b->core, 13));
    assert_int_equal(core_last_job(b->core), 13);
}
