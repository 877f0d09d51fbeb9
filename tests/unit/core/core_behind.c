/* SPDX-License-Identifier: MIT */
/* Elements of an array that are committed behind others. Node "box" has one GPU or two; the array is job 11.
 */
#include "bench.h"

#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "controller/core/change.h"
#include "controller/core/concern.h"
#include "controller/core/counts.h"
#include "controller/core/entry.h"
#include "controller/core/state.h"
#include "controller/core/tables.h"
#include "job/behind.h"
#include "memory_store.h"

#define ARRAY    11U
#define FIRST    12U
#define LEADER   15U // the fourth element: by then the array has a pace
#define FOLLOWER 16U
#define LAST     21U
#define ELEMENTS "0-9"
#define TOOK_MS  100 // an element
#define AHEAD_MS 1000
#define SLOW_MS  10000
#define BRIEF_MS 50 // ahead: less than an element takes

static int asked, cancelled, waiting, held[3], asked_back[2];
static const struct identity owner = { .is_known = true, .uid = 1000, .gid = 1000 };

static void settle(struct bench *b)
{
    bench_settle(b);
    for (int i = 0; i < 3; i++) { // what is due since that is durable, and what follows from it
        core_timer(b->core, b->now_ms, b->now_ms);
        core_barrier(b->core, NULL); // a commit that waits for others
        bench_settle(b);
    }
}

static void pass(struct bench *b, int64_t ms)
{
    b->now_ms += ms;
    core_timer(b->core, b->now_ms, b->now_ms);
    settle(b);
}

static void hello(struct bench *b, uint32_t link, size_t n_gpus)
{
    struct message_hello hello = { .protocol = LINK_PROTOCOL,
        .node = xstrdup("box"),
        .boot_id = xstrdup("boot"),
        .cpus = 2,
        .takes_back = 1 };
    struct gpu_state *gpus = xcalloc(n_gpus, sizeof(*gpus));
    for (size_t i = 0; i < n_gpus; i++)
        gpus[i] = (struct gpu_state){
            .index = (uint32_t)i, .uuid = xasprintf("GPU-%zu", i), .memory_bytes = 24ULL << 30, .numa = -1
        };
    hello.gpus = (struct record_list){ gpus, n_gpus };
    struct error err;
    assert_int_equal(core_link_up(b->core, b->now_ms, b->now_ms, link, &hello, &err), 0);
    record_clear(&message_hello_record, &hello);
    settle(b);
}

static const struct job *job(const struct bench *b, uint64_t id)
{
    return core_job(b->core, id);
}

static struct sent launch_of(const struct bench *b, uint64_t id)
{
    const struct sent *launch = bench_sent(b, MESSAGE_LAUNCH, id);
    assert_non_null(launch);
    return *launch;
}

static void start(struct bench *b, uint64_t id)
{
    const struct sent launch = launch_of(b, id);
    assert_int_equal(bench_started(b, launch.link, &launch), 0);
    settle(b);
}

static void end(struct bench *b, uint64_t id)
{
    const struct sent launch = launch_of(b, id);
    assert_int_equal(bench_exited(b, launch.link, &launch, END_EXIT, 0), 0);
    settle(b);
}

/* It ends as soon as is usual; true if its end is committed in the turn of the report. */
static bool is_committed_at_once(struct bench *b, uint64_t id)
{
    b->now_ms += TOOK_MS;
    const struct sent launch = launch_of(b, id);
    assert_null(b->flying);
    assert_int_equal(bench_exited(b, launch.link, &launch, END_EXIT, 0), 0);
    bench_turn(b);
    return b->flying != NULL;
}

static void submit(struct bench *b, uint32_t gpus, int32_t priority, const char *elements, int *request)
{
    struct job_spec *spec = bench_spec("true");
    spec->ask.gpus = gpus;
    spec->ask.priority = priority;
    spec->ask.array = elements != NULL ? xstrdup(elements) : NULL;
    core_submit(b->core, b->now_ms, b->now_ms, &owner, spec, NULL, request);
    settle(b);
}

/* `user_gpus`: which each user may have; 0: any number. */
static struct bench *open_node(void **state, int64_t ahead_ms, size_t n_gpus, uint32_t user_gpus)
{
    (void)bench_open(state);
    struct bench *b = *state;
    b->options.early.elements_ms = ahead_ms;
    b->options.sched.user_limits.gpu_milli = user_gpus * 1000;
    bench_configure(b);
    hello(b, 1, n_gpus);
    return b;
}

