/* SPDX-License-Identifier: MIT */
#include "sched/calibration.h"
#include "unit_test.h"

#include <math.h>
#include <string.h>

#define MINUTE_MS 60000
#define STARTS    20000

/* Uniform between 0 and 1, always the same row of numbers. */
static double draw(uint64_t *state)
{
    *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (double)(*state >> 11) / 9007199254740992.0;
}

/* The actual wait is the forecast times 2^(center + spread * normal). */
static int64_t actual_wait(uint64_t *state, int64_t wait_ms, double center, double spread)
{
    double normal = 0;
    for (int i = 0; i < 12; i++)
        normal += draw(state);
    return (int64_t)((double)wait_ms * exp2(center + spread * (normal - 6)));
}

/* The fractions of starts before each forecast time must be the intended ones (almost: where errors are
 * small, thresholds coincide). */
static void assert_calibrated(double center, double spread, double drift)
{
    struct calibration calibration;
    uint64_t state = 7;
    double before[CALIBRATION_PARTS] = { 0 };
    calibration_init(&calibration);
    for (int i = 0; i < STARTS; i++) {
        int64_t wait_ms = (int64_t)(MINUTE_MS * exp2(12 * draw(&state))), forecast_ms[CALIBRATION_PARTS];
        int64_t actual_ms = actual_wait(&state, wait_ms, center + drift * i / STARTS, spread);
        calibration_quantiles(&calibration, wait_ms, forecast_ms);
        for (size_t k = 0; k < CALIBRATION_PARTS; k++)
            before[k] += actual_ms <= forecast_ms[k];
        calibration_learn(&calibration, wait_ms, forecast_ms, 1, actual_ms);
    }
    for (size_t k = 0; k < CALIBRATION_PARTS; k++)
        if (fabs(before[k] / STARTS - calibration_parts[k]) > 0.04)
            fail_msg("%.3f of the starts are before the moment for %.2f", before[k] / STARTS,
                calibration_parts[k]);
}

TEST(as_many_start_before_each_moment_as_it_says)
{
    assert_calibrated(0, 1, 0);
    assert_calibrated(2, 1.5, 0); // forecasts are four times too short
    assert_calibrated(-1, 0.2, 0);
}

TEST(errors_that_drift_are_followed)
{
    assert_calibrated(-2, 1, 6);
}

TEST(the_moments_ascend_and_none_is_before_the_submission)
{
    struct calibration calibration;
    uint64_t seed = 3;
    calibration_init(&calibration);
    for (int i = 0; i < 2000; i++) {
        int64_t forecast_ms[CALIBRATION_PARTS],
            wait_ms = (int64_t)(draw(&seed) * 600 * MINUTE_MS) - MINUTE_MS;
        calibration_quantiles(&calibration, wait_ms, forecast_ms);
        for (size_t k = 0; k < CALIBRATION_PARTS; k++)
            assert_true(forecast_ms[k] >= (k > 0 ? forecast_ms[k - 1] : 0));
        calibration_learn(&calibration, wait_ms, forecast_ms, 1, (int64_t)(draw(&seed) * 1e18));
        calibration_learn(&calibration, wait_ms, forecast_ms, 4, 0);
    }
}

TEST(it_outlives_a_restart)
{
    struct calibration calibration, read;
    _cleanup_buffer_ struct buffer bytes = { 0 };
    struct error err = { 0 };
    calibration_init(&calibration);
    for (int i = 0; i < 50; i++) {
        int64_t forecast_ms[CALIBRATION_PARTS], wait_ms = INT64_C(10) * i * MINUTE_MS;
        calibration_quantiles(&calibration, wait_ms, forecast_ms);
        calibration_learn(&calibration, wait_ms, forecast_ms, 2, 3 * wait_ms);
    }
    calibration_encode(&calibration, &bytes);
    calibration_init(&read);
    assert_int_equal(calibration_decode(&read, bytes.bytes, bytes.length, &err), 0);
    for (size_t i = 0; i < CALIBRATION_RANGES; i++)
        for (size_t k = 0; k < CALIBRATION_PARTS; k++)
            assert_true(fabs(read.factors[i][k] - calibration.factors[i][k]) < 0.001);
    assert_true(calibration_decode(&read, bytes.bytes, bytes.length - 1, &err) < 0);
}

TEST(damaged_data_changes_nothing)
{
    struct calibration calibration, before, wild;
    struct buffer bytes = { 0 };
    struct error err = { 0 };
    calibration_init(&calibration);
    before = wild = calibration;
    wild.factors[2][1] = 9; // above the next one
    calibration_encode(&wild, &bytes);
    assert_true(calibration_decode(&calibration, bytes.bytes, bytes.length, &err) < 0);
    wild = before;
    wild.factors[4][4] = 1e6;
    buffer_clear(&bytes);
    calibration_encode(&wild, &bytes);
    assert_true(calibration_decode(&calibration, bytes.bytes, bytes.length, &err) < 0);
    assert_memory_equal(&calibration, &before, sizeof(before));
    buffer_clear(&bytes);
}
