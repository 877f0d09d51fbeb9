/* SPDX-License-Identifier: MIT */
/* A short-lived cache of the forecast shown in listings. */
#pragma once

#include "sched/forecast.h"

struct core;

struct outlook {
    int64_t made_ms; // 0: none yet
    uint64_t event;  // the last event at that time
    struct forecast likely, latest;
    uint64_t n_made;
    /* The next ones, in progress. */
    struct forecast_run *run; // NULL: none
    bool is_certain;          // that of the likely starts is made, and the one of the latest starts is next
    int64_t next_ms;          // when it began
    uint64_t next_event;
    struct forecast next_likely;
};

void core_clear_outlook(struct core *core);
