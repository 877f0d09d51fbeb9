/* SPDX-License-Identifier: MIT */
/* What jobs tell people: when it is made, when it is told, tried again and given up, and what a restart
 * knows. */
#include "bench.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "controller/core/notification.h"
#include "controller/core/state.h"
#include "memory_store.h"

#define SECOND 1000
#define MINUTE (60 * SECOND)

static int one;

/* The latest row of a notification in the store: encoded, or empty. */
static struct {
    struct buffer value;
    size_t count; // puts of all notifications
} row;

static int open_with_node(void **state)
{
    (void)bench_open(state);
    buffer_clear(&row.value);
    row.count = 0;
    return bench_hello(*state, 1, "boot", 1, NULL, 0);
}

static int close_all(void **state)
{
    buffer_clear(&row.value);
    return bench_close(state);
}

#define CASE(name, b) TEST_ON(name, struct bench *b, open_with_node, close_all)

static void keep_rows(const struct store_batch *batch)
{
    for (size_t i = 0; i < batch->n_states; i++) {
        const struct state_change *change = &batch->states[i];
        if (strcmp(change->kind, "notice") != 0 || change->is_removal)
            continue;
        buffer_clear(&row.value);
        buffer_append(&row.value, change->value.bytes, change->value.length);
        row.count++;
    }
}

/* Like bench_settle, and keeps the rows that are written. */
static void settle(struct bench *b)
{
    bench_turn(b);
    for (;;) {
        if (b->flying == NULL) {
            b->now_ms += 10; // what nobody waits for is committed late
            core_timer(b->core, b->now_ms, b->now_ms);
            bench_turn(b);
        }
        if (b->flying == NULL)
            return;
        struct store_batch *batch = take_ptr(b->flying);
        uint64_t id = batch->id;
        keep_rows(batch);
        store_batch_free(batch);
        core_on_durable(b->core, id);
        bench_turn(b);
    }
}

static void submit(struct bench *b, uint32_t uid, const char *whom, const char *events)
{
    const struct identity owner = { .is_known = true, .uid = uid, .gid = uid };
    struct job_spec *spec = bench_spec("true");
    strings_add(&spec->ask.notify, whom);
    spec->ask.notify_on = xstrdup(events);
    core_submit(b->core, b->now_ms, b->now_ms, &owner, spec, NULL, &one);
    b->n_answers = 0;
    settle(b);
}

/* The job runs and ends. */
static void run(struct bench *b, uint64_t job, int exit_code)
{
    const struct sent *launch = bench_sent(b, MESSAGE_LAUNCH, job);
    assert_non_null(launch);
    assert_int_equal(bench_started(b, 1, launch), 0);
    settle(b);
    assert_int_equal(bench_exited(b, 1, launch, END_EXIT, exit_code), 0);
}

static size_t count_notifications(const struct bench *b)
{
    size_t count = 0;
    for (size_t i = 0; i < b->n_sent; i++)
        count += b->sent[i].id == MESSAGE_NOTIFY;
    return count;
}

/* The number of the notification that was told last; the bench keeps it in the place of a job. */
static uint64_t last_told(const struct bench *b)
{
    for (size_t i = b->n_sent; i > 0; i--)
        if (b->sent[i - 1].id == MESSAGE_NOTIFY)
            return b->sent[i - 1].job;
    fail_msg("nothing was told");
    return 0;
}

static void say_told(struct bench *b, uint64_t notification, int32_t error)
{
    char text[] = "nobody there";
    struct message_notified told = {
        .notification = notification, .error = error, .text = error != 0 ? text : NULL
    };
    struct error err;
    assert_int_equal(core_link_message(b->core, b->now_ms, b->now_ms, 1, MESSAGE_NOTIFIED, &told, &err), 0);
    settle(b);
}

static void pass_time(struct bench *b, int64_t ms)
{
    b->now_ms += ms;
    core_timer(b->core, b->now_ms, b->now_ms);
    settle(b);
}

static void keep_state(void *arg, const struct notification *notification, bool is_sending)
{
    struct notification *last = arg;
    last->state = notification->state;
    last->tries = notification->tries;
    last->target++;
}

/* `target` counts the notifications. */
static struct notification look(const struct bench *b, uint64_t job)
{
    struct notification last = { 0 };
    core_each_notification(b->core, job, keep_state, &last);
    return last;
}

