/* SPDX-License-Identifier: MIT */
/* Forecasts of start times: runs the scheduler forward on a copy. */
#pragma once

#include "sched/sched.h"

struct forecast_run;

struct forecast_row {
    uint64_t job;
    int64_t start_ms;
    struct allocation allocation; // owned; only if the forecast is for one job
};

struct forecast {
    struct forecast_row *rows; // in order of start time
    size_t n_rows, capacity;
    bool is_complete; // the requested job, or every job of the copy, has started
};

/* Start times of the first `max_jobs` waiting jobs and of `always`. `is_certain`: running jobs end only at
 * their time limits and reservations last to their ends (the latest start). Otherwise running jobs end when
 * expected, and unused reservations are returned unless one of their users waits (the likely start). */
void forecast_run(const struct sched *sched, int64_t now_ms, size_t max_jobs, uint64_t always,
    bool is_certain, struct forecast *ret);

/*
 * The same in parts, so the caller can do other work in between: each advance() makes the given number of
 * parts of the copy, or processes as many ends and timers. True: it is complete. The original may change
 * meanwhile; it must exist until the end, which frees the run. `ret` NULL: the result is discarded.
 */
struct forecast_run *forecast_begin(
    const struct sched *sched, int64_t now_ms, size_t max_jobs, uint64_t always, bool is_certain);
bool forecast_advance(struct forecast_run *run, size_t steps);
void forecast_end(struct forecast_run *run, struct forecast *ret);

void forecast_clear(struct forecast *forecast);
const struct forecast_row *forecast_row(
    const struct forecast *forecast, uint64_t job); // NULL: not in the forecast
int64_t forecast_find(
    const struct forecast *forecast, uint64_t job); // its start time; TIME_NEVER: not in the forecast