static struct bench *open_array(void **state, int64_t ahead_ms, size_t n_gpus, const char *elements)
{
    struct bench *b = open_node(state, ahead_ms, n_gpus, 0);
    submit(b, 1, 0, elements, &asked);
    return b;
}

static void run_next(struct bench *b, uint64_t id)
{
    start(b, id);
    pass(b, TOOK_MS);
    end(b, id);
}

static int open_with(void **state, int64_t ahead_ms, const char *elements)
{
    struct bench *b = open_array(state, ahead_ms, 1, elements);
    for (uint64_t id = FIRST; id < LEADER; id++)
        run_next(b, id);
    start(b, LEADER);
    return 0;
}

/* On a node with two GPUs, one element at a time, because of the array's limit, its owner's, or both. */
static int open_limited(void **state)
{
    (void)open_array(state, AHEAD_MS, 2, "0-9%1");
    return 0;
}

static int open_user_limited(void **state)
{
    submit(open_node(state, AHEAD_MS, 2, 1), 1, 0, "0-9", &asked);
    return 0;
}

static int open_both_limited(void **state)
{
    submit(open_node(state, AHEAD_MS, 2, 1), 1, 0, "0-9%1", &asked);
    return 0;
}

static int open_on(void **state)
{
    return open_with(state, AHEAD_MS, ELEMENTS);
}

static int open_off(void **state)
{
    return open_with(state, 0, ELEMENTS);
}

static int open_briefly(void **state)
{
    return open_with(state, BRIEF_MS, ELEMENTS);
}

/* Nothing of the array is left beside the two. */
static int open_last(void **state)
{
    return open_with(state, AHEAD_MS, "0-4");
}

static int open_two(void **state)
{
    (void)open_array(state, BRIEF_MS, 2, "0-59");
    return 0;
}

static int close_checked(void **state)
{
    struct bench *b = *state;
    struct error err = { 0 };
    assert_int_equal(sched_invariant(b->core->sched, &err), 0);
    for (uint64_t id = ARRAY; job(b, id) != NULL; id++)
        assert_int_equal(job_invariant(job(b, id), &err), 0);
    return bench_close(state);
}

#define CASE(name, b) TEST_ON(name, struct bench *b, open_on, close_checked)

static void expect_behind(const struct bench *b, uint64_t id)
{
    assert_non_null(job(b, id));
    assert_true(job_is_behind(job(b, id)));
    assert_false(job_holds_gpus(job(b, id)));
    assert_int_equal(job(b, id)->grants.count, 1);
}

static void expect_holder(const struct bench *b, uint64_t id)
{
    assert_non_null(job(b, id));
    assert_false(job_is_behind(job(b, id)));
    assert_true(job_holds_gpus(job(b, id)));
    struct sched_job_status status;
    assert_true(sched_job_status(b->core->sched, id, b->now_ms, &status));
    assert_true(status.is_running);
}

CASE(the_next_element_is_launched_before_the_one_before_it_ends, b)
{
    expect_behind(b, FOLLOWER);
    expect_holder(b, LEADER);
    assert_int_equal(job(b, FOLLOWER)->state, JOB_STARTING);
    assert_int_equal(launch_of(b, FOLLOWER).n_gpus, 1);
    assert_non_null(bench_sent(b, MESSAGE_PREPARE, FOLLOWER));
    assert_null(job(b, FOLLOWER + 1)); // one behind each
}

CASE(it_counts_as_a_job_that_waits, b)
{
    const uint64_t *counts = core_counts(b->core)->jobs;
    assert_int_equal(counts[JOB_STARTING], 0);
    assert_int_equal(counts[JOB_RUNNING], 1);
    assert_int_equal(counts[JOB_QUEUED], 10 - 4); // three have ended, and one runs
    end(b, LEADER);
    assert_int_equal(counts[JOB_STARTING], 1);
    assert_int_equal(counts[JOB_RUNNING], 0);
    assert_int_equal(counts[JOB_QUEUED], 10 - 5);
    start(b, FOLLOWER);
    end(b, FOLLOWER);
    end(b, FOLLOWER + 1); // started and ended in one report
    assert_int_equal(counts[JOB_STARTING] + counts[JOB_RUNNING], 1);
    assert_int_equal(counts[JOB_QUEUED], 10 - 7);
}

