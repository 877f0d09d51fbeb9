/* SPDX-License-Identifier: MIT */
/* When waiting jobs will start: the real scheduler, run forward on a copy. */
#pragma once

#include "sched/sched.h"

struct forecast_row {
    uint64_t job;
    int64_t start_ms;
    struct allocation allocation; // owned; only when one job was asked about
};

struct forecast {
    struct forecast_row *rows; // in order of start
    size_t n_rows, capacity;
    bool is_complete; // the job asked for, or every job of the copy, started
};

/* Starts of the first `max_jobs` waiting jobs and of `always`. `is_certain`: running jobs end at their time
 * limits only and reservations are used to their ends (the latest start), else they end when they are
 * expected to, and a reservation that nobody uses is returned unless one of its users waits (the likely one).
 */
void forecast_run(const struct sched *sched, int64_t now_ms, size_t max_jobs, uint64_t always,
    bool is_certain, struct forecast *ret);
void forecast_clear(struct forecast *forecast);
const struct forecast_row *forecast_row(const struct forecast *forecast, uint64_t job); // NULL: not there
int64_t forecast_find(const struct forecast *forecast, uint64_t job); // its start; TIME_NEVER: not there
