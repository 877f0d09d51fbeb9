/* SPDX-License-Identifier: MIT */
/* Elements of an array that are committed behind others. Node "box" has one GPU; the array is job 11. */
#include "bench.h"

#include "base/memory.h"
#include "controller/core/entry.h"
#include "controller/core/state.h"
#include "job/behind.h"

#define ARRAY    11U
#define FIRST    12U
#define LEADER   15U // the fourth element: by then the array has a pace
#define FOLLOWER 16U
#define TOOK_MS  100 // an element
#define AHEAD_MS 1000

static int asked, cancelled, held[3];
static const struct identity owner = { .is_known = true, .uid = 1000, .gid = 1000 };

static void settle(struct bench *b)
{
    bench_settle(b);
    for (int i = 0; i < 3; i++) { // what is due since that is durable, and what follows from it
        core_timer(b->core, b->now_ms, b->now_ms);
        bench_settle(b);
    }
}

static void pass(struct bench *b, int64_t ms)
{
    b->now_ms += ms;
    core_timer(b->core, b->now_ms, b->now_ms);
    settle(b);
}

static void hello(struct bench *b, uint32_t link)
{
    struct message_hello hello = { .protocol = LINK_PROTOCOL,
        .node = xstrdup("box"),
        .boot_id = xstrdup("boot"),
        .cpus = 2,
        .takes_back = 1 };
    struct gpu_state *gpu = xcalloc(1, sizeof(*gpu));
    *gpu = (struct gpu_state){ .uuid = xstrdup("GPU-0"), .memory_bytes = 24ULL << 30, .numa = -1 };
    hello.gpus = (struct record_list){ gpu, 1 };
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

static int open_with(void **state, int64_t ahead_ms)
{
    (void)bench_open(state);
    struct bench *b = *state;
    b->options.early.elements_ms = ahead_ms;
    bench_configure(b);
    hello(b, 1);
    struct job_spec *spec = xcalloc(1, sizeof(*spec));
    job_spec_init(spec);
    strings_add(&spec->command, "true");
    spec->cwd = xstrdup("/");
    spec->ask.gpus = 1;
    spec->ask.array = xstrdup("0-9");
    core_submit(b->core, b->now_ms, b->now_ms, &owner, spec, NULL, &asked);
    settle(b);
    for (uint64_t id = FIRST; id < LEADER; id++) {
        start(b, id);
        pass(b, TOOK_MS);
        end(b, id);
    }
    start(b, LEADER);
    return 0;
}

static int open_on(void **state)
{
    return open_with(state, AHEAD_MS);
}

static int open_off(void **state)
{
    return open_with(state, 0);
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

static void the_next_element_is_launched_before_the_one_before_it_ends(void **state)
{
    const struct bench *b = *state;
    expect_behind(b, FOLLOWER);
    expect_holder(b, LEADER);
    assert_int_equal(job(b, FOLLOWER)->state, JOB_STARTING);
    assert_int_equal(launch_of(b, FOLLOWER).n_gpus, 1);
    assert_non_null(bench_sent(b, MESSAGE_PREPARE, FOLLOWER));
    assert_null(job(b, FOLLOWER + 1)); // one behind each
}

static void it_has_the_gpus_in_the_turn_in_which_that_one_ends(void **state)
{
    struct bench *b = *state;
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

static void without_the_setting_the_next_one_waits(void **state)
{
    struct bench *b = *state;
    pass(b, TOOK_MS * 3 / 2); // with it, one would be there by now, and not be late
    assert_null(job(b, FOLLOWER));
    end(b, LEADER);
    expect_holder(b, FOLLOWER);
    assert_null(bench_sent(b, MESSAGE_PREPARE, FOLLOWER));
}

static void it_is_taken_back_when_that_one_takes_long(void **state)
{
    struct bench *b = *state;
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

static void one_that_is_taken_back_from_a_held_array_waits_until_that_is_released(void **state)
{
    struct bench *b = *state;
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

static void one_that_is_asked_back_and_has_begun_goes_on(void **state)
{
    struct bench *b = *state;
    pass(b, 10 * AHEAD_MS);
    assert_non_null(bench_sent(b, MESSAGE_STOP, FOLLOWER));
    end(b, LEADER);
    start(b, FOLLOWER);
    expect_holder(b, FOLLOWER);
    end(b, FOLLOWER);
    assert_int_equal(job(b, FOLLOWER)->end, END_EXIT);
}

/* After a new connection, either may be told first. */
static void its_reports_may_come_first(void **state)
{
    struct bench *b = *state;
    start(b, FOLLOWER);
    assert_int_equal(job(b, FOLLOWER)->state, JOB_RUNNING);
    expect_behind(b, FOLLOWER);
    end(b, LEADER);
    expect_holder(b, FOLLOWER);
    end(b, FOLLOWER + 1);
    assert_int_equal(job(b, FOLLOWER + 1)->state, JOB_DONE);
    expect_holder(b, FOLLOWER);
}

static void it_can_be_cancelled(void **state)
{
    struct bench *b = *state;
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

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, open_on, close_checked)
    const struct CMUnitTest tests[] = {
        CASE(the_next_element_is_launched_before_the_one_before_it_ends),
        CASE(it_has_the_gpus_in_the_turn_in_which_that_one_ends),
        CASE(it_is_taken_back_when_that_one_takes_long),
        CASE(one_that_is_taken_back_from_a_held_array_waits_until_that_is_released),
        CASE(one_that_is_asked_back_and_has_begun_goes_on),
        CASE(its_reports_may_come_first),
        CASE(it_can_be_cancelled),
        cmocka_unit_test_setup_teardown(without_the_setting_the_next_one_waits, open_off, close_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
