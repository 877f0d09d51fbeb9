/* SPDX-License-Identifier: MIT */
/* Stops that wait until a job has saved its work: which ones they are, and until when. */
#include "bench.h"

#include <signal.h>
#include <string.h>

#include "base/memory.h"
#include "memory_store.h"

#define CASE(name, b) TEST_ON(name, struct bench *b, bench_open_with_one, bench_close)

#define GRACE_MS 20000

static int one, two, three;
static const struct identity owner = { .is_known = true, .uid = 1000, .gid = 1000 };

/* Job 11 runs on the only GPU. */
static const struct sent *run_first(struct bench *b, bool checkpoint)
{
    struct job_spec *spec = bench_spec("sleep");
    spec->ask.checkpoint = checkpoint;
    spec->ask.grace_ms = GRACE_MS;
    bench_submit_spec(b, &owner, spec, &one);
    const struct sent *launch = bench_sent(b, MESSAGE_LAUNCH, 11);
    assert_int_equal(bench_started(b, 1, launch), 0);
    b->now_ms += 10; // a start may be committed late
    core_timer(b->core, b->now_ms, b->now_ms);
    bench_settle(b);
    return launch;
}

static void requeue(struct bench *b)
{
    core_requeue(b->core, b->now_ms, b->now_ms, &owner, 11, -1, false, &two);
    bench_settle(b);
}

CASE(a_job_that_goes_on_later_is_told_to_save_its_work, b)
{
    (void)run_first(b, true);
    assert_int_equal(core_checkpoint_until(core_find(b->core, 11)), 0);
    int64_t begin_ms = b->now_ms;
    requeue(b);
    assert_int_equal(bench_sent(b, MESSAGE_STOP, 11)->signal, SIGTERM | STOP_CHECKPOINT);
    assert_in_range(core_checkpoint_until(core_find(b->core, 11)), begin_ms + GRACE_MS, b->now_ms + GRACE_MS);
}

CASE(a_job_that_promised_nothing_is_not, b)
{
    (void)run_first(b, false);
    requeue(b);
    assert_int_equal(bench_sent(b, MESSAGE_STOP, 11)->signal, SIGTERM);
    assert_int_equal(core_checkpoint_until(core_find(b->core, 11)), 0);
}

CASE(a_cancelled_job_is_not_even_while_it_saves, b)
{
    (void)run_first(b, true);
    requeue(b);
    core_cancel(b->core, b->now_ms, b->now_ms, &owner, 11, -1, &three);
    bench_settle(b);
    assert_int_equal(bench_sent(b, MESSAGE_STOP, 11)->signal, SIGTERM);
    assert_int_equal(core_checkpoint_until(core_find(b->core, 11)), 0);
}

CASE(a_repeated_stop_lasts_no_longer, b)
{
    const struct sent launch = *run_first(b, true);
    requeue(b);
    int64_t until_ms = core_checkpoint_until(core_find(b->core, 11));
    b->now_ms += 5000;
    core_link_down(b->core, b->now_ms, b->now_ms, 1);
    struct known_attempt known = {
        .id.job = 11, .id.attempt = launch.attempt, .token = launch.token, .phase = PHASE_RUNNING
    };
    assert_int_equal(bench_hello(b, 2, "boot", 1, &known, 1), 0);
    bench_settle(b);
    assert_int_equal(bench_sent(b, MESSAGE_STOP, 11)->link, 2);
    assert_int_equal(core_checkpoint_until(core_find(b->core, 11)), until_ms);
}

CASE(the_next_attempt_has_a_grace_of_its_own, b)
{
    const struct sent launch = *run_first(b, true);
    requeue(b);
    assert_int_equal(bench_exited(b, 1, &launch, END_CANCELLED, 143), 0);
    bench_settle(b);
    assert_int_equal(core_checkpoint_until(core_find(b->core, 11)), 0);
    assert_int_equal(bench_started(b, 1, bench_sent(b, MESSAGE_LAUNCH, 11)), 0);
    bench_pass(b, 60000);
    int64_t begin_ms = b->now_ms;
    core_requeue(b->core, b->now_ms, b->now_ms, &owner, 11, -1, false, &three);
    bench_settle(b);
    assert_in_range(core_checkpoint_until(core_find(b->core, 11)), begin_ms + GRACE_MS, b->now_ms + GRACE_MS);
}

CASE(what_outlives_its_kill_has_a_reason, b)
{
    char text[256];
    (void)run_first(b, false);
    assert_null(core_delay(b->core, b->now_ms, core_find(b->core, 11), text, sizeof(text)));
    requeue(b);
    int64_t killed_ms = b->now_ms + GRACE_MS;
    assert_null(core_delay(b->core, killed_ms, core_find(b->core, 11), text, sizeof(text)));
    const char *why = core_delay(b->core, killed_ms + 10000, core_find(b->core, 11), text, sizeof(text));
    assert_non_null(why);
    assert_non_null(strstr(why, "a process on node box has not ended: it is blocked in the kernel"));
}

CASE(a_start_that_lasts_has_a_reason, b)
{
    char text[256];
    bench_submit(b, 1000, 1, NULL, &one);
    bench_settle(b);
    assert_int_equal(core_job(b->core, 11)->state, JOB_STARTING);
    assert_null(core_delay(b->core, b->now_ms, core_find(b->core, 11), text, sizeof(text)));
    const char *why = core_delay(b->core, b->now_ms + 60000, core_find(b->core, 11), text, sizeof(text));
    assert_non_null(why);
    assert_non_null(strstr(why, "node box has not started it for 1m"));
}