CASE(it_has_the_gpus_in_the_turn_in_which_that_one_ends, b)
{
    b->n_published = 0;
    end(b, LEADER);
    expect_holder(b, FOLLOWER);
    expect_behind(b, FOLLOWER + 1);
    assert_int_equal(b->published[0], EVENT_ENDED);
    assert_int_equal(b->published[1], EVENT_MEMBER);
    assert_int_equal(b->published[2], EVENT_INHERITS);
    start(b, FOLLOWER);
    end(b, FOLLOWER);
    expect_holder(b, FOLLOWER + 1);
}

TEST_ON(one_of_an_array_at_a_limit_is_behind_another_if_nobody_else_waits, struct bench *b, open_limited,
    close_checked)
{
    for (uint64_t id = FIRST; id < LEADER; id++)
        run_next(b, id);
    start(b, LEADER);
    expect_behind(b, FOLLOWER);
    end(b, LEADER);
    expect_holder(b, FOLLOWER);
    expect_behind(b, FOLLOWER + 1);
    assert_null(job(b, FOLLOWER + 2)); // the other GPU is free
}

TEST_AS(one_of_an_array_at_a_limit_is_behind_another_if_nobody_else_waits_user_limited,
    run_one_of_an_array_at_a_limit_is_behind_another_if_nobody_else_waits, open_user_limited, close_checked)
TEST_AS(one_of_an_array_at_a_limit_is_behind_another_if_nobody_else_waits_both_limited,
    run_one_of_an_array_at_a_limit_is_behind_another_if_nobody_else_waits, open_both_limited, close_checked)

/* The job after the first element waits, and no element is behind another. It is not before the array. */
static void expect_none_behind(struct bench *b)
{
    const uint64_t other = FIRST + 1;
    run_next(b, FIRST);
    for (uint64_t id = other + 1; id < LEADER + 3; id++) {
        expect_holder(b, id);
        start(b, id);
        pass(b, TOOK_MS);
        assert_null(job(b, id + 1));
        end(b, id);
    }
    assert_int_equal(job(b, other)->state, JOB_QUEUED);
}

TEST_WITH(one_of_an_array_at_its_limit_is_not_put_behind_while_others_wait, open_limited, close_checked)
{
    static int asked_wide;
    struct bench *b = *state;
    submit(b, 2, 0, NULL, &asked_wide);
    expect_none_behind(b);
}

TEST_ON(one_of_an_array_is_not_put_behind_while_another_job_waits_for_the_same_limit, struct bench *b,
    open_user_limited, close_checked)
{
    static int asked_other;
    submit(b, 1, -1, NULL, &asked_other);
    expect_none_behind(b);
}

TEST_AS(one_of_an_array_is_not_put_behind_while_another_job_waits_for_the_same_limit_both_limited,
    run_one_of_an_array_is_not_put_behind_while_another_job_waits_for_the_same_limit, open_both_limited,
    close_checked)

TEST_ON(without_the_setting_the_next_one_waits, struct bench *b, open_off, close_checked)
{
    pass(b, TOOK_MS * 3 / 2); // with it, one would be there by now, and not be late
    assert_null(job(b, FOLLOWER));
    end(b, LEADER);
    expect_holder(b, FOLLOWER);
    assert_null(bench_sent(b, MESSAGE_PREPARE, FOLLOWER));
}

CASE(it_is_taken_back_when_that_one_takes_long, b)
{
    assert_null(bench_sent(b, MESSAGE_STOP, FOLLOWER));
    pass(b, 10 * AHEAD_MS);
    const struct sent *recall = bench_sent(b, MESSAGE_STOP, FOLLOWER);
    assert_non_null(recall);
    assert_int_equal(recall->signal, STOP_UNSTARTED);
    expect_behind(b, FOLLOWER); // no event yet
    size_t n_sent = b->n_sent;
    pass(b, 1000);
    assert_int_equal(b->n_sent, n_sent);
    pass(b, 5000);
    assert_int_equal(b->n_sent, n_sent + 1); // its node may have had reasons to ignore it
    const struct sent launch = launch_of(b, FOLLOWER);
    assert_int_equal(bench_returned(b, 1, &launch), 0);
    settle(b);
    assert_int_equal(job(b, FOLLOWER)->state, JOB_QUEUED);
    assert_int_equal(core_extra(core_find(b->core, FOLLOWER))->returns, 0); // no start has failed
    assert_null(job(b, FOLLOWER + 1)); // nor is another one put behind it
    end(b, LEADER);
    expect_holder(b, FOLLOWER + 1); // the array itself comes first
}