CASE(a_notice_is_told_when_its_event_is_durable_and_not_before, b)
{
    submit(b, 1000, "true", NULL);
    run(b, 11, 0);
    bench_turn(b);
    assert_non_null(b->flying);
    assert_int_equal(count_notifications(b), 0);
    size_t in_batch = 0;
    for (size_t i = 0; i < b->flying->n_states; i++)
        in_batch += strcmp(b->flying->states[i].kind, "notice") == 0;
    assert_int_equal(in_batch, 1); // with its event
    settle(b);
    assert_int_equal(count_notifications(b), 1);
    say_told(b, last_told(b), 0);
    assert_int_equal(look(b, 11).state, NOTIFICATION_SENT);
}

/* A job may be over before its node has looked at it: only the end is reported. */
CASE(a_start_that_is_known_from_its_end_is_told_too, b)
{
    submit(b, 1000, "true", "start");
    const struct sent *launch = bench_sent(b, MESSAGE_LAUNCH, 11);
    assert_int_equal(bench_exited(b, 1, launch, END_EXIT, 0), 0);
    settle(b);
    assert_int_equal(count_notifications(b), 1);
    submit(b, 1000, "true", "start");
    launch = bench_sent(b, MESSAGE_LAUNCH, 12);
    assert_int_equal(bench_exited(b, 1, launch, END_UNKNOWN, 125), 0);
    settle(b);
    assert_int_equal(count_notifications(b), 1); // it never ran
}

CASE(only_requested_events_are_notified, b)
{
    submit(b, 1000, "true", "fail");
    run(b, 11, 0);
    settle(b);
    assert_int_equal(count_notifications(b), 0);
    submit(b, 1000, "true", "fail");
    run(b, 12, 1);
    settle(b);
    assert_int_equal(count_notifications(b), 1);
    assert_int_equal(look(b, 11).target, 0);
}

CASE(a_failure_is_tried_again_later_and_later_and_then_given_up, b)
{
    static const int64_t pauses_ms[] = { 10 * SECOND, MINUTE, 10 * MINUTE, 60 * MINUTE };
    submit(b, 1000, "true", NULL);
    run(b, 11, 0);
    settle(b);
    for (size_t i = 0; i < sizeof(pauses_ms) / sizeof(pauses_ms[0]); i++) {
        assert_int_equal(count_notifications(b), i + 1);
        say_told(b, last_told(b), EIO);
        pass_time(b, pauses_ms[i] - SECOND);
        assert_int_equal(count_notifications(b), i + 1);
        pass_time(b, SECOND);
    }
    assert_int_equal(look(b, 11).state, NOTIFICATION_WAITING);
    say_told(b, last_told(b), EIO);
    assert_int_equal(look(b, 11).state, NOTIFICATION_FAILED);
    assert_int_equal(look(b, 11).tries, 5);
    pass_time(b, 120 * MINUTE);
    assert_int_equal(count_notifications(b), 5);
}

CASE(a_node_that_is_busy_costs_no_try, b)
{
    submit(b, 1000, "true", NULL);
    run(b, 11, 0);
    settle(b);
    say_told(b, last_told(b), EBUSY);
    assert_int_equal(look(b, 11).tries, 0);
    pass_time(b, 5 * SECOND);
    assert_int_equal(count_notifications(b), 2);
}

CASE(a_node_that_never_answers_has_failed, b)
{
    submit(b, 1000, "true", NULL);
    run(b, 11, 0);
    settle(b);
    pass_time(b, 30 * SECOND + 61 * SECOND);
    assert_int_equal(look(b, 11).tries, 1);
}

CASE(a_new_link_has_it_told_again, b)
{
    submit(b, 1000, "true", NULL);
    run(b, 11, 0);
    settle(b);
    uint64_t notification = last_told(b);
    core_link_down(b->core, b->now_ms, b->now_ms, 1);
    settle(b);
    assert_int_equal(count_notifications(b), 1); // nobody is there
    assert_int_equal(bench_hello(b, 2, "boot", 1, NULL, 0), 0);
    settle(b);
    assert_int_equal(count_notifications(b), 2);
    assert_int_equal(last_told(b), notification);
}

