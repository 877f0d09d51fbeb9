/* SPDX-License-Identifier: MIT */
/* Others on the GPUs: what keeps new jobs away, from when and until when. */
#include "bench.h"

#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "memory_store.h"

#define CASE(name, b) TEST_ON(name, struct bench *b, bench_open_with_one, bench_close)

#define MIB (1ULL << 20)
#define GIB (1ULL << 30)
#define ALL (GPU_PROCESSES | GPU_MEMORY_USED | GPU_UTILIZATION)

static int one, two, three, four;
static const struct identity owner = { .is_known = true, .uid = 1000, .gid = 1000 };
static const struct identity admin = { .is_known = true, .uid = 77, .role = ROLE_ADMIN };

/* A sample of the only GPU. */
struct sample {
    uint64_t memory; // of its one process; 0: there is none
    uint64_t job;    // whose it is
    uint64_t used;
    uint32_t valid, load, is_unclean;
    bool is_memory_hidden;
};

static void see(struct bench *b, struct sample sample)
{
    struct gpu_process process = {
        .pid = 8123,
        .job = sample.job,
        .memory_bytes = sample.memory,
        .is_memory_known = !sample.is_memory_hidden,
    };
    char uuid[] = "GPU-0";
    struct gpu_state gpu = {
        .uuid = uuid,
        .memory_bytes = 24 * GIB,
        .numa = -1,
        .valid = sample.valid != 0 ? sample.valid : ALL,
        .memory_used_bytes = sample.used,
        .utilization_percent = sample.load,
        .is_unclean = sample.is_unclean,
        .processes = { .items = &process, .count = sample.memory > 0 || sample.is_memory_hidden },
    };
    struct message_gpus gpus = { .gpus = { .items = &gpu, .count = 1 } };
    struct error err;
    b->now_ms += 1000;
    assert_int_equal(core_link_message(b->core, b->now_ms, b->now_ms, 1, MESSAGE_GPUS, &gpus, &err), 0);
    bench_settle(b);
}

static void see_often(struct bench *b, struct sample sample, int times)
{
    for (int i = 0; i < times; i++)
        see(b, sample);
}

static const struct cluster_gpu *books(const struct bench *b)
{
    return &sched_cluster(core_sched(b->core))->nodes[0].gpus[0];
}

static void set_policy(struct bench *b, const struct identity *who, const char *policy, void *request)
{
    _cleanup_strings_ struct strings gpus = { 0 };
    strings_add(&gpus, "box:0");
    core_set_policy(b->core, b->now_ms, b->now_ms, who, &gpus, policy, request);
}

CASE(a_large_process_of_others_closes_its_gpu_at_once, b)
{
    see(b, (struct sample){ .memory = 2 * GIB });
    assert_int_equal(books(b)->closed, DEVICE_EXTERNAL);
    bench_submit(b, 1000, 1, NULL, &one);
    bench_settle(b);
    char text[200];
    assert_int_equal(core_job(b->core, 11)->state, JOB_QUEUED);
    assert_string_equal(
        core_wait_reason(b->core, b->now_ms, core_find(b->core, 11), text, sizeof(text)), "gpu_external");
    see_often(b, (struct sample){ 0 }, 2);
    assert_int_equal(core_job(b->core, 11)->state, JOB_QUEUED);
    see(b, (struct sample){ 0 });
    assert_int_equal(core_job(b->core, 11)->state, JOB_STARTING);
}

CASE(a_small_idle_process_and_those_of_jobs_block_nothing, b)
{
    see_often(b, (struct sample){ .memory = 512 * MIB, .load = 5 }, 10);
    assert_int_equal(books(b)->closed, 0);
    see_often(b, (struct sample){ .memory = 20 * GIB, .job = 9, .load = 90 }, 10);
    assert_int_equal(books(b)->closed, 0);
    assert_true(books(b)->memory_external == 0);
}