CASE(one_that_is_taken_back_from_a_held_array_waits_until_that_is_released, b)
{
    core_hold(b->core, b->now_ms, b->now_ms, &owner, ARRAY, false, &held[0]);
    settle(b);
    pass(b, 1);
    assert_non_null(bench_sent(b, MESSAGE_STOP, FOLLOWER));
    const struct sent launch = launch_of(b, FOLLOWER);
    assert_int_equal(bench_returned(b, 1, &launch), 0);
    settle(b);
    assert_int_equal(job(b, FOLLOWER)->hold, HOLD_USER);
    end(b, LEADER);
    pass(b, 60000);
    assert_int_equal(job(b, FOLLOWER)->state, JOB_QUEUED);
    assert_null(job(b, FOLLOWER + 1));
    core_hold(b->core, b->now_ms, b->now_ms, &owner, ARRAY, true, &held[1]);
    settle(b);
    assert_int_equal(job(b, FOLLOWER)->hold, 0);
    expect_holder(b, FOLLOWER + 1); // the array itself comes first
    core_hold(b->core, b->now_ms, b->now_ms, &owner, ARRAY, false, &held[2]);
    settle(b);
    assert_int_equal(job(b, FOLLOWER)->hold, HOLD_USER);
}

static bool take_back(struct bench *b, const struct identity *who, void *request)
{
    bool is_asked = core_take_back(b->core, b->now_ms, b->now_ms, who, FOLLOWER);
    if (is_asked)
        core_wait_outcome(b->core, FOLLOWER, request);
    settle(b);
    return is_asked;
}

TEST_WITH(one_that_a_user_wants_to_change_is_taken_back_and_leaves_time_for_it, open_last, close_checked)
{
    struct bench *b = *state;
    assert_true(take_back(b, &owner, &asked_back[0]));
    assert_int_equal(bench_sent(b, MESSAGE_STOP, FOLLOWER)->signal, STOP_UNSTARTED);
    assert_null(bench_answer(b, &asked_back[0]));
    const struct sent launch = launch_of(b, FOLLOWER);
    assert_int_equal(bench_returned(b, 1, &launch), 0);
    settle(b);
    assert_int_equal(bench_answer(b, &asked_back[0])->code, 0);
    assert_int_equal(job(b, FOLLOWER)->state, JOB_QUEUED);
    assert_int_equal(job(b, FOLLOWER)->hold, 0);
    end(b, LEADER);
    pass(b, 500); // its GPU is free
    assert_int_equal(job(b, FOLLOWER)->state, JOB_QUEUED);
    core_hold(b->core, b->now_ms, b->now_ms, &owner, FOLLOWER, false, &held[0]);
    settle(b);
    assert_int_equal(bench_answer(b, &held[0])->code, 0);
    assert_int_equal(job(b, FOLLOWER)->hold, HOLD_USER);
    pass(b, 60000);
    assert_int_equal(job(b, FOLLOWER)->state, JOB_QUEUED);
}

CASE(one_that_is_not_changed_then_starts_again, b)
{
    assert_true(take_back(b, &owner, &asked_back[0]));
    const struct sent launch = launch_of(b, FOLLOWER);
    assert_int_equal(bench_returned(b, 1, &launch), 0);
    settle(b);
    for (uint64_t id = LEADER; id <= LAST; id++) {
        if (id == FOLLOWER)
            continue;
        if (job(b, id)->started_ms == 0)
            start(b, id);
        pass(b, 2000);
        end(b, id);
    }
    expect_holder(b, FOLLOWER);
}

CASE(a_client_that_waits_for_one_that_begins_instead_is_answered, b)
{
    assert_true(take_back(b, &owner, &asked_back[0]));
    end(b, LEADER);
    assert_null(bench_answer(b, &asked_back[0]));
    start(b, FOLLOWER);
    assert_int_equal(bench_answer(b, &asked_back[0])->code, 0);
    core_hold(b->core, b->now_ms, b->now_ms, &owner, FOLLOWER, false, &held[0]);
    settle(b);
    assert_int_equal(bench_answer(b, &held[0])->code, -EALREADY);
}

