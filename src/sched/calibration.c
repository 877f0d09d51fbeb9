/* SPDX-License-Identifier: MIT */
/*
 * For each range of forecast waits and each part, a threshold on the logarithm of actual to forecast wait
 * follows the quantile: a start after the reported time raises it by STEP x part, one before lowers it by
 * STEP x (1 - part). As long as the thresholds stay bounded, the part of starts before the reported times
 * approaches the target, whatever the errors are and however they drift (Angelopoulos, Candes and Tibshirani,
 * Conformal PID control for time series prediction, NeurIPS 2023, the quantile tracker).
 *
 * Jobs with forecasts of the same time are mostly early or late together: n of them count as sqrt(n). The
 * step, this exponent and the first thresholds were chosen on the tuning workloads (docs/scheduling.md).
 */
#include "sched/calibration.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/record.h"

#define STEP       0.3   // log2
#define FACTOR_MAX 12.0  // waits 4,000 times as long as forecast
#define SLACK_MS   30000 // added to both waits: half a minute more or less is no error
#define MINUTE_MS  INT64_C(60000)
#define THOUSANDTH 1000.0

const double calibration_parts[CALIBRATION_PARTS] = { 0.1, 0.25, 0.5, 0.75, 0.9 };

static const int64_t ends_ms[CALIBRATION_RANGES] = { 5 * MINUTE_MS, 60 * MINUTE_MS, 360 * MINUTE_MS,
    1440 * MINUTE_MS, INT64_MAX };

void calibration_init(struct calibration *calibration)
{
    static const double first[CALIBRATION_PARTS] = { -2.2, -0.6, 0.3, 1.4, 2.9 };
    for (size_t i = 0; i < CALIBRATION_RANGES; i++)
        memcpy(calibration->factors[i], first, sizeof(first));
}

unsigned calibration_range(int64_t wait_ms)
{
    unsigned range = 0;
    while (wait_ms >= ends_ms[range] && range + 1 < CALIBRATION_RANGES)
        range++;
    return range;
}

int64_t calibration_range_ends_ms(unsigned range)
{
    return ends_ms[range];
}

static double not_negative(int64_t wait_ms)
{
    return wait_ms > 0 ? (double)wait_ms : 0;
}

void calibration_quantiles(
    const struct calibration *calibration, int64_t wait_ms, int64_t ret_ms[CALIBRATION_PARTS])
{
    const double *factors = calibration->factors[calibration_range(wait_ms)];
    for (size_t i = 0; i < CALIBRATION_PARTS; i++) {
        double forecast_ms = (not_negative(wait_ms) + SLACK_MS) * exp2(factors[i]) - SLACK_MS;
        ret_ms[i] = forecast_ms > 0 ? (int64_t)forecast_ms : 0;
    }
}

static int compare_numbers(const void *a, const void *b)
{
    double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

void calibration_learn(struct calibration *calibration, int64_t wait_ms,
    const int64_t forecast_ms[CALIBRATION_PARTS], uint32_t alike, int64_t actual_ms)
{
    double *factors = calibration->factors[calibration_range(wait_ms)],
           step = STEP / sqrt(alike > 0 ? alike : 1);
    for (size_t i = 0; i < CALIBRATION_PARTS; i++) {
        double part = calibration_parts[i];
        double moved = factors[i] + (actual_ms > forecast_ms[i] ? step * part : -step * (1 - part));
        factors[i] = moved > FACTOR_MAX ? FACTOR_MAX : moved < -FACTOR_MAX ? -FACTOR_MAX : moved;
    }
    qsort(factors, CALIBRATION_PARTS, sizeof(*factors), compare_numbers);
}

/* --- saving and restoring --- */

/* The factors in thousandths, separated by spaces, range after range. */
struct calibration_state {
    char *factors;
};

#define TEXT_MAX 400U

static const struct record_field state_fields[] = {
    RECORD_FIELD(1, RECORD_STRING, struct calibration_state, factors, TEXT_MAX),
};

const struct record_type calibration_record =
    RECORD_TYPE(540, "calibration", struct calibration_state, state_fields);

void calibration_encode(const struct calibration *calibration, struct buffer *out)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    for (size_t i = 0; i < CALIBRATION_RANGES; i++)
        for (size_t k = 0; k < CALIBRATION_PARTS; k++)
            buffer_printf(
                &text, "%s%.0f", text.length > 0 ? " " : "", calibration->factors[i][k] * THOUSANDTH);
    record_encode(&calibration_record, &(struct calibration_state){ .factors = buffer_text(&text) }, out);
}

/* False unless there are exactly as many numbers as factors, ascending in each range and within bounds. */
static bool read_factors(const char *text, struct calibration *ret)
{
    for (size_t i = 0; i < CALIBRATION_RANGES; i++)
        for (size_t k = 0; k < CALIBRATION_PARTS; k++) {
            char *end = NULL;
            double factor = text != NULL ? strtod(text, &end) / THOUSANDTH : 0;
            bool is_ascending = k == 0 || factor >= ret->factors[i][k - 1];
            if (end == text || !(fabs(factor) <= FACTOR_MAX) || !is_ascending)
                return false;
            ret->factors[i][k] = factor;
            text = end;
        }
    return *text == '\0';
}

int calibration_decode(
    struct calibration *calibration, const uint8_t *bytes, size_t length, struct error *err)
{
    struct calibration_state state;
    struct calibration read = { 0 };
    int r = record_decode(&calibration_record, bytes, length, &state, err);
    if (r < 0)
        return r;
    bool is_good = read_factors(state.factors, &read);
    record_clear(&calibration_record, &state);
    if (!is_good)
        return error_set(err, -EBADMSG, "the calibration of forecasts is invalid");
    *calibration = read;
    return 0;
}