CASE(a_small_process_is_noted_until_it_has_been_gone_for_a_while, b)
{
    assert_false(books(b)->has_external);
    see(b, (struct sample){ .memory = 400 * MIB });
    assert_true(books(b)->has_external && books(b)->closed == 0);
    see_often(b, (struct sample){ 0 }, 2);
    assert_true(books(b)->has_external);
    see(b, (struct sample){ 0 });
    assert_false(books(b)->has_external);
    see(b, (struct sample){ .memory = 400 * MIB, .job = 9 });
    assert_false(books(b)->has_external);
}

CASE(a_load_without_jobs_counts_when_it_lasts, b)
{
    struct sample busy = { .memory = MIB, .load = 6 };
    see_often(b, busy, 2);
    see(b, (struct sample){ .memory = MIB });
    see_often(b, busy, 2);
    assert_int_equal(books(b)->closed, 0);
    see(b, busy);
    assert_int_equal(books(b)->closed, DEVICE_EXTERNAL);
}

CASE(the_load_of_a_job_is_not_taken_for_anothers, b)
{
    bench_submit(b, 1000, 1, NULL, &one);
    bench_settle(b);
    see_often(b, (struct sample){ .memory = MIB, .load = 100 }, 10);
    assert_int_equal(books(b)->closed, 0);
}

CASE(a_stranger_beside_a_job_leaves_it_running_and_keeps_the_next_away, b)
{
    bench_submit(b, 1000, 1, NULL, &one);
    bench_settle(b);
    struct sent launch = *bench_sent(b, MESSAGE_LAUNCH, 11);
    (void)bench_started(b, 1, &launch);
    bench_submit(b, 1000, 1, NULL, &two);
    see_often(b, (struct sample){ .memory = 2 * GIB }, 5);
    assert_int_equal(core_job(b->core, 11)->state, JOB_RUNNING);
    (void)bench_exited(b, 1, &launch, END_EXIT, 0);
    bench_settle(b);
    assert_int_equal(core_job(b->core, 12)->state, JOB_QUEUED);
}

CASE(memory_that_cannot_be_told_may_be_all_that_is_used, b)
{
    see(b, (struct sample){ .is_memory_hidden = true, .used = 100 * MIB });
    assert_int_equal(books(b)->closed, 0);
    see(b, (struct sample){ .is_memory_hidden = true, .used = 3 * GIB });
    assert_int_equal(books(b)->closed, DEVICE_EXTERNAL);
}

CASE(without_a_list_of_processes_what_was_known_stays_for_a_while, b)
{
    see(b, (struct sample){ .memory = 2 * GIB });
    see_often(b, (struct sample){ .valid = GPU_MEMORY_USED }, 59);
    assert_int_equal(books(b)->closed, DEVICE_EXTERNAL);
    see(b, (struct sample){ .valid = GPU_MEMORY_USED });
    assert_int_equal(books(b)->closed, 0);
}

CASE(the_log_grows_with_changes_and_not_with_samples, b)
{
    set_policy(b, &admin, "fit-around", &one);
    see(b, (struct sample){ .memory = 2 * GIB });
    assert_true(books(b)->memory_external == 2 * GIB);
    size_t published = b->n_published;
    for (uint64_t i = 0; i < 100; i++)
        see(b, (struct sample){ .memory = 2 * GIB - i % 10 * 100 * MIB, .load = (uint32_t)i });
    assert_int_equal(b->n_published, published);
    see(b, (struct sample){ .memory = 2 * GIB + 1 });
    assert_true(books(b)->memory_external == 2 * GIB + 256 * MIB);
    see_often(b, (struct sample){ .memory = GIB }, 30);
    assert_true(books(b)->memory_external == GIB);
    assert_int_equal(b->n_published, published + 2);
}

CASE(fit_around_leaves_the_rest_to_shares, b)
{
    set_policy(b, &admin, "fit-around", &one);
    see(b, (struct sample){ .memory = 20 * GIB });
    assert_int_equal(books(b)->closed, 0);
    bench_submit(b, 1000, 1, NULL, &two);
    bench_settle(b);
    assert_int_equal(core_job(b->core, 11)->state, JOB_QUEUED);
    struct job_spec *spec = bench_spec("true");
    spec->ask.gpus = 1;
    spec->ask.gpu_mem = 4 * GIB;
    bench_submit_spec(b, &owner, spec, &three);
    assert_int_equal(core_job(b->core, 12)->state, JOB_STARTING);
}