CASE(a_client_that_waits_for_one_on_a_disconnected_node_is_answered, b)
{
    assert_true(take_back(b, &owner, &asked_back[0]));
    core_link_down(b->core, b->now_ms, b->now_ms, 1);
    settle(b);
    assert_int_equal(bench_answer(b, &asked_back[0])->code, 0);
    assert_false(take_back(b, &owner, &asked_back[1]));
    core_hold(b->core, b->now_ms, b->now_ms, &owner, FOLLOWER, false, &held[0]);
    settle(b);
    assert_non_null(strstr(bench_answer(b, &held[0])->err.message, "is about to start on node box"));
}

CASE(another_user_cannot_have_it_taken_back, b)
{
    const struct identity other = { .is_known = true, .uid = 1001, .gid = 1001 };
    assert_false(take_back(b, &other, &asked_back[0]));
    assert_false(core_take_back(b->core, b->now_ms, b->now_ms, &owner, LEADER));
    assert_false(core_take_back(b->core, b->now_ms, b->now_ms, &owner, ARRAY));
    assert_false(core_take_back(b->core, b->now_ms, b->now_ms, &owner, LAST + 100));
    settle(b);
    assert_null(bench_sent(b, MESSAGE_STOP, FOLLOWER));
}

CASE(to_release_it_is_needless_and_takes_nothing_back, b)
{
    core_hold(b->core, b->now_ms, b->now_ms, &owner, FOLLOWER, true, &held[0]);
    settle(b);
    assert_int_equal(bench_answer(b, &held[0])->code, 0);
    expect_behind(b, FOLLOWER);
    assert_null(bench_sent(b, MESSAGE_STOP, FOLLOWER));
}

CASE(errors_about_it_call_it_queued_as_all_lists_do, b)
{
    core_suspend(b->core, b->now_ms, b->now_ms, &owner, FOLLOWER, false, &held[0]);
    settle(b);
    assert_non_null(
        strstr(bench_answer(b, &held[0])->err.message, "is queued: only a running job can be suspended"));
}

TEST_ON(it_is_put_behind_when_the_end_is_near_and_not_before, struct bench *b, open_briefly, close_checked)
{
    assert_null(job(b, FOLLOWER));
    pass(b, TOOK_MS - BRIEF_MS);
    assert_null(job(b, FOLLOWER));
    int64_t due_ms = core_next_due(b->core);
    assert_in_range(due_ms, b->now_ms + 1, b->now_ms + BRIEF_MS); // nothing else is due so soon
    pass(b, due_ms - b->now_ms);
    expect_behind(b, FOLLOWER);
}

/* One on each GPU; then those on the second become short, and so the first is near its end, too. */
TEST_ON(how_long_the_others_take_is_noticed_while_it_runs, struct bench *b, open_two, close_checked)
{
    for (uint64_t id = FIRST; id < FIRST + 4; id += 2) {
        start(b, id);
        start(b, id + 1);
        pass(b, SLOW_MS);
        end(b, id);
        end(b, id + 1);
    }
    const uint64_t slow = FIRST + 4;
    start(b, slow);
    int64_t since_ms = b->now_ms;
    for (uint64_t id = slow + 1; core_extra(core_find(b->core, slow))->follower == NULL; id++) {
        assert_true(b->now_ms - since_ms < SLOW_MS / 2);
        start(b, id);
        pass(b, TOOK_MS);
        if (core_extra(core_find(b->core, slow))->follower == NULL)
            end(b, id);
    }
    expect_holder(b, slow);
}

CASE(one_that_is_asked_back_and_has_begun_goes_on, b)
{
    pass(b, 10 * AHEAD_MS);
    assert_non_null(bench_sent(b, MESSAGE_STOP, FOLLOWER));
    end(b, LEADER);
    start(b, FOLLOWER);
    expect_holder(b, FOLLOWER);
    end(b, FOLLOWER);
    assert_int_equal(job(b, FOLLOWER)->end, END_EXIT);
}

/* After a new connection, either may be told first. */
CASE(its_reports_may_come_first, b)
{
    start(b, FOLLOWER);
    assert_int_equal(job(b, FOLLOWER)->state, JOB_RUNNING);
    expect_behind(b, FOLLOWER);
    end(b, LEADER);
    expect_holder(b, FOLLOWER);
    end(b, FOLLOWER + 1);
    assert_int_equal(job(b, FOLLOWER + 1)->state, JOB_DONE);
    expect_holder(b, FOLLOWER);
}

