/* SPDX-License-Identifier: MIT */
/*
 * How far forecasts of starts are off on this machine, learnt from those whose jobs have started. A forecast
 * assumes that nobody submits anything else and that jobs end when expected; neither is so. The calibration
 * turns the forecast wait into moments before which a known part of the jobs starts.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/record.h"

/* The jobs that start before the moments are 10, 25, 50, 75 and 90 %; the first and the last of them are the
 * 80 % interval. */
#define CALIBRATION_PARTS 5U
extern const double calibration_parts[CALIBRATION_PARTS];

/* Forecast waits below 5 min, 1 h, 6 h, 1 day, and longer ones are off by different factors. */
#define CALIBRATION_RANGES 5U

struct calibration {
    double factors[CALIBRATION_RANGES][CALIBRATION_PARTS]; // log2 of actual to forecast wait, ascending
};

/* As chosen on the workloads for choosing (docs/scheduling.md). */
void calibration_init(struct calibration *calibration);

/* The range of a forecast wait, and where the range ends; INT64_MAX: never. */
unsigned calibration_range(int64_t wait_ms);
int64_t calibration_range_ends_ms(unsigned range);

/* The wait before which each part of the jobs with this forecast wait starts; ascending. */
void calibration_tell(
    const struct calibration *calibration, int64_t wait_ms, int64_t ret_ms[CALIBRATION_PARTS]);

/* A job that was told these moments for this forecast wait started after `actual_ms`. `alike`: jobs of the
 * same range that were told at the same time, itself included; their errors often have one cause. */
void calibration_learn(struct calibration *calibration, int64_t wait_ms,
    const int64_t told_ms[CALIBRATION_PARTS], uint32_t alike, int64_t actual_ms);

extern const struct record_type calibration_record;

/* The data that is stored. -EBADMSG if it is damaged; nothing is changed then. */
void calibration_encode(const struct calibration *calibration, struct buffer *out);
int calibration_decode(
    struct calibration *calibration, const uint8_t *bytes, size_t length, struct error *err);
