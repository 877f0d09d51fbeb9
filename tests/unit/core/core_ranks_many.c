/* SPDX-License-Identifier: MIT */
/* A job on many nodes: mgpud is not held up, and tells no node the same twice. */
#include "bench.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "job/usage.h"
#include "wire/message.h"

#define JOB   11U
#define NODES 200U
#define FIRST 164U // are launched at once: each LAUNCH names all nodes

static int one;
static const struct identity owner = { .is_known = true, .uid = 1000, .gid = 1000 };

static void hello(struct bench *b, uint32_t rank)
{
    struct message_hello message = { .protocol = LINK_PROTOCOL,
        .node = xasprintf("n%03u", rank),
        .boot_id = xasprintf("boot-%u", rank),
        .cpus = 8 };
    struct gpu_state *gpu = xcalloc(1, sizeof(*gpu));
    *gpu = (struct gpu_state){ .uuid = xasprintf("GPU-%u", rank), .memory_bytes = 24ULL << 30, .numa = -1 };
    message.gpus = (struct record_list){ gpu, 1 };
    struct error err = { 0 };
    assert_int_equal(core_link_up(b->core, b->now_ms, b->now_ms, rank + 1, &message, &err), 0);
    record_clear(&message_hello_record, &message);
}

static int open_with_job(void **state)
{
    (void)bench_open(state);
    struct bench *b = *state;
    for (uint32_t rank = 0; rank < NODES; rank++)
        hello(b, rank);
    bench_settle(b);
    b->n_sent = b->n_published = b->n_changes = 0;
    struct job_spec *spec = bench_spec("train");
    spec->ask.gpus = spec->ask.nodes = NODES;
    bench_submit_spec(b, &owner, spec, &one);
    return core_job(b->core, JOB)->state == JOB_STARTING ? 0 : -1;
}

#define CASE(name, b) TEST_ON(name, struct bench *b, open_with_job, bench_close)

/* How many nodes have been sent that, since the last call; each at most once. */
static size_t take_sent(struct bench *b, uint16_t id)
{
    bool is_sent[NODES] = { false };
    size_t count = 0;
    for (size_t i = 0; i < b->n_sent; i++) {
        if (b->sent[i].id != id)
            continue;
        assert_false(is_sent[b->sent[i].rank]);
        is_sent[b->sent[i].rank] = true;
        count++;
    }
    b->n_sent = 0;
    return count;
}

static uint64_t token(const struct bench *b)
{
    return core_job(b->core, JOB)->token;
}

static void ready(struct bench *b, uint32_t rank)
{
    bench_say(b, rank + 1, MESSAGE_READY,
        &(struct message_ready){ .id.job = JOB, .id.attempt = 1, .id.rank = rank, .token = token(b) });
}

static void run_all(struct bench *b)
{
    b->n_sent = 0;
    for (uint32_t rank = 0; rank < NODES; rank++)
        ready(b, rank);
    b->n_sent = 0;
    for (uint32_t rank = 0; rank < NODES; rank++) {
        struct launch_started started = {
            .id.job = JOB, .id.attempt = 1, .id.rank = rank, .token = token(b)
        };
        bench_say(b, rank + 1, MESSAGE_STARTED, &started);
    }
    b->now_ms += 100;
    core_timer(b->core, b->now_ms, b->now_ms); // a start is written a few milliseconds later
    bench_settle(b);
    assert_int_equal(core_job(b->core, JOB)->state, JOB_RUNNING);
    assert_int_equal(b->n_sent, 0); // nobody is told anything because others have started
}

static void exited(struct bench *b, uint32_t rank)
{
    bench_say(b, rank + 1, MESSAGE_EXITED,
        &(struct launch_exit){ .id.job = JOB,
            .id.attempt = 1,
            .id.rank = rank,
            .token = token(b),
            .end = END_CANCELLED,
            .is_executed = 1 });
}

CASE(the_next_are_launched_when_half_of_the_first_are_ready, b)
{
    assert_int_equal(take_sent(b, MESSAGE_LAUNCH), FIRST);
    for (uint32_t rank = 0; rank < FIRST / 2 - 1; rank++)
        ready(b, rank);
    assert_int_equal(take_sent(b, MESSAGE_LAUNCH), 0);
    ready(b, FIRST / 2 - 1);
    assert_int_equal(take_sent(b, MESSAGE_LAUNCH), NODES - FIRST);
    for (uint32_t rank = FIRST / 2; rank < NODES - 1; rank++)
        ready(b, rank);
    assert_int_equal(take_sent(b, MESSAGE_GO), 0);
    ready(b, NODES - 1);
    assert_int_equal(take_sent(b, MESSAGE_GO), NODES);
}