CASE(it_can_be_cancelled, b)
{
    core_cancel(b->core, b->now_ms, b->now_ms, &owner, FOLLOWER, -1, &cancelled);
    settle(b);
    assert_int_equal(job(b, FOLLOWER)->state, JOB_STOPPING);
    const struct sent launch = launch_of(b, FOLLOWER);
    assert_int_equal(bench_returned(b, 1, &launch), 0);
    settle(b);
    assert_int_equal(job(b, FOLLOWER)->end, END_CANCELLED);
    expect_holder(b, LEADER);
    struct sched_job_status status;
    assert_false(sched_job_status(b->core->sched, FOLLOWER, b->now_ms, &status));
}

CASE(the_end_of_one_with_another_behind_it_waits_for_others, b)
{
    b->n_published = 0;
    assert_false(is_committed_at_once(b, LEADER));
    int64_t began_ms = b->now_ms;
    assert_int_equal(b->n_published, 0);
    assert_null(bench_sent(b, MESSAGE_RELEASE_ATTEMPT, LEADER)); // the node keeps its report
    while (b->flying == NULL) {
        assert_true(b->armed_ms > b->now_ms && b->armed_ms <= began_ms + ELEMENT_PATIENCE_MS);
        b->now_ms = b->armed_ms;
        core_timer(b->core, b->now_ms, b->now_ms);
        core_turn(b->core, b->now_ms, b->now_ms);
    }
    assert_int_equal(b->flying->changes[0].event.type, EVENT_ENDED);
    settle(b);
    assert_non_null(bench_sent(b, MESSAGE_RELEASE_ATTEMPT, LEADER));
    expect_behind(b, FOLLOWER + 1);
}

CASE(it_does_not_wait_if_a_client_does, b)
{
    core_wait(b->core, LEADER, 1U << JOB_DONE, &waiting);
    assert_true(is_committed_at_once(b, LEADER));
}

CASE(it_waits_no_longer_when_a_client_asks, b)
{
    assert_false(is_committed_at_once(b, LEADER));
    core_barrier(b->core, &waiting);
    bench_turn(b);
    assert_non_null(b->flying);
    assert_null(bench_answer(b, &waiting)); // it is not durable yet
}

static int64_t patience_at_its_end(const struct bench *b, uint64_t id)
{
    const struct job_event end = { .type = EVENT_ENDED };
    return core_patience_ms(b->core, core_find(b->core, id), &end);
}

CASE(it_does_not_wait_if_the_next_one_is_not_committed_yet, b)
{
    assert_false(is_committed_at_once(b, LEADER));
    expect_behind(b, FOLLOWER + 1);
    assert_int_equal(patience_at_its_end(b, FOLLOWER), 0);
    settle(b);
    assert_int_not_equal(patience_at_its_end(b, FOLLOWER), 0);
}

CASE(it_does_not_wait_if_the_one_behind_it_was_asked_back, b)
{
    assert_int_not_equal(patience_at_its_end(b, LEADER), 0);
    pass(b, 10 * AHEAD_MS);
    assert_int_equal(patience_at_its_end(b, LEADER), 0);
    const struct sent launch = launch_of(b, FOLLOWER);
    assert_int_equal(bench_returned(b, 1, &launch), 0);
    settle(b);
    assert_int_equal(patience_at_its_end(b, LEADER), 0); // now none is behind it
}

TEST_ON(the_end_of_one_with_none_behind_it_does_not_wait, struct bench *b, open_off, close_checked)
{
    assert_true(is_committed_at_once(b, LEADER));
}

TEST_ON(the_start_of_an_element_waits_for_others, struct bench *b, open_off, close_checked)
{
    end(b, LEADER);
    const struct sent launch = launch_of(b, FOLLOWER);
    assert_int_equal(bench_started(b, launch.link, &launch), 0);
    int64_t began_ms = b->now_ms;
    bench_turn(b);
    b->now_ms = began_ms + START_PATIENCE_MS - 1;
    core_turn(b->core, b->now_ms, b->now_ms);
    assert_null(b->flying);
    assert_int_equal(b->armed_ms, began_ms + START_PATIENCE_MS);
    bench_turn(b);
    assert_non_null(b->flying);
}

CASE(the_last_end_of_an_array_does_not_wait, b)
{
    for (uint64_t id = LEADER; id < LAST; id++) {
        if (job(b, id)->state == JOB_STARTING)
            start(b, id);
        pass(b, TOOK_MS);
        end(b, id);
    }
    start(b, LAST);
    assert_true(is_committed_at_once(b, LAST));
    assert_int_equal(job(b, ARRAY)->state, JOB_DONE);
}
