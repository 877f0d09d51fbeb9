/* SPDX-License-Identifier: MIT */
/* Figures of replays so small that they can be checked by hand. */

#include "lab/sim/metrics.h"
#include "unit_test.h"

/* One GPU; two users. Job 1 runs 0 to 100, job 2 (submitted at 20) 100 to 110, job 3 (at 120) 120 to 140. */
static void replay(
    struct engine *engine, struct workload *workload, struct sim_nodes *nodes, struct metrics *metrics)
{
    static struct sched_settings settings;
    struct engine_options options = { .settings = &settings };
    struct error err;
    sched_settings_init(&settings);
    settings.policy = policy_find("fifo");
    assert_int_equal(nodes_read(nodes, "1x1", &err), 0);
    (void)names_number(&workload->models, "");
    (void)names_number(&workload->groups, "g");
    uint32_t ada = names_number(&workload->users, "ada"), bo = names_number(&workload->users, "bo");
    const struct sim_job jobs[] = { { .submit_ms = 0, .duration_ms = 100000, .gpus = 1, .user = ada },
        { .submit_ms = 20000, .duration_ms = 10000, .gpus = 1, .user = bo },
        { .submit_ms = 120000, .duration_ms = 20000, .gpus = 1, .user = ada } };
    for (size_t i = 0; i < 3; i++)
        workload_add(workload, &jobs[i]);
    assert_int_equal(engine_run(engine, workload, nodes, &options, &err), 0);
    metrics_make(engine, metrics);
}

TEST(figures_agree_with_those_made_by_hand)
{
    _cleanup_(engine_clear) struct engine engine;
    _cleanup_(workload_clear) struct workload workload = { 0 };
    _cleanup_(nodes_clear) struct sim_nodes nodes = { 0 };
    struct metrics metrics;
    replay(&engine, &workload, &nodes, &metrics);
    assert_int_equal(metrics.jobs, 3);
    assert_float_equal(metrics.jct_s.mean, 70, 1e-9); // 100, 90, 20
    assert_float_equal(metrics.jct_s.median, 90, 1e-9);
    assert_float_equal(metrics.wait_s.mean, 80.0 / 3, 1e-9);
    assert_float_equal(metrics.wait_s.max, 80, 1e-9);
    assert_float_equal(metrics.slowdown.max, 9, 1e-9);
    assert_float_equal(metrics.makespan_s, 140, 1e-9);
    assert_float_equal(metrics.utilization, 110.0 / 120, 1e-9);
    assert_float_equal(metrics.worst_user_slowdown, 9, 1e-9);
    assert_float_equal(metrics.jain, 100.0 / (2 * 82), 1e-9); // of 1 and 9
    assert_float_equal(metrics.waiting_s, 80, 1e-9);
    assert_float_equal(metrics.free_gpus, 0, 1e-9);
}

TEST(quantiles_are_values_that_occurred)
{
    struct samples samples = { 0 };
    struct summary summary;
    for (int i = 10; i > 0; i--)
        samples_add(&samples, i);
    samples_summarize(&samples, &summary);
    assert_float_equal(summary.median, 6, 1e-12);
    assert_float_equal(summary.p90, 10, 1e-12);
    assert_float_equal(summary.mean, 5.5, 1e-12);
    samples_clear(&samples);
    samples_summarize(&samples, &summary);
    assert_float_equal(summary.max, 0, 1e-12);
}

TEST(a_job_that_nothing_can_run_is_refused_and_counted)
{
    _cleanup_(engine_clear) struct engine engine;
    _cleanup_(workload_clear) struct workload workload = { 0 };
    _cleanup_(nodes_clear) struct sim_nodes nodes = { 0 };
    struct sched_settings settings;
    struct engine_options options = { .settings = &settings };
    struct sim_job job = { .duration_ms = 1000, .gpus = 9 };
    struct error err;
    sched_settings_init(&settings);
    assert_int_equal(nodes_read(&nodes, "1x8", &err), 0);
    (void)names_number(&workload.models, "");
    (void)names_number(&workload.users, "u");
    (void)names_number(&workload.groups, "g");
    workload_add(&workload, &job);
    assert_int_equal(engine_run(&engine, &workload, &nodes, &options, &err), 0);
    assert_int_equal(engine.n_refused, 1);
    assert_int_not_equal(engine.first_refusal[0], 0);
}
