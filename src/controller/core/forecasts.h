/* SPDX-License-Identifier: MIT */
/* The forecasts of starts given to jobs, and the actual starts. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sched/calibration.h"

struct core;

/* The last ones are kept. */
#define FORECASTS_KEPT 1000U

/* A forecast made soon after a job's submission. All times are of the core's clock. */
struct kept_forecast {
    uint64_t job; // 0: there is none
    int64_t made_ms, expected_ms;
    int64_t parts_ms[CALIBRATION_PARTS]; // before which the parts start; 80 % between the first and the last
    int64_t started_ms;                  // 0: it has not
    uint32_t alike;                      // forecasts of its range made at the same time
};

/* The `index`-th of those kept, the newest first; NULL: there are fewer. */
const struct kept_forecast *core_kept_forecast(const struct core *core, size_t index);

/* The factors by which forecasts are off on this machine. */
const struct calibration *core_calibration(const struct core *core);

/* Sets the interval in which a job that is forecast to start at `eta_ms` starts with a probability of 80 %;
 * `latest_ms` (TIME_NEVER: unknown) is the last possible one, `begin_ms` (0: none) the first that the job
 * allows. Both are 0 if `eta_ms` is TIME_NEVER. */
void core_eta_interval(const struct core *core, int64_t wall_ms, int64_t eta_ms, int64_t latest_ms,
    int64_t begin_ms, int64_t *ret_from_ms, int64_t *ret_until_ms);
