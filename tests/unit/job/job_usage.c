/* SPDX-License-Identifier: MIT */
#include "job/usage.h"

#include <string.h>

#include "base/memory.h"
#include "unit_test.h"

TEST(a_timeline_says_what_was_added)
{
    _cleanup_(job_usage_clear) struct job_usage usage = { 0 };
    struct usage_bucket bucket;
    usage_bucket_add(&usage, &(struct usage_bucket){ 100, 12, USAGE_NOT_KNOWN });
    assert_true(usage_bucket_read(&usage, 0, &bucket));
    assert_int_equal(bucket.busy, 100);
    assert_int_equal(bucket.memory, 12);
    assert_int_equal(bucket.power, USAGE_NOT_KNOWN);
    assert_false(usage_bucket_read(&usage, 1, &bucket));
}

TEST(a_full_timeline_becomes_coarser_and_keeps_its_peaks)
{
    _cleanup_(job_usage_clear) struct job_usage usage = { 0 };
    struct usage_bucket bucket;
    for (uint32_t i = 0; i <= USAGE_BUCKETS; i++)
        usage_bucket_add(&usage, &(struct usage_bucket){ i == 7 ? 99 : 5, 1, USAGE_NOT_KNOWN });
    assert_int_equal(usage.bucket_s, 2);
    assert_int_equal(strlen(usage.timeline), (USAGE_BUCKETS / 2 + 1) * USAGE_BUCKET_SIZE);
    assert_true(usage_bucket_read(&usage, 3, &bucket));
    assert_int_equal(bucket.busy, 99);
    assert_int_equal(bucket.power, USAGE_NOT_KNOWN);
}

TEST(a_damaged_timeline_is_not_read)
{
    _cleanup_(job_usage_clear) struct job_usage usage = { .timeline = xstrdup("zzzzzz010203") };
    struct usage_bucket bucket;
    assert_false(usage_bucket_read(&usage, 0, &bucket));
    assert_true(usage_bucket_read(&usage, 1, &bucket));
    assert_int_equal(bucket.power, 3);
}

TEST(a_copy_is_its_own)
{
    struct job_usage usage = { .xid = 31, .fault = xstrdup("GPU 2: memory page fault") };
    struct job_usage *copy = job_usage_copy(&usage);
    job_usage_clear(&usage);
    assert_int_equal(copy->xid, 31);
    assert_string_equal(copy->fault, "GPU 2: memory page fault");
    job_usage_free(copy);
    assert_null(job_usage_copy(NULL));
}

TEST(what_was_not_measured_is_not_known)
{
    static struct optional (*const readers[])(const struct job_usage *usage) = { usage_utilization_milli,
        usage_utilization_peak_milli, usage_gpu_memory_peak, usage_gpu_memory_size, usage_energy_mj,
        usage_memory_peak, usage_first_use_ms };
    const struct job_usage nothing = { 0 };
    const struct job_usage all = { .valid =
                                       USAGE_UTILIZATION | USAGE_GPU_MEMORY | USAGE_ENERGY | USAGE_MEMORY,
        .utilization_milli = 5,
        .utilization_peak_milli = 5,
        .gpu_memory_peak = 5,
        .gpu_memory_size = 5,
        .energy_mj = 5,
        .memory_peak = 5,
        .first_use_ms = 5 };
    for (size_t i = 0; i < sizeof(readers) / sizeof(readers[0]); i++) {
        assert_false(readers[i](NULL).is_known);
        assert_false(readers[i](&nothing).is_known);
        assert_true(readers[i](&all).is_known);
        assert_int_equal(readers[i](&all).value, 5);
    }
}

/* A GPU in use has memory in use: 0 means that all samples came before. */
TEST(a_peak_of_nothing_is_not_known)
{
    const struct job_usage usage = { .valid = USAGE_GPU_MEMORY | USAGE_MEMORY | USAGE_UTILIZATION,
        .gpu_memory_size = 5 };
    assert_false(usage_gpu_memory_peak(&usage).is_known);
    assert_false(usage_memory_peak(&usage).is_known);
    assert_true(usage_gpu_memory_size(&usage).is_known);
    assert_true(usage_utilization_milli(&usage).is_known); // it was idle
}
