/* SPDX-License-Identifier: MIT */
/* A short-lived cache of the forecast shown in listings. */
#pragma once

#include "sched/forecast.h"

struct core;

struct outlook {
    int64_t made_ms; // 0: none yet
    uint64_t event;  // the last event at that time
    struct forecast likely, latest;
    struct forecast_run *run; // of the next ones, in progress; NULL: none
    bool is_certain;          // it is that of the latest starts
    int64_t next_ms;          // when it began
    uint64_t next_event;
    struct forecast next_likely;
};

void core_clear_outlook(struct core *core);
