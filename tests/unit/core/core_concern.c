/* SPDX-License-Identifier: MIT */
/* The table of concerns, with one more row: which hooks of a new concern are called, in which order. */
#include "bench.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "controller/core/concern.h"
#include "controller/core/concerns.h"
#include "controller/core/entry.h"
#include "controller/core/state.h"
#include "wire/message.h"

#define ROWS_MAX 64U

static int one;
static const struct identity owner = { .is_known = true, .uid = 1000, .gid = 1000 };

/* The calls of the probe's hooks. */
static char heard[512];
static int64_t wake_ms;

static void note(const char *word)
{
    size_t length = strlen(heard);
    (void)snprintf(heard + length, sizeof(heard) - length, "%s ", word);
}

static void on_event(struct core *core, struct core_entry *entry, const struct core_news *news)
{
    char word[64];
    (void)snprintf(
        word, sizeof(word), "%s->%s", job_state_name(news->before), job_state_name(entry->job->state));
    note(news->spec != NULL ? "submit" : word);
}

static void on_act(struct core *core, struct core_entry *entry)
{
    note("act");
}

static int refuse(const struct core *core, const struct identity *who, const struct job_spec *spec,
    size_t size, struct error *err)
{
    return spec->ask.gpus > 1 ? error_set(err, -EDQUOT, "one GPU is enough") : 0;
}

static int64_t next_ms(const struct core *core)
{
    return wake_ms;
}

static void run(struct core *core)
{
    wake_ms = TIME_NEVER;
    note("run");
}

static void on_heartbeat(struct core *core, struct core_node *node, const void *message)
{
    note("heartbeat");
}

static void on_up(struct core *core, struct core_node *node, bool was_up)
{
    note(was_up ? "again" : "up");
}

static void on_sample(struct core *core, struct core_node *node)
{
    note("sample");
}

static void on_back(struct core *core, struct core_node *node)
{
    note("back");
}

static void on_cut(struct core *core, struct core_node *node, uint32_t link)
{
    note("cut");
}

static void on_down(struct core *core, struct core_node *node)
{
    note("down");
}

static const struct core_message messages[] = { { MESSAGE_HEARTBEAT, on_heartbeat }, { 0 } };

static const struct core_concern probe = {
    .name = "probe",
    .check = refuse,
    .events = CORE_ON_ALL,
    .event = on_event,
    .act = on_act,
    .messages = messages,
    .up = on_up,
    .sample = on_sample,
    .back = on_back,
    .cut = on_cut,
    .down = on_down,
    .next_ms = next_ms,
    .run = run,
};

static void on_stopping(struct core *core, struct core_entry *entry, const struct core_news *news)
{
    note("stopping");
}

static const struct core_concern stops = {
    .name = "stops",
    .events = CORE_ON_STOPPING,
    .event = on_stopping,
};

static int open_with_probe(void **state)
{
    static const struct core_concern *rows[ROWS_MAX];
    size_t count = 0;
    (void)bench_open(state);
    struct bench *b = *state;
    for (; core_concerns[count] != NULL && count < ROWS_MAX - 3; count++)
        rows[count] = core_concerns[count];
    rows[count] = &probe;
    rows[count + 1] = &stops;
    rows[count + 2] = NULL;
    core_set_concerns(b->core, rows);
    heard[0] = '\0';
    wake_ms = TIME_NEVER;
    return 0;
}

#define CASE(name, b) TEST_ON(name, struct bench *b, open_with_probe, bench_close)

static const char *take_heard(void)
{
    static char text[sizeof(heard)];
    memcpy(text, heard, sizeof(heard));
    heard[0] = '\0';
    return text;
}

CASE(a_concern_hears_of_each_event_and_acts_when_it_is_durable, b)
{
    assert_int_equal(bench_hello(b, 1, "boot", 1, NULL, 0), 0);
    (void)take_heard();
    bench_submit(b, 1000, 1, NULL, &one);
    bench_turn(b);
    assert_string_equal(take_heard(), "submit queued->starting ");
    bench_settle(b);
    assert_string_equal(take_heard(), "act ");
    core_cancel(b->core, b->now_ms, b->now_ms, &owner, 11, -1, &one);
    assert_string_equal(take_heard(), "starting->stopping stopping ");
}

CASE(a_concern_is_called_for_the_events_alone_that_it_names, b)
{
    assert_int_equal(bench_hello(b, 1, "boot", 1, NULL, 0), 0);
    bench_submit(b, 1000, 1, NULL, &one);
    bench_turn(b);
    bench_settle(b);
    assert_null(strstr(take_heard(), "stopping"));
    core_cancel(b->core, b->now_ms, b->now_ms, &owner, 11, -1, &one);
    assert_non_null(strstr(take_heard(), " stopping "));
}

CASE(a_concern_may_refuse_a_submit, b)
{
    bench_submit(b, 1000, 2, NULL, &one);
    bench_settle(b);
    assert_int_equal(bench_answer(b, &one)->code, -EDQUOT);
    assert_string_equal(bench_answer(b, &one)->err.message, "one GPU is enough");
    assert_string_equal(take_heard(), "");
}

CASE(a_concern_hears_of_a_node_in_the_order_of_its_connection, b)
{
    assert_int_equal(bench_hello(b, 1, "boot", 1, NULL, 0), 0);
    assert_string_equal(take_heard(), "up sample back ");
    assert_int_equal(bench_hello(b, 2, "boot", 1, NULL, 0), 0);
    assert_string_equal(take_heard(), "cut again sample back ");
    core_link_down(b->core, b->now_ms, b->now_ms, 2);
    assert_string_equal(take_heard(), "cut down ");
}

CASE(several_concerns_may_take_one_message, b)
{
    struct message_heartbeat heartbeat = { .sent_ms = 1 };
    struct error err;
    assert_int_equal(bench_hello(b, 1, "boot", 1, NULL, 0), 0);
    (void)take_heard();
    assert_int_equal(
        core_link_message(b->core, b->now_ms, b->now_ms, 1, MESSAGE_HEARTBEAT, &heartbeat, &err), 0);
    assert_string_equal(take_heard(), "heartbeat ");
    assert_non_null(bench_sent(b, MESSAGE_HEARTBEAT_ACK, 0)); // which the concern of lost nodes has sent
}

CASE(the_timer_is_set_for_the_concern_that_wants_to_run_first, b)
{
    bench_settle(b);
    b->armed_ms = 0;
    wake_ms = b->now_ms + 700;
    bench_turn(b);
    assert_int_equal(b->armed_ms, wake_ms);
    b->now_ms = wake_ms - 1;
    core_timer(b->core, b->now_ms, b->now_ms);
    assert_string_equal(take_heard(), "");
    b->now_ms++;
    core_timer(b->core, b->now_ms, b->now_ms);
    assert_string_equal(take_heard(), "run ");
}
