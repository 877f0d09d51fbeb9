/* SPDX-License-Identifier: MIT */
/* A short-lived cache of the forecasts shown in listings. */
#pragma once

#include "sched/forecast.h"

struct core;

struct forecast_cache {
    int64_t made_ms; // 0: none yet
    uint64_t event;  // the last event at that time
    struct forecast likely, latest;
    uint64_t n_made;
    /* The next ones, in progress. */
    struct forecast_run *run; // NULL: none
    bool is_certain;          // the likely starts are computed, and the latest starts are next
    int64_t next_ms;          // when it began
    uint64_t next_event;
    struct forecast next_likely;
};

void core_clear_forecast_cache(struct core *core);