CASE(two_of_a_user_are_told_at_a_time, b)
{
    for (uint64_t job = 11; job < 15; job++) {
        submit(b, 1000, "true", NULL);
        run(b, job, 0);
        settle(b);
    }
    submit(b, 2000, "true", NULL);
    run(b, 15, 0);
    settle(b);
    assert_int_equal(count_notifications(b), 3);
    say_told(b, last_told(b), 0);
    assert_int_equal(count_notifications(b), 3);
}

TEST_WITH(more_than_the_limit_within_an_hour_are_dropped, open_with_node, close_all)
{
    struct bench *b = *state; // the limit is 5
    for (uint64_t job = 11; job < 17; job++) {
        submit(b, 1000, "true", NULL);
        run(b, job, 0);
        settle(b);
        if (job < 16)
            say_told(b, last_told(b), 0);
    }
    assert_int_equal(count_notifications(b), 5);
    assert_int_equal(look(b, 16).state, NOTIFICATION_DROPPED);
    pass_time(b, 61 * MINUTE);
    submit(b, 1000, "true", NULL);
    run(b, 17, 0);
    settle(b);
    assert_int_equal(count_notifications(b), 6);
}

CASE(a_start_tells_what_was_not_told, b)
{
    submit(b, 1000, "true", NULL);
    run(b, 11, 0);
    settle(b);
    uint64_t notification = last_told(b);
    struct buffer kept = { 0 };
    buffer_append(&kept, row.value.bytes, row.value.length);
    _cleanup_(bench_close) void *fresh = NULL;
    (void)bench_open(&fresh);
    struct bench *next = fresh;
    struct error err;
    next->now_ms = b->now_ms;
    assert_int_equal(core_load_state(next->core, "notice", "1", kept.bytes, kept.length, &err), 0);
    buffer_clear(&kept);
    assert_int_equal(bench_hello(next, 1, "boot", 1, NULL, 0), 0);
    settle(next);
    assert_int_equal(count_notifications(next), 1);
    assert_int_equal(last_told(next), notification);
}

CASE(a_torn_row_is_an_error, b)
{
    struct error err;
    assert_int_equal(core_load_state(b->core, "notice", "1", (const uint8_t *)"\xff\xff", 2, &err), -EBADMSG);
}

TEST_WITH(no_control_character_of_a_name_is_in_a_subject, open_with_node, close_all)
{
    char name[] = "a\nBcc: eve";
    struct job job = { .id = 42, .state = JOB_DONE, .end = END_EXIT, .exit_code = 1, .name = name };
    const struct job_event event = { .type = EVENT_ENDED };
    _cleanup_free_ char *subject = notification_subject(&job, &event, NOTIFY_FAIL, 0);
    assert_null(strchr(subject, '\n'));
    assert_string_equal(subject, "job 42 (a\\x0aBcc: eve) failed (exit 1)");
}

TEST_WITH(the_risk_to_start_again_and_its_reason_are_in_the_subject, open_with_node, close_all)
{
    char name[] = "train", node[] = "box";
    struct job_park park = { .reclaimed = 1, .lender = 43 };
    struct job_run run = { .park = &park };
    struct job job = { .id = 42, .state = JOB_RUNNING, .name = name, .node = node };
    struct job_event event = { .type = EVENT_STARTED, .attempt = 1 };
    _cleanup_free_ char *risk = notification_subject(&job, &event, NOTIFY_START, 1000);
    assert_string_equal(risk, "job 42 (train) started on box; it starts again, once, if it still runs at "
                              "1970-01-01T00:00:01.000Z: a "
                              "parked job needs its GPUs then");
    job = (struct job){ .id = 42, .state = JOB_QUEUED, .name = name, .run = &run };
    event = (struct job_event){ .type = EVENT_REQUEUED, .attempt = 1 };
    _cleanup_free_ char *reason = notification_subject(&job, &event, NOTIFY_PREEMPT, 0);
    assert_string_equal(reason,
        "job 42 (train) was preempted and requeued, because its GPUs were due to job 43, which was parked");
    event.attempt = 2;
    _cleanup_free_ char *other = notification_subject(&job, &event, NOTIFY_PREEMPT, 0);
    assert_string_equal(other, "job 42 (train) was preempted and requeued");
}
