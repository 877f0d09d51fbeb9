/* SPDX-License-Identifier: MIT */
/* A short-lived cache of the forecast shown in listings. */
#pragma once

#include "sched/forecast.h"

struct core;

struct outlook {
    int64_t made_ms; // 0: none yet
    uint64_t event;  // the last event at that time
    struct forecast likely, latest;
};

void core_clear_outlook(struct core *core);
