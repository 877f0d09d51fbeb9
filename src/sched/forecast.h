/* SPDX-License-Identifier: MIT */
/* When waiting jobs will start: the real scheduler, run forward on a copy. */
#pragma once

#include "sched/sched.h"

struct forecast_row {
    uint64_t job;
    int64_t start_ms; // TIME_NEVER: not within the steps looked at
};

struct forecast {
    struct forecast_row *rows; // in order of start
    size_t n_rows;
    bool is_complete; // the job asked for, or every job of the copy, started
};

/* Starts of the first `max_jobs` waiting jobs and of `always`. `is_certain`: running jobs end at their time
 * limits only (the latest start), else when they are expected to (the likely one). */
void forecast_run(const struct sched *sched, int64_t now_ms, size_t max_jobs, uint64_t always,
    bool is_certain, struct forecast *ret);
void forecast_clear(struct forecast *forecast);
int64_t forecast_find(const struct forecast *forecast, uint64_t job); // TIME_NEVER when it is not there
