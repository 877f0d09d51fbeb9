/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "unit_test.h"
#include "wire/gpu_comparison.h"

static char text[GPU_COMPARISON_TEXT_SIZE];
static double part;
static char h200[] = "H200", a100[] = "A100", hung[] = "it hung";

/* A GPU whose last test has this figure for copies on it, and the same for everything else. */
static struct gpu_state gpu_of(struct gpu_test *test, char *model, uint64_t on_mb_s)
{
    *test = (struct gpu_test){
        .wall_ms = 1, .to_mb_s = 50000, .from_mb_s = 50000, .on_mb_s = on_mb_s, .product_mflops = 1000000
    };
    return (struct gpu_state){ .model = model, .tests = { test, 1 } };
}

TEST(a_gpu_far_below_the_median_of_its_model_is_slow)
{
    static const uint64_t speeds[] = { 2000000, 2040000, 1200000, 1980000, 1650000 };
    struct gpu_test tests[5], other_test;
    struct gpu_state gpus[5], other = gpu_of(&other_test, a100, 900000);
    struct gpu_comparison *comparison = gpu_comparison_new();
    for (size_t i = 0; i < 5; i++) {
        gpus[i] = gpu_of(&tests[i], h200, speeds[i]);
        gpu_comparison_add(comparison, &gpus[i]);
    }
    gpu_comparison_add(comparison, &other);
    assert_int_equal(gpu_comparison_judge(comparison, &gpus[2], text, &part), GPU_SLOW);
    assert_string_equal(text, "copies on the GPU are 39 % below the median of its model");
    assert_true(fabs(part - 1200.0 / 1980) < 1e-9);
    assert_int_equal(gpu_comparison_judge(comparison, &gpus[4], text, &part), GPU_PASSED); // 17 % below
    assert_int_equal(gpu_comparison_judge(comparison, &gpus[0], text, &part), GPU_PASSED);
    assert_int_equal(
        gpu_comparison_judge(comparison, &other, text, &part), GPU_PASSED); // of another model, and alone
    assert_true(part >= 1);
    gpu_comparison_free(comparison);
}

TEST(of_two_gpus_the_slower_is_slow)
{
    struct gpu_test tests[2];
    struct gpu_state fast = gpu_of(&tests[0], h200, 2000000);
    struct gpu_state slow = gpu_of(&tests[1], h200, 1200000);
    struct gpu_comparison *comparison = gpu_comparison_new();
    gpu_comparison_add(comparison, &slow);
    gpu_comparison_add(comparison, &fast);
    assert_int_equal(gpu_comparison_judge(comparison, &slow, text, &part), GPU_SLOW);
    assert_string_equal(text, "copies on the GPU are 40 % below the median of its model");
    assert_int_equal(gpu_comparison_judge(comparison, &fast, text, &part), GPU_PASSED);
    gpu_comparison_free(comparison);
}

TEST(wrong_and_missing_results_are_no_figures)
{
    struct gpu_test tests[2];
    struct gpu_state wrong = gpu_of(&tests[0], h200, 2000000), untested = { 0 };
    struct gpu_state failed = gpu_of(&tests[1], h200, 0);
    struct gpu_comparison *comparison = gpu_comparison_new();
    tests[0].wrong = 7;
    tests[1].error = hung;
    gpu_comparison_add(comparison, &wrong);
    gpu_comparison_add(comparison, &failed);
    gpu_comparison_add(comparison, &untested);
    assert_int_equal(gpu_comparison_judge(comparison, &wrong, text, &part), GPU_TEST_FAILED);
    assert_string_equal(text, "7 wrong results");
    assert_int_equal(gpu_comparison_judge(comparison, &failed, text, &part), GPU_TEST_FAILED);
    assert_string_equal(text, "its test failed: it hung");
    assert_int_equal(gpu_comparison_judge(comparison, &untested, text, &part), GPU_UNTESTED);
    assert_null(gpu_test_verdict_name(GPU_UNTESTED));
    gpu_comparison_free(comparison);
}
