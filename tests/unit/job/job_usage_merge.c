/* SPDX-License-Identifier: MIT */
#include "base/memory.h"
#include "job/usage_merge.h"
#include "unit_test.h"

TEST(what_nobody_measured_is_not_known)
{
    const struct usage_part parts[] = { { NULL, 2 }, { NULL, 2 } };
    assert_null(job_usage_merge(parts, 2));
}

TEST(sums_are_summed_and_peaks_are_the_highest)
{
    const struct job_usage one = { .valid = USAGE_UTILIZATION,
        .sampled_ms = 1000,
        .utilization_milli = 100,
        .gpu_memory_peak = 5,
        .gpu_memory_size = 24,
        .energy_mj = 7,
        .idle_gpu_ms = 10 };
    const struct job_usage two = { .valid = USAGE_UTILIZATION | USAGE_ENERGY,
        .sampled_ms = 1000,
        .utilization_milli = 700,
        .gpu_memory_peak = 9,
        .gpu_memory_size = 80,
        .energy_mj = 8,
        .idle_gpu_ms = 30 };
    const struct usage_part parts[] = { { &one, 3 }, { NULL, 1 }, { &two, 1 } };
    struct job_usage *merged = job_usage_merge(parts, 3);
    assert_int_equal(merged->valid, USAGE_UTILIZATION | USAGE_ENERGY);
    assert_int_equal(merged->utilization_milli, 250); // three GPUs at 100, one at 700
    assert_int_equal(merged->gpu_memory_peak, 9);
    assert_int_equal(merged->gpu_memory_size, 80);
    assert_int_equal(merged->energy_mj, 15);
    assert_int_equal(merged->idle_gpu_ms, 40);
    job_usage_free(merged);
}

TEST(attempt_is_idle_when_all_ranks_with_gpus_are)
{
    const struct job_usage idle = { .sampled_ms = 1, .idle_ms = 9000, .idle_since_ms = 5 };
    const struct job_usage less = { .sampled_ms = 1, .idle_ms = 4000, .idle_since_ms = 7 };
    const struct job_usage busy = { .sampled_ms = 1 };
    const struct usage_part both[] = { { &idle, 1 }, { &less, 1 }, { &busy, 0 } };
    struct job_usage *merged = job_usage_merge(both, 3);
    assert_int_equal(merged->idle_ms, 4000);
    assert_int_equal(merged->idle_since_ms, 7);
    job_usage_free(merged);
    const struct usage_part one[] = { { &idle, 1 }, { &busy, 1 } };
    merged = job_usage_merge(one, 2);
    assert_int_equal(merged->idle_ms, 0);
    job_usage_free(merged);
    const struct usage_part unknown[] = { { &idle, 1 }, { NULL, 1 } };
    merged = job_usage_merge(unknown, 2);
    assert_int_equal(merged->idle_ms, 0);
    job_usage_free(merged);
}

TEST(timelines_of_different_widths_are_laid_over_each_other)
{
    char fine[] = "0a0000"
                  "140000"
                  "1e0000"
                  "280000",
         coarse[] = "050000"
                    "320000";
    const struct job_usage one = { .bucket_s = 1, .timeline = fine };
    const struct job_usage two = { .bucket_s = 2, .timeline = coarse };
    const struct usage_part parts[] = { { &one, 1 }, { &two, 1 } };
    struct job_usage *merged = job_usage_merge(parts, 2);
    struct usage_bucket bucket;
    assert_int_equal(merged->bucket_s, 2);
    assert_true(usage_bucket_read(merged, 0, &bucket));
    assert_int_equal(bucket.busy, 20);
    assert_true(usage_bucket_read(merged, 1, &bucket));
    assert_int_equal(bucket.busy, 50);
    assert_false(usage_bucket_read(merged, 2, &bucket));
    job_usage_free(merged);
}

TEST(gpus_stand_in_order_of_rank_with_gaps_for_what_is_not_known)
{
    struct usage_gpu own[] = { { .idle_ms = 3 }, { .idle_ms = 4 } };
    const struct job_usage usage = { .gpus = { own, 2 } };
    const struct usage_part parts[] = { { NULL, 1 }, { &usage, 2 } };
    struct job_usage *merged = job_usage_merge(parts, 2);
    const struct usage_gpu *gpus = merged->gpus.items;
    assert_int_equal(merged->gpus.count, 3);
    assert_int_equal(gpus[0].idle_ms, 0);
    assert_int_equal(gpus[2].idle_ms, 4);
    job_usage_free(merged);
}