CASE(a_stop_is_told_once_and_again_after_a_new_connection, b)
{
    run_all(b);
    core_cancel(b->core, b->now_ms, b->now_ms, &owner, JOB, 0, NULL);
    bench_settle(b);
    assert_int_equal(take_sent(b, MESSAGE_STOP), NODES);
    for (uint32_t rank = 0; rank < NODES - 1; rank++)
        exited(b, rank);
    assert_int_equal(take_sent(b, MESSAGE_STOP), 0);
    core_link_down(b->core, b->now_ms, b->now_ms, NODES);
    struct known_attempt known = {
        .id.job = JOB, .id.attempt = 1, .id.rank = NODES - 1, .token = token(b), .phase = PHASE_RUNNING
    };
    char name[] = "n199", boot[] = "boot-199";
    const struct message_hello again = {
        .protocol = LINK_PROTOCOL, .node = name, .boot_id = boot, .cpus = 8, .attempts = { &known, 1 }
    };
    struct error err = { 0 };
    assert_int_equal(core_link_up(b->core, b->now_ms, b->now_ms, NODES + 1, &again, &err), 0);
    bench_settle(b);
    assert_int_equal(take_sent(b, MESSAGE_STOP), 1);
}

/* The first that fails stops the others; those that end then are no reason to tell it again. */
CASE(a_failure_stops_the_others_once, b)
{
    run_all(b);
    struct launch_exit failed = { .id.job = JOB,
        .id.attempt = 1,
        .id.rank = 7,
        .token = token(b),
        .end = END_EXIT,
        .exit_code = 3,
        .is_executed = 1 };
    bench_say(b, 8, MESSAGE_EXITED, &failed);
    assert_int_equal(take_sent(b, MESSAGE_STOP), NODES - 1);
    for (uint32_t rank = 0; rank < NODES; rank++)
        if (rank != 7)
            exited(b, rank);
    assert_int_equal(take_sent(b, MESSAGE_STOP), 0);
    assert_int_equal(core_job(b->core, JOB)->exit_code, 3);
}

/* Usage is merged sixteen times while each node reports once, not two hundred times. */
static void report_energy(struct bench *b, uint32_t rank, uint64_t energy_mj)
{
    struct job_usage usage = { .valid = USAGE_UTILIZATION, .sampled_ms = 1000, .energy_mj = energy_mj };
    struct attempt_usage one_rank = {
        .id.job = JOB, .id.attempt = 1, .id.rank = rank, .token = token(b), .usage = { &usage, 1 }
    };
    const struct message_gpus report = { .usages = { &one_rank, 1 } };
    bench_say(b, rank + 1, MESSAGE_GPUS, &report);
}

CASE(the_usage_of_all_is_known_when_all_have_reported, b)
{
    run_all(b);
    size_t merges = 0;
    for (uint32_t rank = 0; rank < NODES; rank++) {
        uint64_t before =
            core_usage(core_find(b->core, JOB)) != NULL ? core_usage(core_find(b->core, JOB))->energy_mj : 0;
        report_energy(b, rank, 1);
        merges += core_usage(core_find(b->core, JOB))->energy_mj != before;
    }
    assert_in_range(merges, 10, 17);
    assert_in_range(core_usage(core_find(b->core, JOB))->energy_mj, NODES - NODES / 16, NODES);
}

/* Those that are over report nothing. */
CASE(the_usage_of_the_last_rank_is_known_at_once, b)
{
    run_all(b);
    for (uint32_t rank = 1; rank < NODES; rank++)
        bench_say(b, rank + 1, MESSAGE_EXITED,
            &(struct launch_exit){ .id.job = JOB,
                .id.attempt = 1,
                .id.rank = rank,
                .token = token(b),
                .end = END_EXIT,
                .is_executed = 1 });
    for (uint64_t energy_mj = 1; energy_mj < 5; energy_mj++) {
        report_energy(b, 0, energy_mj);
        assert_int_equal(core_usage(core_find(b->core, JOB))->energy_mj, energy_mj);
    }
}
