/* SPDX-License-Identifier: MIT */
/*
 * The error of start forecasts on this machine, learnt from jobs that have started. A forecast assumes that
 * no further jobs are submitted and that jobs end when expected; neither holds. The calibration turns the
 * forecast wait into times before which a known fraction of the jobs starts.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/record.h"

/* 10, 25, 50, 75 and 90 % of the jobs start before these times; the first and the last are the 80 %
 * interval. */
#define CALIBRATION_PARTS 5U
extern const double calibration_parts[CALIBRATION_PARTS];

/* Forecast waits below 5 min, 1 h, 6 h, 1 day, and longer ones have different errors. */
#define CALIBRATION_RANGES 5U

struct calibration {
    double factors[CALIBRATION_RANGES][CALIBRATION_PARTS]; // log2 of actual to forecast wait, ascending
};

/* Initial values, chosen on the tuning workloads (docs/scheduling.md). */
void calibration_init(struct calibration *calibration);

/* The range of a forecast wait, and where the range ends; INT64_MAX: never. */
unsigned calibration_range(int64_t wait_ms);
int64_t calibration_range_ends_ms(unsigned range);

/* For each fraction, the wait before which that many of the jobs with this forecast wait start; ascending. */
void calibration_quantiles(
    const struct calibration *calibration, int64_t wait_ms, int64_t ret_ms[CALIBRATION_PARTS]);

/* A job that was given these times for this forecast wait started after `actual_ms`. `alike`: jobs of the
 * same range with a forecast of the same time, itself included; their errors often have one cause. */
void calibration_learn(struct calibration *calibration, int64_t wait_ms,
    const int64_t forecast_ms[CALIBRATION_PARTS], uint32_t alike, int64_t actual_ms);

extern const struct record_type calibration_record;

/* The data that is stored. -EBADMSG if it is damaged; nothing is changed then. */
void calibration_encode(const struct calibration *calibration, struct buffer *out);
int calibration_decode(
    struct calibration *calibration, const uint8_t *bytes, size_t length, struct error *err);