CASE(a_policy_of_one_gpu_is_for_administrators_and_takes_effect_at_once, b)
{
    const struct core_gpu *gpu = core_gpu_at(core_node_named(b->core, "box"), 0);
    see(b, (struct sample){ .memory = 2 * GIB });
    set_policy(b, &owner, "ignore", &one);
    set_policy(b, &admin, "kill", &two);
    bench_settle(b);
    assert_int_equal(bench_answer(b, &one)->code, -EPERM);
    assert_int_equal(bench_answer(b, &two)->code, -EINVAL);
    assert_int_equal(core_gpu_policy(b->core, gpu), EXTERNAL_AVOID);
    assert_int_equal(gpu->policy, EXTERNAL_POLICIES);
    set_policy(b, &admin, "ignore", &three);
    assert_int_equal(books(b)->closed, 0);
    assert_int_equal(core_gpu_policy(b->core, gpu), EXTERNAL_IGNORE);
    assert_int_equal(gpu->policy, EXTERNAL_IGNORE);
    bench_settle(b);
    set_policy(b, &admin, "default", &four);
    assert_int_equal(books(b)->closed, DEVICE_EXTERNAL);
    bench_settle(b);
}

/* The row of a policy in what is being committed; there may be others. */
static const struct state_change *policy_row(const struct bench *b)
{
    const struct state_change *rows = b->flying->states;
    for (size_t i = 0; i < b->flying->n_states; i++)
        if (strcmp(rows[i].kind, "gpu-policy") == 0)
            return &rows[i];
    fail_msg("no policy is written");
    return NULL;
}

CASE(a_policy_outlives_a_restart, b)
{
    set_policy(b, &admin, "ignore", &one);
    bench_turn(b);
    const struct state_change *row = policy_row(b);
    assert_string_equal(row->key, "box/GPU-0");
    struct bench *later = NULL;
    struct error err;
    (void)bench_open((void **)&later);
    assert_int_equal(
        core_load_state(later->core, row->kind, row->key, row->value.bytes, row->value.length, &err), 0);
    (void)bench_hello(later, 1, "boot", 1, NULL, 0);
    see(later, (struct sample){ .memory = 2 * GIB });
    assert_int_equal(books(later)->closed, 0);
    set_policy(later, &admin, "default", &two);
    bench_turn(later);
    assert_true(policy_row(later)->is_removal);
    (void)bench_close((void **)&later);
}

CASE(what_is_not_clean_is_closed_until_it_is, b)
{
    see(b, (struct sample){ .is_unclean = 1 });
    assert_int_equal(books(b)->closed, DEVICE_UNCLEAN);
    see(b, (struct sample){ 0 });
    assert_int_equal(books(b)->closed, 0);
}

CASE(a_shared_gpu_is_crowded_while_it_is_full_or_busy, b)
{
    struct sample busy = { .load = 81 }, calmer = { .load = 75 }, calm = { .load = 70 };
    see_often(b, busy, 5);
    assert_int_equal(books(b)->closed, 0); // nobody shares it
    struct job_spec *spec = bench_spec("true");
    spec->ask.gpus = 1;
    spec->ask.gpu_share = 300;
    bench_submit_spec(b, &owner, spec, &one);
    see_often(b, busy, 2);
    assert_int_equal(books(b)->closed, 0);
    see(b, busy);
    assert_int_equal(books(b)->closed, DEVICE_CROWDED);
    see_often(b, calmer, 10);
    assert_int_equal(books(b)->closed, DEVICE_CROWDED);
    see_often(b, calm, 3);
    assert_int_equal(books(b)->closed, 0);
    see_often(b, (struct sample){ .used = 20 * GIB }, 3);
    assert_int_equal(books(b)->closed, DEVICE_CROWDED);
}
