/* SPDX-License-Identifier: MIT */
/* Forecasts of starts during a replay: what mgpud would have told at the submissions, and what came. */
#pragma once

#include <stdint.h>

#include "sched/calibration.h"
#include "sched/sched.h"

/* A forecast told for a job. Its moments are waits from `at_ms`. */
struct made_forecast {
    uint32_t job;
    int64_t at_ms, wait_ms, parts_ms[CALIBRATION_PARTS];
    uint32_t alike;    // forecasts of its range at that time
    int64_t actual_ms; // -1: it has not started
};

struct made_forecasts {
    struct calibration calibration;
    struct made_forecast *rows; // in order of their jobs
    size_t count, room;
    uint32_t *row_of; // of each job, plus 1; 0: none
    int64_t gap_ms, last_ms;
    uint32_t next_job; // jobs from this number on have had no forecast
};

/* What they were worth. */
struct forecast_metrics {
    size_t count;
    double before[CALIBRATION_PARTS]; // part of the starts before each moment
    double within;                    // the 80 % interval
    double width;                     // of that interval: median of the ratio of its ends
    double plain_error;               // of the forecast itself: median of the factor by which it was wrong
};

/* About `count` forecasts at equal distances of `span_ms` in all. */
void made_forecasts_init(struct made_forecasts *forecasts, size_t n_jobs, int64_t span_ms, uint64_t count);
/* After a pass: forecasts the starts of the jobs submitted since the last time, if it is time. */
void made_forecasts_add(
    struct made_forecasts *forecasts, const struct sched *sched, int64_t now_ms, uint32_t n_submitted);
void made_forecasts_start(struct made_forecasts *forecasts, uint32_t job, int64_t now_ms);
void made_forecasts_measure(const struct made_forecasts *forecasts, struct forecast_metrics *ret);
void made_forecasts_clear(struct made_forecasts *forecasts);
