/* SPDX-License-Identifier: MIT */
/* The memory that an attempt held on its GPU is gone with it, and not with a later sample. */
#include "bench.h"

#include "base/memory.h"
#include "memory_store.h"

#define CASE(name, b) TEST_ON(name, struct bench *b, bench_open_with_one, bench_close)

#define GIB (1ULL << 30)

static int one;

/* Job 11 runs on the only GPU. */
static const struct sent *run_first(struct bench *b)
{
    bench_submit(b, 1000, 1, NULL, &one);
    bench_settle(b);
    const struct sent *launch = bench_sent(b, MESSAGE_LAUNCH, 11);
    assert_non_null(launch);
    assert_int_equal(bench_started(b, 1, launch), 0);
    bench_settle(b);
    return launch;
}

/* A sample after that time: 3 GiB of job 11 in a process, and 1 GiB of an external one. */
static void see_both(struct bench *b, int64_t after_ms, bool is_unclean, bool is_hidden)
{
    struct gpu_process processes[] = {
        { .pid = 8123,
            .start = 1,
            .job = 11,
            .attempt = 1,
            .memory_bytes = 3 * GIB,
            .is_memory_known = !is_hidden },
        { .pid = 9000, .start = 1, .memory_bytes = 1 * GIB, .is_memory_known = 1 },
    };
    char uuid[] = "GPU-0";
    struct gpu_state gpu = { .uuid = uuid,
        .memory_bytes = 24 * GIB,
        .numa = -1,
        .valid = GPU_PROCESSES | GPU_MEMORY_USED,
        .memory_used_bytes = 4 * GIB,
        .is_unclean = is_unclean,
        .processes = { processes, 2 } };
    struct message_gpus gpus = { .gpus = { &gpu, 1 } };
    struct error err;
    b->now_ms += after_ms;
    assert_int_equal(core_link_message(b->core, b->now_ms, b->now_ms, 1, MESSAGE_GPUS, &gpus, &err), 0);
    bench_settle(b);
}

static void assert_shown(const struct bench *b, uint64_t used, size_t processes)
{
    const struct gpu_state *gpu = core_node_named(b->core, "box")->hello.gpus.items;
    assert_true(gpu->memory_used_bytes == used);
    assert_int_equal(gpu->processes.count, processes);
}

CASE(what_an_attempt_held_is_gone_with_its_end, b)
{
    const struct sent *launch = run_first(b);
    see_both(b, 1000, false, false);
    assert_shown(b, 4 * GIB, 2);
    b->now_ms += 100;
    assert_int_equal(bench_exited(b, 1, launch, END_EXIT, 0), 0);
    bench_settle(b);
    assert_int_equal(core_job(b->core, 11)->state, JOB_DONE);
    assert_shown(b, 1 * GIB, 1);
    const struct gpu_state *gpu = core_node_named(b->core, "box")->hello.gpus.items;
    assert_int_equal(((const struct gpu_process *)gpu->processes.items)->pid, 9000);
}

CASE(a_sample_that_was_read_before_the_end_shows_nothing_of_it, b)
{
    const struct sent *launch = run_first(b);
    assert_int_equal(bench_exited(b, 1, launch, END_EXIT, 0), 0);
    bench_settle(b);
    see_both(b, 500, false, false);
    assert_shown(b, 1 * GIB, 1);
}

CASE(what_is_left_for_longer_or_found_by_the_agent_is_shown, b)
{
    const struct sent *launch = run_first(b);
    assert_int_equal(bench_exited(b, 1, launch, END_EXIT, 0), 0);
    bench_settle(b);
    see_both(b, 500, true, false);
    assert_shown(b, 4 * GIB, 2);
    see_both(b, 2000, false, false);
    assert_shown(b, 4 * GIB, 2);
}

CASE(memory_that_is_not_known_is_not_taken_away, b)
{
    const struct sent *launch = run_first(b);
    see_both(b, 1000, false, true);
    assert_int_equal(bench_exited(b, 1, launch, END_EXIT, 0), 0);
    bench_settle(b);
    assert_shown(b, 4 * GIB, 1);
}
